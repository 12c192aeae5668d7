// Package natsd is the embedded NATS server, the lock on its store folder and
// the identities that may connect to it.
//
// It decides who may write to which subject, and what follows from damage in the
// store. It knows nothing of runs.
package natsd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/port"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Limits of the embedded server. They are explicit because the defaults depend
// on the disk's free space at start (nats-server #3641, #7654).
const (
	// maxStore is the limit of the store on disk, in bytes. It is never reached:
	// each stream has a limit of its own, and the server does not recover a stream
	// whose limit no longer fits into a total that was lowered.
	maxStore = 1 << 50
	// maxMemory is the limit of streams in memory, in bytes; there are none.
	maxMemory = 64 << 20
	// maxPayload is the largest message, in bytes: the event that opens a run of
	// 10,000 unhealthy hosts with the longest names.
	maxPayload = 8 << 20
	// maxSubTokens and maxSubs limit the subscriptions of a connection: a subject of
	// thousands of tokens costs the server 800 KB. Ours have 6 tokens, those of
	// JetStream fewer; the agent itself has about ten subscriptions per tenant.
	maxSubTokens, maxSubs = 16, 4096
	// maxPending is how much the server buffers for a connection that does not
	// read, in bytes. Beyond that it closes the connection. The limit holds for the
	// agent, too, and must hold most of what 1000 hosts send that report their
	// versions at once.
	maxPending = 8 * maxPayload
	// maxConnections is the number of connections of all hosts, maxPerKey that of
	// one key: a worker has one, and the connections of a host that lost its power
	// stay until they fail to answer a ping.
	maxConnections, maxPerKey = 1 << 16, 8
	// maxLine is the longest line of the protocol, in bytes: a call by a host with
	// the longest name contains that name twice.
	maxLine = 2048
	// pingInterval is how often the server pings a connection. Hosts send a
	// heartbeat every minute, so it need not be often.
	pingInterval = 5 * time.Minute
	// letInWithin is how long a connection may take to authenticate. With the
	// server's default of two seconds, ten thousand hosts that reconnect at once are
	// all disconnected before their handshakes end, and never get in.
	letInWithin = 15 * time.Second
	// dropsEach is how often dropped messages of a tenant's hosts are logged,
	// receiveAgain how long the agent waits before it reconnects to its hosts.
	dropsEach, receiveAgain = 10 * time.Second, 100 * time.Millisecond
	// errorsEach is how often errors of a connection of the agent are logged.
	errorsEach = 2 * time.Second
	// startTimeout bounds the recovery of the store at start.
	startTimeout = 2 * time.Minute
)

// Options say how to run the server.
type Options struct {
	// Name is the server's own; empty is "osupgrade-agent".
	Name string
	// Role is what the server is among its peers; the zero one is Single. Peers are
	// the others, host:port each, and Cluster is where they reach this one.
	Role    Role
	Peers   []string
	Cluster string
	// Dir is the store folder; it is made when missing and locked.
	Dir string
	// Listen is host:port for workers; empty serves this process alone.
	Listen string
	// TLS is required beyond loopback by those who call.
	TLS *tls.Config
	// Hosts knows who may connect as a host.
	Hosts *Hosts
	// Waits reports whether a host waits for approval with a key, which is told to nobody as a
	// foreign key; nil means that none does.
	Waits func(public string) bool
	// Rotated is called with the registration of another key that a host asks for, and calls
	// it; nil is nobody, and the key is registered.
	Rotated func(id Identity, public string, register func() error) error
	// Refused is called when a connection is refused for its key, with the host that it
	// claims to be and what to do; nil means nobody. It must not block.
	Refused func(tenant, host string, kind message.WarningKind, why string)
	// Holder says in words who runs the server, for a second one that finds
	// the folder locked.
	Holder string
	Log    *slog.Logger
}

// Role is what a server is among others.
type Role int

// The roles of a server.
const (
	// Single is a server that has no peers.
	Single Role = iota
	// Member is one of several servers that keep the same streams.
	Member
)

