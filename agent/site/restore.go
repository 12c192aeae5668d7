package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/natsd"
)

// siteParts are what a site keeps in its folder, the store last: without it there is no
// site.
var siteParts = []string{"credentials", tenantsFolder, "tls", auditFolder, "guard.json", "store-marks.json", "store"}

// socketName is the socket on which a running site makes backups. It is in the folder of
// the store, which only the site's user may enter.
const socketName = "site.sock"

// socketPath returns a path to the socket that is short whatever the folder is called:
// the address of a socket has room for 107 bytes. done ends its use.
func socketPath(dir string) (path string, done func(), err error) {
	folder, err := os.Open(storeFolder(dir))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName), func() { _ = folder.Close() }, nil
}

// listenLocal listens on the site's socket. The lock of the folder is held: a socket that
// is there is that of a process that was killed.
func listenLocal(dir string) (net.Listener, error) {
	path, done, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w", filepath.Join(storeFolder(dir), socketName), err)
	}
	listener.SetUnlinkOnClose(false) // The path is good for as long as the folder is open.
	return listener, os.Chmod(path, 0o600)
}

// serveLocal answers on the site's socket: a backup to each request.
func (s *Site) serveLocal(running context.Context, dir string) error {
	listener, err := listenLocal(dir)
	if err != nil {
		return err
	}
	s.local = &http.Server{
		ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return running },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.log.Info("making a backup")
			if err := pack(r.Context(), s.nats, dir, w); err != nil {
				s.log.Warn("cannot make a backup", "error", err)
				panic(http.ErrAbortHandler) // Whoever reads must not take it for whole.
			}
		}),
	}
	s.parts.Go(func() { _ = s.local.Serve(listener) })
	return nil
}

// Backup writes a backup of the site in dir to a new file, whether the site runs or not,
// and checks it by restoring it aside.
func Backup(ctx context.Context, dir, to string, logger *slog.Logger) error {
	switch _, err := os.Stat(storeFolder(dir)); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w %s", ErrNoSite, dir)
	case err != nil:
		return err
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s exists; name a new file", to)
	}
	partial := to + ".partial"
	file, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = copySite(ctx, dir, file, logger)
	if err == nil {
		err = checkBackup(ctx, file, filepath.Dir(to), logger)
	}
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("cannot back up %s: %w", dir, err), os.Remove(partial))
	}
	if err := os.Rename(partial, to); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(to))
}

// copySite has the process that runs the site make a backup, or makes it itself when
// none does.
func copySite(ctx context.Context, dir string, to io.Writer, logger *slog.Logger) error {
	path, done, err := socketPath(dir)
	if err != nil {
		return err
	}
	defer done()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return copyStopped(ctx, dir, to, logger)
	}
	if err != nil {
		return fmt.Errorf("cannot reach the site: %w", err)
	}
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return conn, nil },
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://site/backup", nil)
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("cannot ask the site for a backup: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(to, response.Body); err != nil {
		return fmt.Errorf("the site has stopped the backup; its log says why: %w", err)
	}
	return nil
}

// copyStopped makes a backup of a site that does not run.
func copyStopped(ctx context.Context, dir string, to io.Writer, logger *slog.Logger) error {
	hosts, err := OpenHosts(dir)
	if err != nil {
		return err
	}
	server, err := natsd.Start(ctx, natsd.Options{Dir: storeFolder(dir), Hosts: hosts, Holder: "osupgrade-agent backup", Log: logger})
	if err != nil {
		return err
	}
	nc, err := server.Connect()
	if err == nil {
		err = pack(ctx, nc, dir, to)
		nc.Close()
	}
	return errors.Join(err, server.Close())
}

// checkBackup checks that a backup can be restored, in a folder beside it.
func checkBackup(ctx context.Context, file io.ReadSeeker, beside string, logger *slog.Logger) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(beside, ".backup-check-")
	if err != nil {
		return err
	}
	nothing := func(*natsd.Server) error { return nil }
	return errors.Join(restoreAside(ctx, file, aside, logger, nothing), os.RemoveAll(aside))
}

// restoreAside restores a backup into a folder of its own, and calls then with the server
// of its store.
func restoreAside(ctx context.Context, file io.Reader, aside string, logger *slog.Logger, then func(*natsd.Server) error) error {
	if err := unpack(file, aside); err != nil {
		return fmt.Errorf("the backup is no good: %w", err)
	}
	server, err := startForRecovery(ctx, aside, io.Discard, logger)
	if err != nil {
		return err
	}
	nc, err := server.Connect()
	if err == nil {
		err = restoreStreams(ctx, nc, aside)
		nc.Close()
	}
	if err == nil {
		err = then(server)
	}
	return errors.Join(err, server.Close(), os.RemoveAll(filepath.Join(aside, streamsFolder)))
}

// Restore puts a backup in place of a site that is not there any more, and recovers it:
// what has happened since the backup is lost, and hosts may know of it.
func Restore(ctx context.Context, from, dir string, secrets Secrets, skip uint64, out io.Writer, logger *slog.Logger) error {
	for _, part := range siteParts {
		if _, err := os.Lstat(filepath.Join(dir, part)); err == nil {
			return fmt.Errorf("%s exists: a site is in %s already; move it away, or restore to another folder", filepath.Join(dir, part), dir)
		}
	}
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = os.Lstat(dir)
	made := errors.Is(err, fs.ErrNotExist)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(dir, ".restore-")
	if err != nil {
		return err
	}
	renew := func(server *natsd.Server) error {
		if err := secrets.restore(aside); err != nil {
			return err
		}
		return recoverAll(ctx, server, aside, skip, out)
	}
	if err := restoreAside(ctx, file, aside, logger, renew); err != nil {
		err = errors.Join(fmt.Errorf("cannot restore %s: %w", from, err), os.RemoveAll(aside))
		if made {
			err = errors.Join(err, os.Remove(dir))
		}
		return err
	}
	for _, part := range siteParts {
		if err := os.Rename(filepath.Join(aside, part), filepath.Join(dir, part)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot put the restored site in place: %w", err)
		}
	}
	return errors.Join(durable.SyncFolder(dir), os.RemoveAll(aside))
}
