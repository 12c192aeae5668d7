package natsd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
)

// guest is a host with a key, and what the server tells it.
type guest struct {
	key  nkeys.KeyPair
	told chan error
}

func newGuest(t *testing.T, hosts *Hosts) guest {
	t.Helper()
	return newGuestAs(t, hosts, "h01")
}

func newGuestAs(t *testing.T, hosts *Hosts, host string) guest {
	t.Helper()
	seed, err := hosts.Add(Identity{Tenant: "acme", Host: host})
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	return guest{key: key, told: make(chan error, 100_000)}
}

func (g guest) connect(s *Server, options ...nats.Option) (*nats.Conn, error) {
	return s.ConnectHost("h01", g.key, append(options, nats.NoReconnect(), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		g.told <- err
	}))...)
}

// TestSubscriptions checks that neither the tokens of a subscription nor their
// number is without end, and that the agent has enough for hundreds of tenants.
func TestSubscriptions(t *testing.T) {
	t.Parallel()
	s, hosts, err := open(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g, inbox := newGuest(t, hosts), log.Subjects{Tenant: "acme"}.Inbox("h01")
	// Nothing is received: with the usual room for it, half a MiB for each of
	// thousands, the last Flush waits longer than it may on a busy machine.
	room := nats.SyncQueueLen(1)
	nc, err := g.connect(s, room)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.SubscribeSync(inbox + strings.Repeat(".a", maxSubTokens)); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := <-g.told; !strings.Contains(err.Error(), "too many tokens") {
		t.Errorf("deep subject: %v", err)
	}
	for i := range maxSubs + 1 {
		if _, err := nc.SubscribeSync(fmt.Sprintf("%s.%d", inbox, i)); err != nil {
			t.Fatal(err)
		}
	}
	_ = nc.Flush()
	if err := <-g.told; !errors.Is(err, nats.ErrMaxSubscriptionsExceeded) {
		t.Errorf("too many subscriptions: %v", err)
	}
	own, err := s.connectOwn("a test", room)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	for i := range 300 * 10 {
		if _, err := own.SubscribeSync(fmt.Sprintf("%s.%d", inbox, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(own.Flush(), own.LastError()); err != nil {
		t.Errorf("the agent itself: %v", err)
	}
}

// TestLongestName checks that a host with the longest name can call.
func TestLongestName(t *testing.T) {
	t.Parallel()
	s, _, err := open(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	own, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	acme, host := log.Subjects{Tenant: strings.Repeat("t", 63)}, "h"+strings.Repeat(".", 251)+"h"
	sub, err := own.SubscribeSync(acme.Call("*", ">"))
	if err != nil {
		t.Fatal(err)
	}
	if err := own.PublishRequest(acme.Call(host, "reply.18446744073709551615.prepare"), acme.Inbox(host)+".1234567890123456789012.12345678", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := sub.NextMsgWithContext(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestConnections checks that one key has only so many connections at a time,
// and that those that have ended do not count.
func TestConnections(t *testing.T) {
	t.Parallel()
	s, hosts, err := open(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first, second := newGuest(t, hosts), newGuestAs(t, hosts, "h02")
	connect := func(g guest) (*nats.Conn, error) {
		public, err := g.key.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return nats.Connect("nats://"+s.Address(), nats.Nkey(public, g.key.Sign), nats.NoReconnect())
	}
	for range 3 {
		var all []*nats.Conn
		for range maxPerKey {
			nc, err := connect(first)
			if err != nil {
				t.Fatalf("connection %d: %v", len(all)+1, err)
			}
			all = append(all, nc)
		}
		if nc, err := connect(first); !errors.Is(err, nats.ErrAuthorization) {
			nc.Close()
			t.Errorf("connection %d: %v", maxPerKey+1, err)
		}
		nc, err := connect(second)
		if err != nil {
			t.Fatalf("another key: %v", err)
		}
		for _, nc := range append(all, nc) {
			nc.Close()
		}
		for s.current().NumClients() > 2 { // The agent's own, for its marks and for keys.
			time.Sleep(time.Millisecond)
		}
	}
}

// TestSilentReader checks that a connection that does not read is cut off
// before much is kept for it.
func TestSilentReader(t *testing.T) {
	t.Parallel()
	s, hosts, err := open(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g := newGuest(t, hosts)
	acme := log.Subjects{Tenant: "acme"}
	reads, stop := context.WithCancel(t.Context())
	nc, err := g.connect(s, nats.InProcessServer(deaf{s, reads, t.Context()}))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.SubscribeSync(acme.Inbox("h01") + ".>"); err != nil {
		t.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	stop()
	own, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	body, most := make([]byte, 1<<20), 0
	for range 3 * maxPending / len(body) {
		if err := errors.Join(own.Publish(acme.Inbox("h01")+".x", body), own.Flush()); err != nil {
			t.Fatal(err)
		}
		all, err := s.current().Connz(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range all.Conns {
			most = max(most, c.Pending)
		}
	}
	if most > maxPending {
		t.Errorf("%d bytes were kept", most)
	}
}

// deaf connects, and reads nothing more after a while.
type deaf struct {
	server      *Server
	reads, ends context.Context
}

func (d deaf) InProcessConn() (net.Conn, error) {
	conn, err := d.server.InProcessConn()
	return deafConn{conn, d}, err
}

type deafConn struct {
	net.Conn
	deaf
}

func (d deafConn) Read(p []byte) (int, error) {
	if d.reads.Err() != nil {
		<-d.ends.Done()
	}
	return d.Conn.Read(p)
}