// clusterName is the name that the members of a site have in common.
const clusterName = "osupgrade"

// Server is a running embedded server. Connections from inside of the process
// reconnect by themselves when the store is reopened.
type Server struct {
	o    Options
	lock *durable.Lock
	own  nkeys.KeyPair
	dir  string
	// known is what the last check of the store has found; Seal does not read those files again.
	known *store.Known
	// address is where it listens; it stays the same when the store is reopened.
	address string
	// stop ends the watch over the store.
	stop     context.CancelFunc
	watching sync.WaitGroup
	mu       sync.RWMutex
	nats     *server.Server
	auth     *authenticator
	// marks keeps the high-water marks while the server runs.
	marks *marker
	// found is what the watch over the store has found last.
	found error
	// disk and opening throttle the log lines about the disk and about reopening
	// the store, why is the last error of reopening.
	disk, opening throttle.Failing
	why           string
	// keys is the connection on which hosts ask for other keys.
	keys *nats.Conn
	// closed is set once the folder may belong to another process.
	closed atomic.Bool
}

// commandTime is how long Start waits for a command on the machine of the site, which locks the
// folder of one that does not run for a moment.
const commandTime = 3 * time.Second

// Start locks the store folder, starts the server and returns when it is
// ready.
func Start(ctx context.Context, o Options) (*Server, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make store folder: %w", err)
	}
	// NATS has no lock of its own: two servers on one folder lose data.
	lock, err := durable.LockFolderWithin(ctx, filepath.Join(o.Dir, "lock"), o.Holder, commandTime)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, lock: lock, dir: o.Dir}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot start the embedded NATS server on %s: %w", o.Dir, err), lock.Close())
	}
	if o.Listen != "" {
		if err := s.takeRotations(); err != nil {
			s.marks.close()
			shutDown(s.current())
			return nil, errors.Join(err, lock.Close())
		}
	}
	watch, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.watching.Go(func() { s.watch(watch) })
	s.watching.Go(func() { s.watchKeys(watch) })
	return s, nil
}

