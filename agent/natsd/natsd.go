// Package natsd is the embedded NATS server, the lock on its store folder and
// the identities that may connect to it.
//
// It decides who may write to which subject. It knows nothing of runs.
package natsd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/natsd/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/throttle"
)

// Limits of the embedded server. They are explicit because the defaults depend
// on the disk's free space at start (nats-server #3641, #7654).
const (
	// maxStore bounds the store on disk, in bytes: not at all, because each
	// stream has a limit of its own, and the server does not recover a stream
	// whose limit no longer fits into a total that was made smaller.
	maxStore = 1 << 50
	// maxMemory bounds streams in memory, of which we have none, in bytes.
	maxMemory = 64 << 20
	// maxPayload holds what opens a run of 10,000 hosts with the longest names,
	// none of them well, in bytes.
	maxPayload = 8 << 20
	// maxSubTokens and maxSubs bound what somebody subscribes to: a subject of
	// thousands of tokens costs the server 800 KB. Ours have 6 tokens, those of
	// JetStream fewer; the agent itself subscribes to about ten for each tenant.
	maxSubTokens, maxSubs = 16, 4096
	// maxPending is what the server keeps for a connection that does not read, in
	// bytes. Beyond that it is cut off. It is the agent's own limit, too, and of
	// 1000 hosts that all report their versions at once it must hold most.
	maxPending = 8 * maxPayload
	// maxConnections is how many there may be of all hosts, beyond which none is
	// let in, maxPerKey how many of one key: a worker has one, and those of a
	// host that lost its power are there until they do not answer a ping.
	maxConnections, maxPerKey = 1 << 16, 8
	// maxLine bounds a line of the protocol, in bytes: the longest is a call by a
	// host with the longest name, which is in it twice.
	maxLine = 2048
	// pingInterval is how often a connection is asked whether it is still there
	// that says nothing by itself: hosts say something each minute.
	pingInterval = 5 * time.Minute
	// letInWithin is how long a connection may take until it is let in. With the
	// server's own two seconds ten thousand hosts that come back at once are all
	// cut off before their handshakes are done, and never get in.
	letInWithin = 15 * time.Second
	// dropsEach is how often it is logged that something of a tenant's hosts was
	// dropped, receiveAgain how long the agent does not hear hosts after it was
	// cut off from them.
	dropsEach, receiveAgain = 10 * time.Second, 100 * time.Millisecond
	// errorsEach is how often errors of a connection of the agent are logged.
	errorsEach = 2 * time.Second
	// startTimeout bounds the recovery of the store at start.
	startTimeout = 2 * time.Minute
)

// Options say how to run the server.
type Options struct {
	// Dir is the store folder; it is made when missing and locked.
	Dir string
	// Listen is host:port for workers; empty serves this process alone.
	Listen string
	// TLS is required beyond loopback by those who call.
	TLS *tls.Config
	// Hosts knows who may connect as a host.
	Hosts *Hosts
	// Holder says in words who runs the server, for a second one that finds
	// the folder locked.
	Holder string
	Log    *slog.Logger
}

// Server is a running embedded server. Whoever is connected from inside of the
// process connects again by himself when the store is opened again.
type Server struct {
	o    Options
	lock *durable.Lock
	own  nkeys.KeyPair
	dir  string
	// address is where it listens, also once it was opened again.
	address string
	// stop ends the watch over the store.
	stop     context.CancelFunc
	watching sync.WaitGroup
	mu       sync.RWMutex
	nats     *server.Server
	// marks are kept while the server runs.
	marks *marker
	// disk and opening are the watch's troubles with the disk and with opening the
	// store again, why is why that failed the last time.
	disk, opening throttle.Failing
	why           string
	// closed tells that the folder may be somebody else's.
	closed atomic.Bool
}

// Start locks the store folder, starts the server and returns when it is
// ready.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make store folder: %w", err)
	}
	// NATS has no lock of its own: two servers on one folder lose data.
	lock, err := durable.LockFolder(filepath.Join(o.Dir, "lock"), o.Holder)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, lock: lock, dir: o.Dir}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the embedded NATS server on %s: %w", o.Dir, err), lock.Close())
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.watching.Go(func() { s.watch(watch) })
	return s, nil
}

// open opens the store for the first time.
func (s *Server) open(ctx context.Context) (err error) {
	if err := prepare(s.dir); err != nil {
		return err
	}
	if s.own, err = nkeys.CreateUser(); err != nil {
		return err
	}
	if err := s.start(ctx, s.o.Listen); err != nil {
		return err
	}
	if address := s.nats.Addr(); address != nil {
		s.address = address.String()
	}
	return nil
}

// prepare makes a store ready for a server. A server that is alone has nobody to
// get a damaged stream from: it refuses to run.
func prepare(dir string) error {
	if err := store.Check(dir); err != nil {
		return err
	}
	return store.Prepare(dir)
}

// start starts a server on the store.
func (s *Server) start(ctx context.Context, listen string) error {
	ownKey, err := s.own.PublicKey()
	if err != nil {
		return err
	}
	o := s.o
	o.Listen = listen
	auth := newAuthenticator(ownKey, o)
	options, err := options(o, auth)
	if err != nil {
		return err
	}
	embedded, err := server.NewServer(options)
	if err != nil {
		return err
	}
	auth.open = func(id uint64) bool { return embedded.GetClient(id) != nil }
	log := newLogger(o.Log)
	embedded.SetLoggerV2(log, false, false, false)
	embedded.Start()
	if err := ready(ctx, embedded, log); err != nil {
		shutDown(embedded)
		return err
	}
	s.replace(embedded)
	if s.marks, err = s.mark(o.Log); err != nil {
		shutDown(embedded)
	}
	return err
}

