package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/certificate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
)

// toldEach is how many attempts lie between two that are told of: half a minute
// at first, and up to two of them later.
const toldEach = 5

// deniedEach is how often it is told that the site does not permit something: each heartbeat and
// each request for the lease is denied to a worker with the key of another host.
const deniedEach = time.Minute

// unknownEach is how often it is told that the site does not know the key: a host may wait for
// approval for days.
const unknownEach = time.Hour

// dial connects to the log. It waits for a site that is not up yet: a host may
// well boot before it.
func (c *workerCommand) dial(log *slog.Logger) (*jetstream.HostLog, error) {
	key, public, err := c.readKey()
	if err != nil {
		return nil, err
	}
	own := &contact{worker: c, log: log}
	options := append(jetstream.RetryOptions(),
		nats.Name(c.Tenant+"/"+c.Host), nats.Nkey(public, key.Sign), nats.RetryOnFailedConnect(true),
		// A key that is refused now may be added to the site at any time.
		nats.IgnoreAuthErrorAbort(),
		nats.ConnectHandler(func(*nats.Conn) { log.Info("connected to the log", "url", c.NATSURL) }),
		nats.DisconnectErrHandler(own.lost),
		nats.ReconnectErrHandler(own.failed), nats.CustomReconnectDelay(own.wait),
	)
	if c.NATSCAFile != "" {
		// A warning and no error: work that was begun is finished without a site.
		if err := certificate.CheckTrusted(c.NATSCAFile, time.Now()); err != nil {
			log.Warn("no site can be trusted; correct the file nats-ca-file: it is read at each connection", "error", err)
		}
		options = append(options, nats.RootCAs(c.NATSCAFile))
	}
	return jetstream.Dial(c.Tenant, c.Host, func(more ...nats.Option) (*nats.Conn, error) {
		return nats.Connect(c.NATSURL, append(append(options, more...), own.overhear)...)
	})
}

// readKey returns the host's key and its public part.
func (c *workerCommand) readKey() (nkeys.KeyPair, string, error) {
	seed, err := readSecret("key-file", c.KeyFile)
	if err != nil {
		return nil, "", err
	}
	key, err := nkeys.ParseDecoratedNKey(seed)
	if err != nil {
		return nil, "", fmt.Errorf("key-file: %s holds no key; make one with osupgrade-agent credentials host", c.KeyFile)
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, "", fmt.Errorf("key-file: %s holds no key of a host: %w", c.KeyFile, err)
	}
	return key, public, nil
}

// contact tells why a worker cannot reach the log: at once, and then every so
// often.
type contact struct {
	worker *workerCommand
	log    *slog.Logger
	// nats is the connection, once an attempt has failed or it was lost.
	nats atomic.Pointer[nats.Conn]

	mu sync.Mutex
	// reason is why the last attempt failed.
	reason error
	// unknown is when it was told that the site does not know the key; zero if another reason was
	// told since.
	unknown time.Time
	// denied is when it was told last that the site does not permit something.
	denied time.Time
	// since is when the connection was lost; zero while there is one.
	since time.Time
}

// failed takes note of an attempt that did not get as far as the site's answer
// to the key; of the very first one whatever became of it.
func (c *contact) failed(nc *nats.Conn, err error) {
	c.mu.Lock()
	c.reason = err
	c.mu.Unlock()
	if c.nats.Swap(nc) == nil {
		c.tell(err)
	}
}

// lost tells of a connection that has ended. One that the worker closed itself
// is none.
func (c *contact) lost(nc *nats.Conn, err error) {
	if !nc.IsClosed() {
		// Why it cannot be had again is known to it alone: nats.go calls nobody when the
		// TLS handshake of a later attempt fails.
		c.nats.Store(nc)
		c.mu.Lock()
		c.since = time.Now()
		c.mu.Unlock()
		c.log.Warn("not connected to the log", "url", c.worker.NATSURL, "error", err)
	}
}

// found tells of a connection that is back after it was lost.
func (c *contact) found(nc *nats.Conn) {
	c.mu.Lock()
	away := time.Since(c.since)
	c.since, c.reason, c.unknown = time.Time{}, nil, time.Time{}
	c.mu.Unlock()
	c.log.Info("connected again", "url", nc.ConnectedUrlRedacted(), "after", away.Round(time.Millisecond))
}

// wait returns how long to wait after so many attempts that failed since there
// was a connection. It is where an attempt that the site answered with an
// error becomes known.
func (c *contact) wait(attempts int) time.Duration {
	if attempts%toldEach == 0 {
		c.mu.Lock()
		err := c.reason
		c.mu.Unlock()
		if nc := c.nats.Load(); nc != nil && nc.LastError() != nil {
			err = nc.LastError()
		}
		c.tell(err)
	}
	return jetstream.ReconnectDelay(attempts)
}

func (c *contact) tell(err error) {
	unknown, now := errors.Is(err, nats.ErrAuthorization), time.Now()
	c.mu.Lock()
	told := unknown && !c.unknown.IsZero() && now.Sub(c.unknown).Abs() < unknownEach
	switch {
	case !unknown:
		c.unknown = time.Time{}
	case !told:
		c.unknown = now
	}
	c.mu.Unlock()
	if told {
		return
	}
	if unknown {
		err = fmt.Errorf("the site does not know the key in %s for host %s of tenant %s; approve the host there with osupgrade-agent approve-host if it waits for that, or else create a key with osupgrade-agent credentials host: %w",
			c.worker.KeyFile, c.worker.Host, c.worker.Tenant, err)
	}
	c.log.Warn("cannot connect to the log, retrying", "url", c.worker.NATSURL, "error", err)
}

// overhear hears the errors of a connection, and that it is back, before whoever else
// does.
func (c *contact) overhear(o *nats.Options) error {
	back := o.ReconnectedCB
	o.ReconnectedCB = func(nc *nats.Conn) {
		c.found(nc)
		if back != nil {
			back(nc)
		}
	}
	next := o.AsyncErrorCB
	o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
		c.tellDenied(err)
		if next != nil {
			next(nc, sub, err)
		}
	}
	return nil
}

// tellDenied tells of a key that is good, but not for this host.
func (c *contact) tellDenied(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.denied.IsZero() || now.Sub(c.denied).Abs() >= deniedEach {
		c.denied = now
		c.log.Warn("the site does not permit this; is the key that of another host or tenant?",
			"key-file", c.worker.KeyFile, "host", c.worker.Host, "tenant", c.worker.Tenant, "error", err)
	}
}
