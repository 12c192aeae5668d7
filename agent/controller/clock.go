package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// runClock is the clock of a run. It shows at least the time of the newest record
// and what has passed since, so that a clock that is set back during a run holds
// up no deadline: each run ends.
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

// wallClock is the clock of a site. Its times have no monotonic reading: with one, two
// times of before and after a jump of the clock would compare as if there had been
// none, and what was computed for a wrong date would hold until that date (issue 11).
func wallClock() time.Time { return time.Now().Round(0) }

// toldJump is the least jump of the clock that people are told of.
const toldJump = time.Minute

// clockJump is a jump of the clock: it shows to, and would show from without the jump.
type clockJump struct{ from, to time.Time }

// by is how far the clock was set forward; negative when it was set back.
func (c clockJump) by() time.Duration { return c.to.Sub(c.from) }

// jumpsOver reports whether the clock was set forward over the whole of a span.
func (c clockJump) jumpsOver(start, end time.Time) bool {
	return !start.Before(c.from) && !end.After(c.to)
}

// jumpWatch notices jumps of a clock: it compares what the clock shows with what has
// passed since it last looked. A machine that was suspended looks as if its clock had
// been set forward.
type jumpWatch struct {
	// shown is what the clock showed at the last look, read when that was by the
	// monotonic clock.
	shown, read time.Time
}

// look returns the jump since the last look; false when there was none.
func (w *jumpWatch) look(now time.Time) (clockJump, bool) {
	now, read := now.Round(0), time.Now()
	jump := clockJump{from: w.shown.Add(read.Sub(w.read)), to: now}
	first := w.read.IsZero()
	w.shown, w.read = now, read
	return jump, !first && jump.by().Abs() > slack
}

const (
	// away is how late a decision may come before the controller concludes that
	// its process was stopped.
	away = 2 * time.Second
	// catchingUp is how long nothing is judged after that: what hosts have said
	// meanwhile waits in the sockets of this process.
	catchingUp = 5 * time.Second
)

// stall notices that nothing was decided for a while.
type stall struct {
	// looked is when the last decision was made, due when the next was to be made
	// at the latest.
	looked, due time.Time
	// judgeAt is when hosts may be given up again.
	judgeAt time.Time
}

// wasAway reports whether nothing was decided for a while, and for how long.
// A controller that is late all the time still judges between two such pauses.
func (s *stall) wasAway(now time.Time) (late time.Duration, was bool) {
	if s.judgeAt.After(now.Add(catchingUp)) {
		s.judgeAt = time.Time{} // What was heard before a jump back bears a time of before it.
	}
	late = now.Sub(times.Later(s.looked, s.due))
	if s.due.IsZero() || late < away || now.Before(s.judgeAt.Add(longestSleep)) {
		return 0, false
	}
	s.judgeAt = now.Add(catchingUp)
	return late, true
}

// jump follows a jump of the clock. After one forward nothing is judged for a while:
// the machine may have been suspended.
func (s *stall) jump(c clockJump) {
	s.looked = c.to
	if !s.due.IsZero() {
		s.due = s.due.Add(c.by())
	}
	if s.judgeAt = (time.Time{}); c.by() > 0 {
		s.judgeAt = c.to.Add(catchingUp)
	}
}

// longestSleep bounds the time between two looks at the clock: a suspended
// machine and a clock that was set raise no event that a timer sees.
const longestSleep = time.Minute
