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
	// behind is how far the controller's clock was behind the log's when that
	// record came; 0 when it was there before the controller was, and so tells
	// nothing of its clock.
	behind time.Duration
}

// slack is by how much two clocks may drift between two records before one is
// taken for set back.
const slack = time.Second

// fold takes in a record that came when the controller's clock showed now; live
// tells that it has just been written.
func (c *runClock) fold(r message.Record, now time.Time, live bool) {
	c.newest, c.read, c.behind = r.Time, time.Now(), 0
	if live {
		c.behind = max(0, r.Time.Sub(now))
	}
}

// ahead is how far the run is ahead of a clock that shows now.
func (c *runClock) ahead(now time.Time) time.Duration {
	if c.newest.IsZero() {
		return 0
	}
	return max(0, c.newest.Add(time.Since(c.read)).Sub(now))
}

// forFreezes is the time that decides which freeze is on or comes next, for a
// clock that shows now. One that is behind the log's by as much as ever is
// wrong, and the log's counts. One that has fallen behind since the newest
// record was set back, and so may be the log's: what it shows counts, until
// there is a record to tell.
func (c *runClock) forFreezes(now time.Time) time.Time {
	if ahead := c.ahead(now); ahead <= c.behind+slack {
		return now.Add(ahead)
	}
	return now
}

const (
	// away is how late a decision may come before the controller concludes that
	// its process was stopped, its machine suspended, or the clock set forward.
	away = 2 * time.Second
	// catchingUp is how long nothing is judged after that: what hosts have said
	// meanwhile waits in the sockets of this process.
	catchingUp = 5 * time.Second
)

// pace notices that nothing was decided for a while.
type pace struct {
	// looked is when the last decision was made, due when the next was to be made
	// at the latest.
	looked, due time.Time
	// judgeAt is when hosts may be given up again.
	judgeAt time.Time
}

// wasAway reports whether nothing was decided for a while, and for how long.
// A controller that is late all the time still judges between two such pauses.
func (p *pace) wasAway(now time.Time) (late time.Duration, was bool) {
	if p.judgeAt.After(now.Add(catchingUp)) {
		p.judgeAt = time.Time{} // The clock was set back since.
	}
	late = now.Sub(later(p.looked, p.due))
	if p.due.IsZero() || late < away || now.Before(p.judgeAt.Add(longestSleep)) {
		return 0, false
	}
	p.judgeAt = now.Add(catchingUp)
	return late, true
}

// longestSleep bounds the time between two looks at the clock: a suspended
// machine and a clock that was set raise no event that a timer sees.
const longestSleep = time.Minute

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// earliestSet is the earlier of two times; the zero time is not set.
func earliestSet(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
