package jetstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// TestReplySubject checks that a host cannot have the agent write where the
// host itself may not: it calls the gate with a reply subject of its choice,
// which NATS does not check, after it has put the body that it wants there
// where the gate answers with it.
func TestReplySubject(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme := s.log.subjects
	if err := s.host("h01").Report(t.Context(), report.Versions.Of([]byte(`{"event":"opened"}`))); err != nil {
		t.Fatal(err)
	}
	news := s.hear(t, acme.PushAll())
	run, err := s.log.Append(t.Context(), message.Record{Kind: message.CommandAll, Body: []byte("{}")}, 0)
	if err != nil {
		t.Fatal(err)
	}
	// What the gate itself says is over before anybody listens.
	if _, err := news.NextMsgWithContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	targets := []string{
		acme.Event(), acme.CommandAll(), acme.CommandHost(), acme.Push("h02"), acme.PushAll(), acme.Task("h02"), acme.Push("h02"),
		acme.Reply(run, message.Prepare, "h02"), log.Subjects{Tenant: "other"}.Event(), "$KV.osu-intent.acme._.config", acme.Alive("h99"),
		"$JS.API.STREAM.DELETE." + acme.Stream(), "$JS.API.STREAM.DELETE.KV_osu-intent", acme.Inbox("h02") + ".x", acme.Ping(), acme.Call("h02", "newest"),
	}
	reached := make(chan *nats.Msg, 100)
	for _, target := range targets {
		if _, err := s.agent.ChanSubscribe(target, reached); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.agent.Flush(); err != nil {
		t.Fatal(err)
	}
	nc := s.connect("h01")
	for _, verb := range []string{"last-report.versions", "newest", "report.versions", "lease.0", "reply" + ".1.prepare", "nonsense"} {
		for _, target := range targets {
			if err := nc.PublishRequest(acme.Call("h01", verb), target, []byte(`{}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	// The gate takes calls in order, so this one comes after all of those. If the
	// agent deletes the log, the gate does not answer any more.
	limited, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err := s.host("h01").Newest(limited); err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Flush(); err != nil {
		t.Fatal(err)
	}
	select {
	case msg := <-reached:
		t.Errorf("a host has the agent write to %s", msg.Subject)
	default:
	}
	if last, err := s.log.Last(t.Context()); err != nil || last != run {
		t.Errorf("the log goes on to record %d, %v", last, err)
	}
}

// TestFlood checks that one host that calls without end is disconnected and keeps no other from
// being answered, and that its own versions take one place.
func TestFlood(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme := s.log.subjects
	nc := s.connect("h01", nats.CustomInboxPrefix(acme.Inbox("h01")))
	ended := nc.StatusChanged(nats.CLOSED, nats.RECONNECTING)
	for open := true; open; {
		if err := nc.PublishRequest(acme.Call("h01", "report.versions"), acme.Inbox("h01")+".x", []byte(`{"kernel":"6.1"}`)); err != nil {
			break
		}
		select {
		case <-ended:
			open = false
		case <-t.Context().Done():
			t.Fatal("the host is never disconnected")
		default:
		}
	}
	if err := s.host("h02").Report(t.Context(), report.Versions.Of([]byte(`{"kernel":"6.1"}`))); err != nil {
		t.Fatal(err)
	}
	if last, err := s.log.Last(t.Context()); err != nil || last != 0 {
		t.Errorf("the log has %d records, %v", last, err)
	}
}

// raw connects as a host over a bare connection: the test speaks the protocol of NATS
// itself, and ignores what the server sends.
func (s *site) raw(host string) net.Conn {
	s.t.Helper()
	conn, err := s.server.InProcessConn()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	reader := bufio.NewReader(conn)
	line, err := reader.ReadString('\n')
	if err != nil {
		s.t.Fatal(err)
	}
	var info struct{ Nonce string }
	if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "INFO ")), &info); err != nil {
		s.t.Fatal(err)
	}
	key := s.key(host)
	signature, err := key.Sign([]byte(info.Nonce))
	if err != nil {
		s.t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "CONNECT {\"verbose\":false,\"headers\":true,\"no_responders\":true,\"nkey\":%q,\"sig\":%q}\r\nPING\r\n",
		public, base64.RawURLEncoding.EncodeToString(signature)); err != nil {
		s.t.Fatal(err)
	}
	if line, err := reader.ReadString('\n'); err != nil || line != "PONG\r\n" {
		s.t.Fatalf("the server says %q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, reader) }()
	return conn
}

// TestHeaders checks that headers without end, which nats.go would read in the
// loop in which it reads the connection, reach neither the connection of the
// agent to the log nor the one on which it hears hosts.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	acme := s.log.subjects
	other := s.host("h02")
	if _, err := other.Newest(t.Context()); err != nil {
		t.Fatal(err)
	}
	var bomb bytes.Buffer
	bomb.WriteString("NATS/1.0\r\n")
	for i := 0; bomb.Len() < 4<<20-100; i++ {
		fmt.Fprintf(&bomb, "%06x:\r\n", i)
	}
	bomb.WriteString("\r\n")
	before := s.receiver.Stats().InBytes
	flood := s.raw("h01")
	const bombs = 50
	for range bombs {
		if _, err := fmt.Fprintf(flood, "HPUB %s %s.x %d %d\r\n%s\r\n", acme.Call("h01", "newest"), acme.Inbox("h01"), bomb.Len(), bomb.Len(), bomb.Bytes()); err != nil {
			t.Fatal(err)
		}
		limited, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := other.Newest(limited); err != nil {
			t.Errorf("another host gets %v", err)
		}
		cancel()
	}
	for name, nc := range map[string]*nats.Conn{"log": s.agent, "hosts": s.receiver} {
		if stats := nc.Stats(); stats.Reconnects != 0 {
			t.Errorf("the connection to the %s was cut off %d times", name, stats.Reconnects)
		}
	}
	if got := s.receiver.Stats().InBytes - before; got > uint64(bomb.Len()) {
		t.Errorf("the agent looked at %d bytes", got)
	}
}

// TestLargeHeartbeat checks that a heartbeat that is larger than any is
// refused unread, and that the largest of an honest worker is heard.
func TestLargeHeartbeat(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	heard := make(chan message.Alive, 100)
	s.listen(t, log.Listener{Alive: func(_ string, a message.Alive) { heard <- a }})
	largest := message.Alive{Application: strings.Repeat("a", 63), AgentVersion: strings.Repeat("\u2028", 33), Role: strings.Repeat("\u2028", 21), Labels: map[string]string{}}
	for i := range names.MaxLabels {
		largest.Labels[fmt.Sprintf("%063d", i)] = strings.Repeat("v", 63)
	}
	h := s.host("h01")
	// It would be read, but for its size.
	padded := message.Alive{Application: "padded"}.Encode()
	padded = append(padded, bytes.Repeat([]byte(" "), maxAlive)...)
	got := again(t, func() error {
		return errors.Join(h.conn.nats.Publish(s.log.subjects.Alive("h01"), padded), h.Alive(largest))
	}, heard)
	if got.Application != largest.Application || len(got.Labels) != names.MaxLabels || s.log.Dropped() == 0 {
		t.Errorf("heard is %+v, dropped %d", got, s.log.Dropped())
	}
}
