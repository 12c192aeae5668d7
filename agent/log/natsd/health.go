package natsd

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// unreadyFor is how long the server may report that it is not ready before it
	// counts as unhealthy, unreadyPause the wait before it is asked again. It gives
	// its own check one millisecond, which is too short on a busy machine. A stream
	// that is being made may take as long.
	unreadyFor   = 5 * time.Second
	unreadyPause = 10 * time.Millisecond
)

// Healthy returns an error when the server cannot take records. It does not wait: trouble
// that may pass by itself counts only once the watch over the store has seen it last.
func (s *Server) Healthy() error {
	s.mu.RLock()
	found := s.found
	s.mu.RUnlock()
	if err := atOnce(s.current().Healthz(&server.HealthzOptions{Details: true}), found); err != nil {
		return err
	}
	return s.space()
}

// atOnce judges a server without waiting: by what it reports now and, if that may pass by itself,
// by what the watch over the store has found.
func atOnce(now *server.HealthStatus, found error) error {
	switch missing := missingStreams(now); {
	case now.Status == "ok":
		return nil
	case mayPass(now, missing):
		return found
	default:
		return sickness(now, missing)
	}
}

// awaitHealthy returns an error when a server that was ready once reports that it is unhealthy,
// and does not recover in time.
func awaitHealthy(ask func(*server.HealthzOptions) *server.HealthStatus) error {
	var missing map[string]bool // By every look so far.
	for begun := time.Now(); ; time.Sleep(unreadyPause) {
		health := ask(&server.HealthzOptions{Details: true})
		if health.Status == "ok" {
			return nil
		}
		now := missingStreams(health)
		if missing == nil {
			missing = now
		} else if now != nil {
			maps.DeleteFunc(missing, func(stream string, _ bool) bool { return !now[stream] })
		}
		if now != nil && len(missing) == 0 {
			return nil
		}
		if !mayPass(health, now) || time.Since(begun) >= unreadyFor {
			return sickness(health, missing)
		}
	}
}

// mayPass reports whether what a server reports may pass by itself: it is too busy to find out
// that it is ready, or makes the streams that are missing.
func mayPass(health *server.HealthStatus, missing map[string]bool) bool {
	return missing != nil || len(health.Errors) > 0 && health.Errors[0].Type == server.HealthzErrorConn
}

func sickness(health *server.HealthStatus, missing map[string]bool) error {
	return fmt.Errorf("its store is not healthy: %s", troubleOf(health, missing))
}

// unrecovered is how the server says that a stream has a folder and does not exist. That is
// so with a stream that was lost, and for a moment with each stream that is being made: the
// server makes its folder first (nats-server #3752).
const unrecovered = "could not be recovered"

// missingStreams returns the streams that have a folder and do not exist, and nil if something
// else is wrong.
func missingStreams(health *server.HealthStatus) map[string]bool {
	var missing map[string]bool
	for _, e := range health.Errors {
		if e.Type != server.HealthzErrorStream || !strings.HasSuffix(e.Error, unrecovered) {
			return nil
		}
		if missing == nil {
			missing = map[string]bool{}
		}
		missing[e.Stream] = true
	}
	return missing
}

// troubleOf is what the server says is wrong, of those that were made meanwhile nothing.
func troubleOf(health *server.HealthStatus, missing map[string]bool) string {
	for _, e := range health.Errors { // With Details the reason is here.
		if !strings.HasSuffix(e.Error, unrecovered) || missing[e.Stream] {
			return e.Error
		}
	}
	return health.Error
}
