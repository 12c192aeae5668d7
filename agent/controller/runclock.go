package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// runClock is the time that has to be reckoned with in a run: no earlier than
// its newest record, and what has truly passed since that. A clock that is set
// back in the middle of a run then holds up no deadline (design.md 5,
// invariant 7).
type runClock struct {
	// newest is the time of the newest record, by the log's clock, read when it
	// was folded, by one that nobody sets.
	newest, read time.Time
}

func (c *runClock) fold(r message.Record) { c.newest, c.read = r.Time, time.Now() }

// ahead is how far the run is ahead of a clock that shows now.
func (c *runClock) ahead(now time.Time) time.Duration {
	if c.newest.IsZero() {
		return 0
	}
	return max(0, c.newest.Add(time.Since(c.read)).Sub(now))
}
