package natsd

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// TestHealthy checks that a server which was too busy to find out that it is
// ready is asked again, and that all else it says is believed at once.
func TestHealthy(t *testing.T) {
	t.Parallel()
	sick := func(kind server.HealthZErrorType, text string) *server.HealthStatus {
		return &server.HealthStatus{Status: "error", Errors: []server.HealthzError{{Type: kind, Error: text}}}
	}
	busy := sick(server.HealthzErrorConn, "startup did not complete")
	for name, c := range map[string]struct {
		answers []*server.HealthStatus
		part    string
		took    time.Duration
	}{
		"well":              {[]*server.HealthStatus{{Status: "ok"}}, "", 0},
		"busy for a moment": {[]*server.HealthStatus{busy, busy, busy, {Status: "ok"}}, "", 3 * unreadyPause},
		"never ready":       {[]*server.HealthStatus{busy}, "startup did not complete", unreadyFor},
		"its store is lost": {[]*server.HealthStatus{sick(server.HealthzErrorJetStream, "no store"), {Status: "ok"}}, "no store", 0},
		"it says nothing":   {[]*server.HealthStatus{{Status: "unavailable", Error: "why not"}}, "why not", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, asked := time.Now(), 0
				err := healthy(func(*server.HealthzOptions) *server.HealthStatus {
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
