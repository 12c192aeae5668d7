package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

const (
	// quiet is how long no new host may have joined before a run is opened by
	// itself, so that a fleet that starts is not upgraded host by host.
	quiet = 3 * time.Second
	// settle is how long after its start a controller waits for known hosts to
	// be heard of before it takes them for silent.
	settle = 15 * time.Second
)

// facts are what due decides on.
type facts struct {
	now             time.Time
	span            window.Span
	inSpan          bool
	lastOpened      time.Time
	started, joined time.Time
	members, silent int
}

// due tells whether a run has to be opened now, and if not, when to look again
// (zero: at the next event). A window gets one run: none is due once one was
// opened since the window did. A window that opened while no controller was
// there gets it late.
func due(f facts) (bool, time.Time) {
	switch {
	case !f.inSpan:
		return false, f.span.Start
	case !f.lastOpened.Before(f.span.Start):
		return false, f.span.End
	case f.members == f.silent:
		return false, time.Time{}
	}
	at := later(f.started, f.joined).Add(quiet)
	if f.silent > 0 {
		at = later(at, f.started.Add(settle))
	}
	if f.now.Before(at) {
		return false, at
	}
	return true, time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
