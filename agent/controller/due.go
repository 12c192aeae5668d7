package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

const (
	// quiet is how long no new host may have joined before a run is opened by
	// itself, so that a fleet that starts is not upgraded host by host.
	quiet = 3 * time.Second
	// gracePeriod is how long after its start a controller waits for known hosts to
	// be heard of before it takes them for silent.
	gracePeriod = 15 * time.Second
)

// facts are what due decides on.
type facts struct {
	now  time.Time
	span window.Span
	// last is the opening of the window whose run was opened last, or when
	// that run was opened if the log does not tell; zero when there is none.
	last time.Time
	// lastEnd is when that window was to close; zero when the run was outside of
	// all windows. changed is when windows or calendars last changed.
	lastEnd, changed time.Time
	started, joined  time.Time
	members, silent  int
}

// hadRun tells whether an open window is that of the last run, or what an edit
// has made of it: then it begins before the edit, and while the window of that
// run was open. Whoever moves an open window about does not want all hosts
// upgraded once more there and then; who moves it to a time to come, or to one
// at which it was not open, does. What is said to have been opened after now was
// opened under a wrong clock, and must not keep windows without a run until that
// time comes.
func hadRun(f facts) bool {
	switch {
	case f.last.After(f.now):
		return false
	case !f.last.Before(f.span.Start):
		return true
	}
	return f.span.Start.Before(f.changed) && f.span.Start.Before(f.lastEnd)
}

// owed tells whether an open window has yet to get its run and the fleet is
// there to be looked at, and if not, when to look again. A window gets one
// run; one that opened while no controller was there gets it late.
func owed(f facts) (bool, time.Time) {
	at := later(f.started, f.joined).Add(quiet)
	switch {
	case f.now.Before(f.span.Start):
		return false, f.span.Start
	case hadRun(f):
		return false, f.span.End
	case f.now.Before(at):
		return false, at
	}
	return true, time.Time{}
}

// due tells whether a run has to be opened now, and if not, when to look again
// (zero: at the next event).
func due(f facts) (bool, time.Time) {
	if is, at := owed(f); !is {
		return false, at
	}
	switch at := f.started.Add(gracePeriod); {
	case f.silent > 0 && f.now.Before(at):
		return false, at
	case f.members == f.silent:
		return false, time.Time{}
	}
	return true, time.Time{}
}
