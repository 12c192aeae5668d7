package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// runClock is the clock of a run. It shows at least the time of the newest record
// and what has passed since, so that a clock that is set back during a run holds
// up no deadline (design.md 5, invariant 7).
type runClock struct {
	// newest is the time of the newest record by the clock of the log, read when
	// the record was folded by the monotonic clock.
	newest, read time.Time
	// behind is how far the controller's clock was behind the clock of the log when
	// that record came; 0 for a record that was there at the start, which says
	// nothing about the controller's clock.
	behind time.Duration
}

// slack is how far two clocks may drift apart between two records. A clock that
// falls behind further was set back.
const slack = time.Second

// fold notes a record that came when the controller's clock showed now. live tells
// that the record has just been written.
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

// forFreezes is the time that decides which freeze is in force or comes next. If
// the controller's clock is as far behind the clock of the log as it was at the
// newest record, it is wrong and the clock of the log counts. If it has fallen
// further behind, it was set back, and the clock of the log may have been set back
// with it: then the controller's clock counts until the next record.
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