// mark begins to keep marks.
func (s *Server) mark(log *slog.Logger) (*marker, error) {
	conn, err := s.connectOwn("osupgrade-agent marks")
	if err != nil {
		return nil, err
	}
	var keeping throttle.Failing
	m, err := startMarker(s.current(), s.dir, conn, func(err error) {
		keeping.Note(log, time.Now(), err, "cannot keep how far the store has come; trying again", "how far the store has come can be kept again")
	})
	if err != nil {
		conn.Close()
	}
	return m, err
}

// options sets every value that the agent depends on (agent.md 2.1).
func options(o Options, auth server.Authentication) (*server.Options, error) {
	options := &server.Options{
		ServerName: "osupgrade-agent", NoSigs: true, NoLog: true, DontListen: o.Listen == "",
		JetStream: true, StoreDir: o.Dir, SyncAlways: durability.SyncAlways,
		JetStreamMaxStore: maxStore, JetStreamMaxMemory: maxMemory, MaxPayload: maxPayload,
		MaxPending: maxPending, MaxConn: maxConnections, MaxSubTokens: maxSubTokens, MaxSubs: maxSubs, MaxControlLine: maxLine,
		PingInterval: pingInterval, TLSTimeout: letInWithin.Seconds(), AuthTimeout: letInWithin.Seconds(),
		JetStreamLimits:            server.JSLimitOpts{DefaultMaxConsumers: 1000},
		CustomClientAuthentication: auth, AlwaysEnableNonce: true,
		DisableJetStreamBanner: true, TLSConfig: o.TLS, TLS: o.TLS != nil,
		NoSystemAccount: false,
	}
	if o.Listen == "" {
		return options, nil
	}
	host, port, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return nil, fmt.Errorf("nats-listen %q is not host:port: %w", o.Listen, err)
	}
	if options.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("nats-listen %q has no port number", o.Listen)
	}
	options.Host = host
	if options.Port == 0 {
		options.Port = server.RANDOM_PORT
	}
	return options, nil
}

// ready waits until the store is recovered. A fatal error of the server is
// only a line in its log: it goes on, never to become ready.
func ready(ctx context.Context, s *server.Server, log *logger) error {
	done := make(chan bool, 1)
	go func() { done <- s.ReadyForConnections(startTimeout) }()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case text := <-log.fatal:
		return errors.New(text)
	case ok := <-done:
		if !ok {
			return fmt.Errorf("it was not ready after %s", startTimeout)
		}
	}
	return healthy(s.Healthz)
}

// Address is where workers connect, host:port; empty without a listener.
func (s *Server) Address() string { return s.address }

// InProcessConn connects from inside of the process, to whichever server runs.
func (s *Server) InProcessConn() (net.Conn, error) { return s.current().InProcessConn() }

// Connect connects the agent itself, inside of the process, with all rights.
func (s *Server) Connect() (*nats.Conn, error) {
	return s.connectOwn("osupgrade-agent")
}

// Receive connects the agent as Connect does, for what the hosts of one tenant
// send. It is to be used for nothing else: whatever they send without end keeps
// this connection busy, and that of no other tenant, nor the one to the log.
// What is larger than anything that a host has to say does not come through.
func (s *Server) Receive(tenant string) (*nats.Conn, error) {
	from := receiver{server: s, log: throttle.Log(s.o.Log.With("tenant", tenant), 1, dropsEach)}
	return s.connectOwn("osupgrade-agent hosts of "+tenant, nats.InProcessServer(from), nats.ReconnectWait(receiveAgain))
}

// connectOwn connects the agent itself. Without a handler nats.go prints each
// error to standard error, and hosts can cause thousands in a second.
func (s *Server) connectOwn(name string, more ...nats.Option) (*nats.Conn, error) {
	log := throttle.Log(s.o.Log.With("connection", name), 1, errorsEach)
	return s.connect(name, s.own, append(more, nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
		subject := ""
		if sub != nil {
			subject = short(sub.Subject)
		}
		log.Warn("error on a connection of the agent", "subject", subject, "error", err)
	}))...)
}

// ConnectHost connects a host of this process with that host's rights.
func (s *Server) ConnectHost(name string, key nkeys.KeyPair, more ...nats.Option) (*nats.Conn, error) {
	return s.connect(name, key, more...)
}

func (s *Server) connect(name string, key nkeys.KeyPair, more ...nats.Option) (*nats.Conn, error) {
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	all := append([]nats.Option{
		nats.Name(name), nats.InProcessServer(s), nats.Nkey(public, key.Sign), nats.MaxReconnects(-1), nats.Timeout(letInWithin),
	}, more...)
	return nats.Connect("", all...)
}

// Close stops the server, seals the store folder and gives it up. Damage that
// was done while it ran is an error.
func (s *Server) Close() error {
	// Whoever closes twice may not touch what is somebody else's by then.
	if !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	s.stop()
	s.watching.Wait()
	s.marks.close()
	// After a full disk the server's own notes are wrong: the store gets no seal,
	// and is left as after a crash.
	finish := store.Seal
	if !s.current().Running() || healthy(s.current().Healthz) != nil {
		finish = prepare
	}
	shutDown(s.current())
	return errors.Join(finish(s.dir), s.lock.Close())
}
