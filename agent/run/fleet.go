package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// fleet is what a run knows of the checks of the whole fleet.
type fleet struct {
	// passedAt is when they passed last; zero when they have to pass anew.
	passedAt time.Time
	// attempt counts them. failedAt is when they failed last, and trouble why; zero
	// after they have passed.
	attempt  int
	failedAt time.Time
	trouble  string
}

// stale invalidates the checks of the fleet, because the fleet has changed. The result
// of checks that are under way does not count either.
func (f *fleet) stale() {
	f.passedAt = time.Time{}
	f.attempt++
}

// ended applies the outcome of the checks.
func (f *fleet) ended(o message.Outcome, at time.Time) {
	f.attempt++
	if o.OK {
		f.passedAt, f.failedAt, f.trouble = at, time.Time{}, ""
		return
	}
	f.failedAt, f.trouble = at, o.Text
}

// from is when the checks may run; zero for at once.
func (f *fleet) from() time.Time {
	if f.failedAt.IsZero() {
		return time.Time{}
	}
	return f.failedAt.Add(recheck)
}

// waiting says that the run waits for the checks since a time.
func (f *fleet) waiting(since time.Time) Waiting {
	w := Waiting{What: ForCheck, Detail: message.Fleet.Words(), Since: since}
	if f.trouble != "" {
		w.Detail += ", which failed: " + f.trouble
	}
	return w
}

// setBack follows the log's clock that was set back.
func (f *fleet) setBack(now time.Time) {
	f.passedAt, f.failedAt = times.Earlier(f.passedAt, now), times.Earlier(f.failedAt, now)
}
