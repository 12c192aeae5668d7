package cli

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
)

// TestAClosedConnectionIsNotLost checks that a worker that ends in order does
// not warn of the connection that it closes itself.
func TestAClosedConnectionIsNotLost(t *testing.T) {
	t.Parallel()
	s, err := site.Open(t.Context(), site.Options{
		Name: "here", Zone: time.UTC, Dir: t.TempDir(), Tenants: []string{"acme"},
		API: site.Endpoint{Listen: "127.0.0.1:0"}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	nc, err := s.Server().Connect()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	own := &contact{worker: &workerCommand{NATSURL: "nats://here"}, log: slog.New(slog.NewTextHandler(&log, nil))}
	own.lost(nc, errors.New("reset by peer"))
	if text := log.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "reset by peer") {
		t.Errorf("a connection that is lost: %q", text)
	}
	log.Reset()
	nc.Close()
	if own.lost(nc, nil); log.Len() > 0 {
		t.Errorf("a connection that the worker closes: %q", log.String())
	}
}

// TestConnectedAgain checks that a worker which has lost its site says so, and that it
// is connected again, and that it then asks for what it has missed.
func TestConnectedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listen := "127.0.0.1:0"
	open := func() *site.Site {
		t.Helper()
		s, err := site.Open(t.Context(), site.Options{
			Name: "here", Zone: time.UTC, Dir: dir, Tenants: []string{"acme"},
			API: site.Endpoint{Listen: "127.0.0.1:0"}, NATS: site.Endpoint{Listen: listen}, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	listen = s.NATSAddress()
	seed, err := s.Hosts.Add(natsd.Identity{Tenant: "acme", Host: "h01"})
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "h01.key")
	if err := os.WriteFile(key, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	var text lockedText
	c := &workerCommand{Tenant: "acme", Host: "h01", NATSURL: "nats://" + listen, KeyFile: key}
	hostLog, err := c.dial(slog.New(slog.NewTextHandler(&text, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer hostLog.Close()
	waitFor := func(line string) {
		t.Helper()
		for late := time.Now().Add(time.Minute); !strings.Contains(text.String(), line); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("the worker does not say %q:\n%s", line, text.String())
			}
		}
	}
	waitFor("connected to the log")
	lost := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor("not connected to the log")
	if strings.Contains(text.String(), "connected again") {
		t.Errorf("it says that it is connected again:\n%s", text.String())
	}
	s = open()
	defer func() { _ = s.Close() }()
	waitFor(`level=INFO msg="connected again" url=nats://` + listen + " after=")
	_, after, _ := strings.Cut(text.String(), " after=")
	after, _, _ = strings.Cut(after, "\n")
	if away, err := time.ParseDuration(after); err != nil || away <= 0 || away > time.Since(lost) {
		t.Errorf("it says that it was away for %s, %v; that was at most %s", after, err, time.Since(lost))
	}
	if _, err := hostLog.Lease(t.Context(), "W1"); err != nil {
		t.Errorf("connected again it gets %v", err)
	}
}

// TestForeignKeyIsNoFlood checks that a worker whose key the site does not know, or which has that
// of another host, says so at once, and then once an hour or at most once a minute, however long
// that lasts.
func TestForeignKeyIsNoFlood(t *testing.T) {
	t.Parallel()
	const hours = 3
	for name, row := range map[string]struct {
		suffer      func(own *contact, begun time.Time)
		least, most int
	}{
		"a key that no host has": {func(own *contact, begun time.Time) {
			own.failed(nil, nats.ErrAuthorization)
			for attempts := 1; time.Since(begun) < hours*time.Hour; attempts++ {
				time.Sleep(own.wait(attempts))
			}
		}, hours, hours + 1},
		"the key of another host": {func(own *contact, begun time.Time) {
			for time.Since(begun) < hours*time.Hour {
				own.tellDenied(fmt.Errorf("%w: to publish", nats.ErrPermissionViolation))
				time.Sleep(100 * time.Millisecond)
			}
		}, hours * 60 / 3, hours*60 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				own := &contact{worker: &workerCommand{NATSURL: "nats://here", Host: "h01", Tenant: "acme"}, log: slog.New(slog.NewTextHandler(&log, nil))}
				row.suffer(own, time.Now())
				if lines := strings.Count(log.String(), "\n"); lines < row.least || lines > row.most {
					t.Errorf("in %d hours it says %d lines", hours, lines)
				}
			})
		})
	}
}

// lockedText is text that several write.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