// open opens the store for the first time.
func (s *Server) open(ctx context.Context) (err error) {
	if err := s.prepare(); err != nil {
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

// prepare makes the store ready for a server, and decides what follows from
// damage: no server runs on it. A single one has nobody to get a damaged stream
// from; a member has.
func (s *Server) prepare() error {
	known, err := store.Check(s.dir)
	if _, damaged := errors.AsType[*store.Damage](err); damaged && s.o.Role == Member {
		return fmt.Errorf("%w; remove %s to have it copied from the other servers", err, s.dir)
	}
	if err != nil {
		return err
	}
	s.known = known
	return store.Prepare(s.dir)
}

// watchKeys ends the connections of keys that are removed.
func (s *Server) watchKeys(ctx context.Context) {
	s.o.Hosts.keys.Watch(ctx, func() {
		s.mu.RLock()
		auth := s.auth
		s.mu.RUnlock()
		auth.revoke()
	})
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
	auth.disconnect = func(id uint64) { _ = embedded.DisconnectClientByID(id) } // It may have ended.
	log := newLogger(o.Log)
	embedded.SetLoggerV2(log, false, false, false)
	embedded.Start()
	if err := ready(ctx, embedded, log); err != nil {
		shutDown(embedded)
		return port.Explain(listen, err)
	}
	s.replace(embedded, auth)
	marks, err := s.mark(o.Log)
	if err != nil {
		shutDown(embedded)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks = marks
	return nil
}

// mark begins to keep high-water marks.
func (s *Server) mark(log *slog.Logger) (*marker, error) {
	conn, err := s.connectOwn("osupgrade-agent marks")
	if err != nil {
		return nil, err
	}
	var keeping throttle.Failing
	m, err := startMarker(s.current(), s.dir, conn, func(err error) {
		keeping.Note(log, time.Now(), err, "cannot write the high-water marks of the store; trying again", "the high-water marks of the store can be written again")
	})
	if err != nil {
		conn.Close()
	}
	return m, err
}

// options sets every value that the agent relies on.
func options(o Options, auth server.Authentication) (*server.Options, error) {
	options := &server.Options{
		ServerName: cmp.Or(o.Name, "osupgrade-agent"), NoSigs: true, NoLog: true, DontListen: o.Listen == "",
		JetStream: true, StoreDir: o.Dir, SyncAlways: durability.SyncAlways,
		JetStreamMaxStore: maxStore, JetStreamMaxMemory: maxMemory, MaxPayload: maxPayload,
		MaxPending: maxPending, MaxConn: maxConnections, MaxSubTokens: maxSubTokens, MaxSubs: maxSubs, MaxControlLine: maxLine,
		PingInterval: pingInterval, TLSTimeout: letInWithin.Seconds(), AuthTimeout: letInWithin.Seconds(),
		JetStreamLimits:            server.JSLimitOpts{DefaultMaxConsumers: 1000},
		CustomClientAuthentication: auth, AlwaysEnableNonce: true,
		DisableJetStreamBanner: true, TLSConfig: o.TLS, TLS: o.TLS != nil,
		NoSystemAccount: false,
	}
	if err := o.cluster(options); err != nil || o.Listen == "" {
		return options, err
	}
	var err error
	options.Host, options.Port, err = splitAddress("nats-listen", o.Listen)
	return options, err
}

// cluster sets how a member reaches the others.
func (o Options) cluster(options *server.Options) (err error) {
	if o.Role == Single {
		if len(o.Peers) > 0 {
			return fmt.Errorf("a single server has no peers, and this one has %d", len(o.Peers))
		}
		return nil
	}
	if o.Name == "" || len(o.Peers) == 0 {
		return errors.New("a member has a name of its own and peers")
	}
	options.Cluster.Name = clusterName
	if options.Cluster.Host, options.Cluster.Port, err = splitAddress("cluster", o.Cluster); err != nil {
		return err
	}
	for _, peer := range o.Peers {
		options.Routes = append(options.Routes, &url.URL{Scheme: "nats", Host: peer})
	}
	return nil
}

// splitAddress reads host:port; port 0 takes any that is free.
func splitAddress(option, address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, fmt.Errorf("%s %q is not host:port: %w", option, address, err)
	}
	if port, err = strconv.Atoi(text); err != nil {
		return "", 0, fmt.Errorf("%s %q has no port number", option, address)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
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
	return awaitHealthy(s.Healthz)
}

// Address is where workers connect, host:port; empty without a listener.
func (s *Server) Address() string { return s.address }

// InProcessConn connects from inside of the process, to whichever server runs.
func (s *Server) InProcessConn() (net.Conn, error) { return s.current().InProcessConn() }

// Connect connects the agent itself, inside of the process, with all rights.
func (s *Server) Connect() (*nats.Conn, error) {
	return s.connectOwn("osupgrade-agent")
}

// Receive connects the agent as Connect does, to receive what the hosts of one
// tenant send. Use it for nothing else: hosts that flood it keep only this
// connection busy, not that of another tenant nor the one to the log. Messages
// that are larger than any of an honest host are dropped.
func (s *Server) Receive(tenant string) (*nats.Conn, error) {
	from := receiver{server: s, tenant: tenant, log: throttle.Log(s.o.Log.With("tenant", tenant), 1, dropsEach)}
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
	// After the first Close the folder may belong to another process.
	if !s.closed.CompareAndSwap(false, true) {
		return nil
	}
	s.stop()
	s.watching.Wait()
	if s.keys != nil {
		s.keys.Close()
	}
	s.marks.close()
	// After a full disk the server's own notes are wrong: the store gets no seal,
	// and is left as after a crash.
	finish := func() error { return store.Seal(s.dir, s.known) }
	if !s.current().Running() || awaitHealthy(s.current().Healthz) != nil {
		finish = s.prepare
	}
	shutDown(s.current())
	return errors.Join(finish(), s.lock.Close())
}
