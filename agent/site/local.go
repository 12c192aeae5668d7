package site

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Only the process that holds the lock of a site's folder writes in it. Commands on the
// machine of the site send requests to its API: over a socket to the process that runs the
// site, or, where none does, to the same handler in the process of the command, which holds
// the lock meanwhile.

// socketName is the socket of a running site. It is in the folder of the store, which only
// the site's user may enter.
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

// serveLocal serves the API and backups on the site's socket.
func (s *Site) serveLocal(running context.Context, dir string, handler http.Handler) error {
	listener, err := listenLocal(dir)
	if err != nil {
		return err
	}
	requests := http.NewServeMux()
	requests.Handle(backupPath, s.backups(dir))
	requests.Handle("POST "+recordPath, s.records())
	requests.Handle("/", handler)
	s.local = &http.Server{
		ReadHeaderTimeout: headerTimeout, BaseContext: func(net.Listener) context.Context { return running }, ConnContext: fromMachine,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = v1.AuditLocal
			requests.ServeHTTP(w, r)
		}),
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.parts.Go(func() { _ = s.local.Serve(listener) })
	return nil
}

// fromMachine is http.Server.ConnContext of the socket: root and the user of the site need no
// token. The kernel says who has connected (unix(7), SO_PEERCRED).
func fromMachine(ctx context.Context, conn net.Conn) context.Context {
	uid, err := peerOf(conn)
	if err != nil || uid != 0 && int(uid) != os.Geteuid() {
		return ctx
	}
	return api.OnMachine(ctx, userName(uid))
}

func peerOf(conn net.Conn) (uid uint32, err error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("the connection is not one of a socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	if failed := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); failed != nil || err != nil {
		return 0, errors.Join(failed, err)
	}
	return peer.Uid, nil
}

// userName returns the name of a user of this machine.
func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}

// Local is how a command on the machine of a site reaches its API.
type Local struct {
	// RoundTripper sends requests that need no token.
	http.RoundTripper

	// Stopped tells that no process runs the site: this one holds the lock of its folder.
	Stopped bool
	close   func() error
}

// Close ends the use of the site.
func (l *Local) Close() error { return l.close() }

// LocalOptions say which site it is.
type LocalOptions struct {
	// Dir is its folder. Prepare is called before this process prepares that of a site that
	// does not run; nil means that nothing speaks against it.
	Dir     string
	Prepare func() error
	// Holder says in words who asks.
	Holder string
	// CAFile and Credentials are as in Options, for a site that does not run.
	CAFile, Credentials string
	// At is called at each action of a change of the strongbox; nil means nobody.
	At  func(label string)
	Log *slog.Logger
}

// localWait is how long a command waits for a site that starts or stops, and for another
// command.
const localWait = 20 * time.Second

// OpenLocal connects with the site in a folder.
func OpenLocal(ctx context.Context, o LocalOptions) (*Local, error) {
	waiting, stop := context.WithTimeout(ctx, localWait)
	defer stop()
	for prepared := false; ; {
		conn, err := dialLocal(ctx, o.Dir)
		if err == nil {
			return running(o, conn), nil
		}
		if !noneListens(err) {
			return nil, fmt.Errorf("cannot reach the site: %w", err)
		}
		if !prepared {
			err := o.prepare()
			if by := startedBy(o.Dir); err != nil && by != "" {
				if wait.Sleep(waiting, 50*time.Millisecond) != nil {
					return nil, fmt.Errorf("the site in %s is starting (%s); try again in a moment", o.Dir, by)
				}
				continue
			}
			if err != nil {
				return nil, err
			}
			prepared = true
		}
		lock, err := durable.LockFolder(lockFile(o.Dir), o.Holder)
		if err == nil {
			return stopped(ctx, o, lock)
		}
		if _, used := errors.AsType[*durable.InUseError](err); !used || wait.Sleep(waiting, 50*time.Millisecond) != nil {
			return nil, err
		}
	}
}

// prepare makes what the lock of the folder needs.
func (o LocalOptions) prepare() error {
	if o.Prepare != nil {
		if err := o.Prepare(); err != nil {
			return err
		}
	}
	return os.MkdirAll(storeFolder(o.Dir), 0o700)
}

// startedBy returns which process has the folder of a site, also if it is not complete because
// the site starts for the first time; empty if none has it.
func startedBy(dir string) string {
	if _, err := os.Stat(lockFile(dir)); err != nil {
		return "" // To try the lock would make the file.
	}
	lock, err := durable.LockFolder(lockFile(dir), "a look who has it")
	if used, ok := errors.AsType[*durable.InUseError](err); ok {
		return used.By
	}
	if err == nil {
		_ = lock.Close()
	}
	return ""
}

func lockFile(dir string) string { return filepath.Join(storeFolder(dir), "lock") }

// noneListens reports whether an error says that no process listens on the socket.
func noneListens(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}

func dialLocal(ctx context.Context, dir string) (net.Conn, error) {
	path, done, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	defer done()
	return (&net.Dialer{}).DialContext(ctx, "unix", path)
}

// running reaches the process that runs the site; its first request uses a connection that
// there is.
func running(o LocalOptions, first net.Conn) *Local {
	ready := make(chan net.Conn, 1)
	ready <- first
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		select {
		case conn := <-ready:
			return conn, nil
		default:
			return dialLocal(ctx, o.Dir)
		}
	}}
	return &Local{RoundTripper: transport, close: func() error {
		transport.CloseIdleConnections()
		select {
		case conn := <-ready:
			return conn.Close()
		default:
			return nil
		}
	}}
}

