package site

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// reachTimeout is how long the log may take to answer, reachFresh how long the
	// answer is cached: anybody may ask.
	reachTimeout, reachFresh = 2 * time.Second, time.Second
)

// reach is the cached result of the last check of the connection to the log.
type reach struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// reaches returns an error when the agent does not reach its own log. The server
// may be healthy while the connection to it is not.
func (s *Site) reaches(ctx context.Context) error {
	s.reach.mu.Lock()
	defer s.reach.mu.Unlock()
	if time.Since(s.reach.at) >= reachFresh {
		// The caller may be gone before the result is used for others.
		s.reach.err = s.ask(context.WithoutCancel(ctx))
		s.reach.at = time.Now()
	}
	return s.reach.err
}

func (s *Site) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	js, err := jetstream.New(s.nats)
	if err == nil {
		_, err = js.AccountInfo(ctx)
	}
	if err != nil {
		return fmt.Errorf("the agent does not reach its own log: %w", err)
	}
	return nil
}
