package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const (
	// quiet is how long no new host may have joined before a run is opened by
	// itself, so that a fleet that starts is not upgraded host by host.
	quiet = 3 * time.Second
	// gracePeriod is the time after the start of a controller in which known hosts
	// that were not heard of do not count as silent.
	gracePeriod = 15 * time.Second
	// windowGracePeriod is the grace period of a window: so long after the start of a
	// controller it waits for known hosts that were not heard of. A host that is absent
	// when the run is opened is left out of it, and 10,000 hosts take up to a minute to
	// come back to a site that was restarted; a run that goes on leaves nobody out.
	windowGracePeriod = message.Silence
)

// moment is what due decides on.
type moment struct {
	now  time.Time
	span window.Span
	// last is the opening of the window whose run was opened last, or when
	// that run was opened if the log does not tell; zero when there is none.
	last time.Time
	// lastEnd is when that window was to close; zero when the run was outside of
	// all windows. changed is when windows or calendars last changed.
	lastEnd, changed time.Time
	// skipped tells that somebody has skipped the window.
	skipped bool
	// unused tells that the last run has ended and did not use up its window. retryAt
	// is when the next one is opened then, zero when no time is left for it.
	unused          bool
	retryAt         time.Time
	started, joined time.Time
	members, silent int
	// ofSteps means that there are only steps to do.
	ofSteps bool
}

// hadRun reports whether an open window had its run: it is the window of the last
// run, or what an edit has made of that window. A person who moves an open
// window does not want all hosts upgraded again at once; a person who moves it to
// a time at which it was not open does. A run that was opened after now was opened
// by a wrong clock, and does not count.
func hadRun(m moment) bool {
	switch {
	case m.last.After(m.now):
		return false
	case !m.last.Before(m.span.Start):
		return true
	}
	return edited(m)
}

// edited reports whether a window is what an edit has made of the window of the last
// run: it begins before the edit and while that window was open. A run that was opened
// after now does not count.
func edited(m moment) bool {
	if m.last.After(m.now) {
		return false
	}
	return m.span.Start.Before(m.changed) && m.span.Start.Before(m.lastEnd)
}

// retryTime returns when the next run is opened after one that ended without touching a host.
// since is how long ago this controller saw it end. The time of the end is that of the log,
// whose clock may be far behind: without since, runs would follow each other without a pause
// (seed 1090).
func retryTime(ended, now time.Time, after, since time.Duration) time.Time {
	return times.Later(ended.Add(after), now.Add(after-since))
}

// usedUp reports whether a window had its run and gets no other.
func usedUp(m moment) bool { return hadRun(m) && !m.unused }

// retries returns when a window that had a run which touched no host gets the next one;
// false when it gets none.
func retries(m moment) (time.Time, bool) {
	return m.retryAt, hadRun(m) && m.unused && !m.retryAt.IsZero()
}

// needsRun reports whether an open window has yet to get its run, and if not, when
// to look again. A window gets one run, and another one after a run that touched no
// host. A window that opened while no controller was running gets its run late.
func needsRun(m moment) (bool, time.Time) {
	at := times.Later(m.started, m.joined).Add(quiet)
	retryAt, again := retries(m)
	switch {
	case m.now.Before(m.span.Start):
		return false, m.span.Start
	case m.skipped:
		return false, m.span.End
	case again && m.now.Before(retryAt):
		return false, retryAt
	case hadRun(m) && !again:
		return false, m.span.End
	case m.now.Before(at):
		return false, at
	}
	return true, time.Time{}
}

// due reports whether a run has to be opened now, and if not, when to look again;
// zero means at the next event.
func due(m moment) (bool, time.Time) {
	if needed, at := needsRun(m); !needed {
		return false, at
	}
	switch at := m.started.Add(windowGracePeriod); {
	case m.silent > 0 && m.now.Before(at):
		return false, at
	case m.members == m.silent && !m.ofSteps:
		return false, time.Time{}
	}
	return true, time.Time{}
}
