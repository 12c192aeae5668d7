package natsd

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestRate checks which messages of a host are too many: told once for each floodTime, whatever
// others send, and whatever the clock does.
func TestRate(t *testing.T) {
	t.Parallel()
	var r rate
	now := time.Date(2026, 11, 24, 7, 0, 0, 0, time.UTC)
	send := func(n int, subject string) (told []string) {
		for range n {
			if host, over := r.exceeded([]byte(subject), now); over {
				told = append(told, host)
			}
		}
		return told
	}
	wants := func(what string, got []string, want string) {
		t.Helper()
		if strings.Join(got, " ") != want {
			t.Errorf("%s: told is %q, want %q", what, got, want)
		}
	}
	h01, h02 := "osu-in.acme.h01.call.newest", "osu-in.acme."+log.Token("h.02")+".telemetry.alive"
	wants("as many as may be", send(maxMessages, h01), "")
	wants("those of another host", send(maxMessages, h02), "")
	wants("many more", send(3*maxMessages, h01), "h01")
	wants("of the other one more", send(1, h02), "h.02")
	now = now.Add(floodTime)
	wants("later", send(maxMessages, h01), "")
	now = now.Add(-time.Hour)
	wants("after the clock was set back", append(send(maxMessages, h01), send(1, h01)...), "h01")
	wants("subjects of nobody", append(send(2*maxMessages, "_INBOX.x"), send(2*maxMessages, "osu-in.acme.h01")...), "")
}

// TestFlood checks that a host which sends too many messages is disconnected and told of, that
// it is not let in before a while has passed, and that another host is.
func TestFlood(t *testing.T) {
	t.Parallel()
	hosts := NewHosts(&credentialtest.Memory{})
	told := make(chan string, 100)
	s, err := Start(t.Context(), Options{
		Dir: t.TempDir(), Listen: "127.0.0.1:0", Hosts: hosts, Holder: "a test", Log: slog.New(slog.DiscardHandler),
		Refused: func(tenant, host string, kind message.WarningKind, why string) {
			told <- fmt.Sprint(tenant, " ", host, " ", kind, ": ", why)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	receiver, err := s.Receive("acme")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(receiver.Close)
	acme := log.Subjects{Tenant: "acme"}
	if _, err := receiver.Subscribe(acme.In("*")+".>", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := receiver.Flush(); err != nil {
		t.Fatal(err)
	}
	bad, good := newGuest(t, hosts), newGuestAs(t, hosts, "h02")
	nc, err := bad.connect(s)
	if err != nil {
		t.Fatal(err)
	}
	ended := nc.StatusChanged(nats.CLOSED)
	for open := true; open; {
		select {
		case <-ended:
			open = false
		default:
			_ = nc.Publish(acme.Alive("h01"), nil)
		}
	}
	if got := <-told; !strings.HasPrefix(got, "acme h01 flood: it sent more than 10000 messages within 5s and is disconnected for 1m0s: ") {
		t.Errorf("told is %q", got)
	}
	if nc, err := bad.connect(s); err == nil {
		nc.Close()
		t.Error("the host is let in at once")
	}
	if nc, err := good.connect(s); err != nil {
		t.Errorf("another host: %v", err)
	} else {
		nc.Close()
	}
	s.auth.mu.Lock()
	s.auth.shut[Identity{Tenant: "acme", Host: "h01"}] = time.Now() // The pause is over.
	s.auth.mu.Unlock()
	if nc, err := bad.connect(s); err != nil {
		t.Errorf("after the pause: %v", err)
	} else {
		nc.Close()
	}
}
