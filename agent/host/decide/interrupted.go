package decide

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// freeEnds is how often a worker or its machine may end in the midst of an action before the next
// try waits: a machine that its upgrade crashes must not crash without an end.
const freeEnds = 5

// interrupted returns the state in which an action is taken that was in progress when the worker
// ended, or false if it was not. It counts how often that has happened: the pauses grow, and
// all tries fit in the limit of one action.
func (s State) interrupted(do Do, seen Seen, now time.Time) (State, bool) {
	if s.Fresh || !isStrategy(do) {
		return s, false
	}
	j := s.Journal
	r := j.Retry
	if r.Since.IsZero() {
		r.Since = now.UTC().Round(0)
	}
	r.Ends++
	r.Resume = j.Phase == Upgrading
	if r.Ends > freeEnds {
		r.Due = now.Add(backOff(r.Ends - freeEnds)).UTC().Round(0)
		if !r.Due.Before(r.Since.Add(seen.Limit)) {
			next, _ := s.After(Ended{Do: do, Err: endedTooOften(j.Phase, r)}, seen.BootID, now)
			return next, true
		}
	}
	j.Retry = r
	return s.begin(j), true
}

func endedTooOften(in Phase, r Retry) error {
	return strategy.Fail(message.Install, fmt.Errorf("%s; to find out why, read the log of the machine (journalctl)", r.Ended(in)))
}

// Ended says how often the worker has ended in the midst of a phase; empty while that is no
// reason to wait.
func (r Retry) Ended(in Phase) string {
	if r.Ends <= freeEnds {
		return ""
	}
	return fmt.Sprintf("the worker or its machine stopped %d times while %s, since %s", r.Ends, in, r.Since.UTC().Format(time.RFC3339))
}
