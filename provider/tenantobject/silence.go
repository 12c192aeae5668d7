package tenantobject

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
)

// probeEvery is how often a silent server is asked whether it is back.
const probeEvery = time.Second

// silence is what all operations of a process know of a server that does not answer, such as
// one that is restarted. While it lasts, one of them asks the server, and the others wait.
// A plan does not use it: it gives up early, and says what it could not look at.
type silence struct {
	mu sync.Mutex
	// over is closed when the server answers again, or when nobody asks it any more; nil if
	// the server answers.
	over chan struct{}
}

// silent reports whether an error says that the server gave no answer, or that something on
// the way to it got none.
func silent(err error) bool {
	return client.Silent(err) || client.HasStatus(err, http.StatusBadGateway) || client.HasStatus(err, http.StatusGatewayTimeout)
}

// silenceOf returns what the process knows.
func silenceOf(data *providerdata.Data) *silence {
	kept, _ := data.Once("silence", func() any { return &silence{} }).(*silence)
	return kept
}

// outlast calls ask until the server answers, to the deadline of ctx. What is asked must
// change nothing.
func (s *silence) outlast(ctx context.Context, ask func(ctx context.Context) error) error {
	ctx = client.Patient(ctx)
	for {
		if err := s.wait(ctx); err != nil {
			return err
		}
		err := ask(ctx)
		if !silent(err) {
			return err
		}
		if s.begin() {
			for silent(err) && sleep(ctx, probeEvery) == nil {
				err = ask(ctx)
			}
			s.end()
		}
		switch {
		case !silent(err):
			return err
		case errors.Is(ctx.Err(), context.Canceled):
			return ctx.Err()
		case ctx.Err() != nil:
			return fmt.Errorf("the server gave no answer until the timeout: %w", err)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits until the server may be asked.
func (s *silence) wait(ctx context.Context) error {
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over == nil {
		return ctx.Err()
	}
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the server gave no answer: %w", ctx.Err())
	}
}

// begin reports whether the caller is the one who asks from now on.
func (s *silence) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over != nil {
		return false
	}
	s.over = make(chan struct{})
	return true
}

func (s *silence) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.over)
	s.over = nil
}
