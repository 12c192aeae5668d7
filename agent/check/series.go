package check

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// minInterval is the shortest wait between two tries: an interval of nothing
// must not keep a processor busy.
const minInterval = 100 * time.Millisecond

// series is how the tries of a check came out so far.
type series struct {
	tried, inRow int
	// last is why the last failed one failed.
	last error
}

func (s *series) count(err error) {
	s.tried++
	s.inRow++
	if err != nil {
		s.inRow, s.last = 0, err
	}
}

// check tries a check until it has passed so often in a row as it must. It
// gives up as soon as there is no time for a further try.
func (r *Runner) check(ctx context.Context, t message.Task, c policy.Check) error {
	probe, err := r.probe(t, c)
	if err != nil {
		return err
	}
	end := time.Now().Add(c.Timeout.Duration())
	ctx, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	interval := max(minInterval, c.Interval.Duration())
	var s series
	for {
		err := probe(ctx)
		s.count(err)
		if err != nil {
			r.failed(ctx, t, "check "+c.Name, err)
		}
		if s.inRow >= c.Passes && err == nil {
			return nil
		}
		if time.Until(end) <= interval || wait.Sleep(ctx, interval) != nil {
			return s.tooFew(c)
		}
	}
}

// tooFew says how far a check came.
func (s series) tooFew(c policy.Check) error {
	said := "no try failed"
	if s.last != nil {
		said = "the last try that failed said: " + s.last.Error()
	}
	return fmt.Errorf("passed %d of %d times in a row within %s, in %s; %s",
		s.inRow, max(1, c.Passes), c.Timeout.Duration(), tries(s.tried), said)
}
