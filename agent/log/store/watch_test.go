package store

import (
	"bufio"
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// breaking is a bucket whose watches end after their first entry, as they do
// when the store is gone.
type breaking struct{ jetstream.KeyValue }

func (breaking) Watch(context.Context, string, ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	updates := make(chan jetstream.KeyValueEntry, 1)
	updates <- host{}
	close(updates)
	return ended{updates: updates}, nil
}

type ended struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (e ended) Updates() <-chan jetstream.KeyValueEntry { return e.updates }
func (ended) Stop() error                               { return nil }

type host struct{ jetstream.KeyValueEntry }

func (host) Revision() uint64 { return 1 }
func (host) Value() []byte    { return []byte(`{"format":1,"name":"h01"}`) }

// TestBrokenWatch checks that a list which breaks off is an error: half of the
// hosts would be taken for all.
func TestBrokenWatch(t *testing.T) {
	t.Parallel()
	s := &Store{hosts: divide(nil, breaking{})}
	if hosts, err := s.Hosts(t.Context(), "acme"); !errors.Is(err, errWatchEnded) {
		t.Errorf("the hosts are %+v, %v", hosts, err)
	}
}

// failing is a bucket of which all tenants cannot be watched, or only until the watch breaks off.
type failing struct {
	breaking
	err error
}

func (f failing) WatchAll(ctx context.Context, options ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.Watch(ctx, ">", options...)
}

func (host) Key() string { return "acme.h01" }

func (breaking) Bucket() string { return "osu-leases" }

// TestLostWatchIsFollowedAnew checks that what ends the watch of all tenants is log.ErrStale:
// anything else would end the controllers of all tenants.
func TestLostWatchIsFollowedAnew(t *testing.T) {
	t.Parallel()
	refused := errors.New("no more consumers")
	for name, row := range map[string]struct {
		err, want error
	}{
		"it cannot begin": {refused, refused},
		"it breaks off":   {nil, nil},
	} {
		s := &Store{leases: divide(unanswered{}, failing{err: row.err})}
		err := s.WatchLeases(t.Context(), "acme", func(string, []byte, uint64) {})
		if !errors.Is(err, log.ErrStale) || row.want != nil && !errors.Is(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unanswered is a JetStream with a connection, or none.
type unanswered struct {
	jetstream.JetStream
	conn *nats.Conn
}

func (u unanswered) Conn() *nats.Conn { return u.conn }

// mute is a server of NATS that takes each message and sends none.
type mute struct{}

func (mute) InProcessConn() (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		_, _ = server.Write([]byte("INFO {\"headers\":true,\"max_payload\":1024}\r\n"))
		for lines := bufio.NewScanner(server); lines.Scan(); {
			if lines.Text() == "PING" {
				_, _ = server.Write([]byte("PONG\r\n"))
			}
		}
	}()
	return client, nil
}

// TestLeaderThatDoesNotAnswer checks that nobody waits long for the last entry.
func TestLeaderThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		nc, err := nats.Connect("", nats.InProcessServer(mute{}), nats.NoReconnect())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		begun := time.Now()
		s := &Store{leases: divide(unanswered{conn: nc}, breaking{})}
		if _, _, err := s.Lease(t.Context(), "acme", "h01"); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != lastLimit {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

// TestShortTexts checks that the text of a host is cut between characters: half a
// one would be kept as another.
func TestShortTexts(t *testing.T) {
	t.Parallel()
	run := v1.Run{Hosts: []v1.RunHost{{Error: "x" + strings.Repeat("å", cutText)}}}
	withShortTexts(&run)
	if got := run.Hosts[0].Error; got != "x"+strings.Repeat("å", (cutText-1)/2) {
		t.Errorf("it is %q", got)
	}
}
