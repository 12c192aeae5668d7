package gate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// slow is a connection whose calls are answered once it is told to.
type slow struct {
	gate.Conn
	open   atomic.Int32
	answer chan struct{}
}

func (s *slow) Call(ctx context.Context, _ gate.Request) ([]byte, error) {
	s.open.Add(1)
	defer s.open.Add(-1)
	select {
	case <-s.answer:
		return []byte(`{"body":{}}`), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestOpenCalls checks that a host has no more calls open than a gate takes, which would drop
// the others: they wait for their turn, and no longer than their caller.
func TestOpenCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn := &slow{answer: make(chan struct{})}
		c := gate.NewClient(gate.ClientOptions{Host: "h01", Incarnation: "one"}, conn)
		ended := make(chan error, 2*gate.OpenCalls)
		for range 2 * gate.OpenCalls {
			go func() {
				_, err := c.LastReport(t.Context(), report.Versions)
				ended <- err
			}()
		}
		synctest.Wait()
		if n := conn.open.Load(); n != gate.OpenCalls {
			t.Errorf("%d calls are open at once, not %d", n, gate.OpenCalls)
		}
		impatient, leave := context.WithCancel(t.Context())
		leave()
		if _, err := c.LastReport(impatient, report.Versions); err == nil {
			t.Error("a call whose caller has left is answered")
		}
		close(conn.answer)
		for range 2 * gate.OpenCalls {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	})
}
