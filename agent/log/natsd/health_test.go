package natsd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/jetstream"
)

// TestHealthy checks that a server which was too busy to find out that it is
// ready is asked again, that a stream which is being made is not taken for one that is
// lost, and that all else the server says is believed at once.
func TestHealthy(t *testing.T) {
	t.Parallel()
	sick := func(kind server.HealthZErrorType, text string) *server.HealthStatus {
		return &server.HealthStatus{Status: "error", Errors: []server.HealthzError{{Type: kind, Error: text}}}
	}
	busy := sick(server.HealthzErrorConn, "startup did not complete")
	missing := func(streams ...string) *server.HealthStatus {
		status := &server.HealthStatus{Status: "error"}
		for _, stream := range streams {
			status.Errors = append(status.Errors, server.HealthzError{Type: server.HealthzErrorStream, Stream: stream, Error: stream + " could not be recovered"})
		}
		return status
	}
	full := missing("a")
	full.Errors = append(full.Errors, server.HealthzError{Type: server.HealthzErrorStream, Stream: "b", Error: "b write error: no space"})
	for name, c := range map[string]struct {
		answers []*server.HealthStatus
		part    string
		took    time.Duration
	}{
		"well":                 {[]*server.HealthStatus{{Status: "ok"}}, "", 0},
		"busy for a moment":    {[]*server.HealthStatus{busy, busy, busy, {Status: "ok"}}, "", 3 * unreadyPause},
		"never ready":          {[]*server.HealthStatus{busy}, "startup did not complete", unreadyFor},
		"its store is lost":    {[]*server.HealthStatus{sick(server.HealthzErrorJetStream, "no store"), {Status: "ok"}}, "no store", 0},
		"a stream is made":     {[]*server.HealthStatus{missing("a"), missing("a"), {Status: "ok"}}, "", 2 * unreadyPause},
		"many are made":        {[]*server.HealthStatus{missing("a"), missing("a", "b"), missing("b", "c"), missing("c")}, "", 2 * unreadyPause},
		"busy in between":      {[]*server.HealthStatus{missing("a"), busy, missing("b")}, "", 2 * unreadyPause},
		"a stream is lost":     {[]*server.HealthStatus{missing("a", "b"), missing("b")}, "b could not be recovered", unreadyFor},
		"lost, others made":    {[]*server.HealthStatus{missing("b"), missing("a", "b")}, "b could not be recovered", unreadyFor},
		"it cannot be written": {[]*server.HealthStatus{full}, "b write error", 0},
		"it says nothing":      {[]*server.HealthStatus{{Status: "unavailable", Error: "why not"}}, "why not", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, asked := time.Now(), 0
				err := awaitHealthy(func(*server.HealthzOptions) *server.HealthStatus {
					asked++
					return c.answers[min(asked, len(c.answers))-1]
				})
				if (err == nil) != (c.part == "") || err != nil && !strings.Contains(err.Error(), c.part) {
					t.Errorf("the error is %v, not one with %q", err, c.part)
				}
				if took := time.Since(begun); took != c.took {
					t.Errorf("it took %s, not %s", took, c.took)
				}
			})
		})
	}
}

// TestStreamBeingMade checks that the store is healthy while a stream is made. A server that
// is thought to be unhealthy is replaced, and what is asked of it then is never answered: a site
// with many tenants did not start.
func TestStreamBeingMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, _, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := s.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := jetstream.Open(t.Context(), nc, "acme"); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "store", "jetstream", s.current().GlobalAccount().GetName(), "streams", "made")
	if err := os.Mkdir(folder, 0o700); err != nil { // As the server does first.
		t.Fatal(err)
	}
	looks := 0
	err = awaitHealthy(func(o *server.HealthzOptions) *server.HealthStatus {
		found := s.current().Healthz(o)
		if looks++; looks == 1 {
			if found.Status == "ok" {
				t.Error("the server does not say that the stream is missing; awaitHealthy need not ask twice")
			}
			if err := os.Remove(folder); err != nil {
				t.Error(err)
			}
		}
		return found
	})
	if err != nil {
		t.Error(err)
	}
}

// TestHealthyAtOnce checks what is said of a server without waiting: what may pass by itself
// counts once the watch has found that it stays, and all else at once.
func TestHealthyAtOnce(t *testing.T) {
	t.Parallel()
	sick := func(kind server.HealthZErrorType, text string) *server.HealthStatus {
		return &server.HealthStatus{Status: "error", Errors: []server.HealthzError{{Type: kind, Error: text}}}
	}
	busy, missing := sick(server.HealthzErrorConn, "startup did not complete"), sick(server.HealthzErrorStream, "a could not be recovered")
	lost := errors.New("stream b is lost")
	for name, c := range map[string]struct {
		now   *server.HealthStatus
		found error
		part  string
	}{
		"well":                  {&server.HealthStatus{Status: "ok"}, nil, ""},
		"well again":            {&server.HealthStatus{Status: "ok"}, lost, ""},
		"busy":                  {busy, nil, ""},
		"busy for long":         {busy, lost, "stream b is lost"},
		"a stream is made":      {missing, nil, ""},
		"a stream stays away":   {missing, lost, "stream b is lost"},
		"it cannot be written":  {sick(server.HealthzErrorStream, "b write error: no space"), nil, "b write error"},
		"its store is lost":     {sick(server.HealthzErrorJetStream, "no store"), nil, "no store"},
		"it says nothing of it": {&server.HealthStatus{Status: "unavailable", Error: "why not"}, nil, "why not"},
	} {
		if err := atOnce(c.now, c.found); (err == nil) != (c.part == "") || err != nil && !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: the error is %v, not one with %q", name, err, c.part)
		}
	}
}