// stopped serves the API of a site that does not run, in this process.
func stopped(ctx context.Context, o LocalOptions, lock *durable.Lock) (*Local, error) {
	s := &Site{log: o.Log}
	handler, err := s.stopped(Options{Dir: o.Dir, CAFile: o.CAFile, Credentials: o.Credentials, Log: o.Log, At: o.At})
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	as := api.OnMachine(context.WithoutCancel(ctx), userName(uint32(os.Geteuid()))) //nolint:gosec // it is no negative number
	return &Local{RoundTripper: inProcess{handler, as}, Stopped: true, close: func() error { return errors.Join(s.audit.Close(), lock.Close()) }}, nil
}

// stopped returns the API of a site that does not run: what the lock of its folder permits.
func (s *Site) stopped(o Options) (http.Handler, error) {
	var err error
	if s.Identity, err = openIdentity(o.Dir, o.at("join")); err != nil {
		return nil, err
	}
	s.audit = OpenAudit(o.Dir)
	if o.Tenants, err = Served(o.Dir); err != nil {
		return nil, err
	}
	objects, err := openTenants(o.Dir)
	if err != nil {
		return nil, err
	}
	joining, err := s.joining(o)
	if err != nil {
		return nil, err
	}
	s.checkAudit()
	s.box = strongbox.Open(strongbox.Options{Dir: StrongboxFolder(o.Dir), Credentials: o.Credentials, At: o.At})
	maintenance := s.maintenance(o.Dir)
	maintenance.ResetStrongbox = func() ([]string, error) { return resetStrongbox(o.Dir) }
	all := stoppedTenants{&tenants{site: s, o: o, objects: objects}}
	requests := http.NewServeMux()
	requests.Handle("POST "+recordPath, s.records())
	requests.Handle("/", api.New(api.Options{
		Tenants: all, TenantObjects: all, Tokens: s.Tokens, Logins: s.Logins, Policies: s.Policies, Joining: joining, HostKeys: hostKeys{s.Hosts}, Strongbox: s.box, Maintenance: maintenance, Audit: s.audit, Log: o.Log,
	}))
	return requests, nil
}

// stoppedTenants are the tenants of a site that does not run.
type stoppedTenants struct{ *tenants }

// Controller implements api.Tenants: no tenant has one.
func (t stoppedTenants) Controller(name string) (api.Controller, bool) {
	return nil, t.configured(name)
}

// All implements api.Tenants.
func (t stoppedTenants) All() map[string]api.Controller {
	all := map[string]api.Controller{}
	for _, name := range t.o.Tenants {
		all[name] = nil
	}
	return all
}

// Write implements api.TenantObjects.
func (t stoppedTenants) Write(context.Context, tenant.Tenant, bool, credential.Condition) (tenant.Tenant, error) {
	return tenant.Tenant{}, api.ErrStopped
}

// Remove implements api.TenantObjects.
func (t stoppedTenants) Remove(context.Context, string, string, credential.Condition) error {
	return api.ErrStopped
}

// inProcess sends requests to a handler in this process.
type inProcess struct {
	handler http.Handler
	// as is the context of who sends them.
	as context.Context //nolint:containedctx // it says who sends a request, and never ends
}

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	request := r.Clone(t.as)
	request.RequestURI, request.RemoteAddr = r.URL.RequestURI(), v1.AuditLocal
	if request.Body == nil {
		request.Body = http.NoBody
	}
	w := &answerWriter{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(w, request)
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// answerWriter keeps an answer in memory.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (w *answerWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *answerWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *answerWriter) Write(part []byte) (int, error) { return w.body.Write(part) }

// recordPath is where commands on the machine say what they have done to the site without its
// API, such as a backup. With the query "all" each tenant's log has the record.
const recordPath = "/record"

// records keeps such records.
func (s *Site) records() http.Handler {
	return onMachine(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, v1.MaxBody))
		var record v1.AuditRecord
		if err == nil {
			err = json.Unmarshal(body, &record)
		}
		if err != nil {
			http.Error(w, "cannot read the record: "+err.Error(), http.StatusBadRequest)
			return
		}
		record.By, _ = api.MachineUser(r.Context())
		record.As, record.From, record.Result = v1.AuditMachine, v1.AuditLocal, v1.AuditDone
		if err := s.keepRecord(record, r.URL.Query().Has("all")); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
}

// keepRecord keeps a record in the log of what belongs to all tenants, or of all.
func (s *Site) keepRecord(r v1.AuditRecord, ofEach bool) error {
	logs := []string{audit.AllTenants}
	if ofEach {
		names, err := s.audit.Tenants()
		if err != nil {
			return err
		}
		logs = append(slices.DeleteFunc(names, func(name string) bool { return name == audit.AllTenants }), logs...)
	}
	var errs []error
	for _, r.Tenant = range logs {
		errs = append(errs, s.audit.Keep(r))
	}
	return errors.Join(errs...)
}

// Record has the site keep a record of what a command has done, in the log of each tenant or
// in that of what belongs to all.
func (l *Local) Record(ctx context.Context, r v1.AuditRecord, ofEach bool) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	path := "http://site" + recordPath
	if ofEach {
		path += "?all"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := l.RoundTrip(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, v1.MaxBody))
	return errors.Join(errors.New(strings.TrimSpace(string(text))), err)
}

// onMachine returns the handler of what only commands on the machine may ask for.
func onMachine(handler http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, local := api.MachineUser(r.Context()); !local {
			http.Error(w, "only root and the user of the site may do this", http.StatusForbidden)
			return
		}
		handler(w, r)
	})
}
