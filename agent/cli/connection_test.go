package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

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
