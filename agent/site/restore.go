package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
)

// siteParts are what a site keeps in its folder, the store last: without it there is no
// site.
var siteParts = []string{"credentials", tenantsKind, "tls", auditFolder, audit.MarksOf(auditFolder), "guard.json", "store-marks.json", "store"}

// backupPath is where the socket of a site makes backups.
const backupPath = "/backup"

// backups answers with a backup.
func (s *Site) backups(dir string) http.Handler {
	return onMachine(func(w http.ResponseWriter, r *http.Request) {
		s.log.Info("making a backup")
		if err := pack(r.Context(), s.nats, s.audit, dir, w); err != nil {
			s.log.Warn("cannot make a backup", "error", err)
			panic(http.ErrAbortHandler) // Whoever reads must not take it for whole.
		}
	})
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
	conn, err := dialLocal(ctx, dir)
	if noneListens(err) {
		return copyStopped(ctx, dir, to, logger)
	}
	if err != nil {
		return fmt.Errorf("cannot reach the site: %w", err)
	}
	local := running(LocalOptions{Dir: dir}, conn)
	defer func() { _ = local.Close() }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://site"+backupPath, nil)
	if err != nil {
		return err
	}
	response, err := local.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("cannot ask the site for a backup: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the site makes no backup for user %s; run the command as the user of the site, or as root", userName(uint32(os.Geteuid())))
	}
	if _, err := io.Copy(to, response.Body); err != nil {
		return fmt.Errorf("the site has stopped the backup; its log says why: %w", err)
	}
	return nil
}

// copyStopped makes a backup of a site that does not run.
func copyStopped(ctx context.Context, dir string, to io.Writer, logger *slog.Logger) error {
	hosts, err := openHosts(dir)
	if err != nil {
		return err
	}
	server, err := natsd.Start(ctx, natsd.Options{Dir: storeFolder(dir), Hosts: hosts, Holder: "osupgrade-agent backup", Log: logger})
	if err != nil {
		return err
	}
	nc, err := server.Connect()
	if err == nil {
		logs := OpenAudit(dir)
		err = errors.Join(pack(ctx, nc, logs, dir, to), logs.Close())
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
