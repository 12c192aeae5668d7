package natsd

import (
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// unreadyFor is how long the server may report that it is not ready before it
	// counts as unhealthy, unreadyPause the wait before it is asked again. It gives
	// its own check one millisecond, which is too short on a busy machine.
	unreadyFor   = 5 * time.Second
	unreadyPause = 10 * time.Millisecond
)

// Healthy returns an error when the server cannot take records.
func (s *Server) Healthy() error {
	if err := healthy(s.current().Healthz); err != nil {
		return err
	}
	return s.space()
}

// healthy returns an error when a server that was ready once reports that it is
// unhealthy.
func healthy(ask func(*server.HealthzOptions) *server.HealthStatus) error {
	for begun := time.Now(); ; time.Sleep(unreadyPause) {
		health := ask(&server.HealthzOptions{Details: true})
		if health.Status == "ok" {
			return nil
		}
		trouble := health.Error
		if len(health.Errors) > 0 { // With Details the reason is here.
			trouble = health.Errors[0].Error
		}
		unready := len(health.Errors) > 0 && health.Errors[0].Type == server.HealthzErrorConn
		if !unready || time.Since(begun) >= unreadyFor {
			return fmt.Errorf("its store is not healthy: %s", trouble)
		}
	}
}
