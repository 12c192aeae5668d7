package decide

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Confirmation is what of the present boot is left to confirm outside of an upgrade.
type Confirmation int

// What may be left of a boot.
const (
	// NothingLeft means that nothing is: the strategy confirms nothing, it was done, or it
	// failed, which is tried again with the next start of the worker.
	NothingLeft Confirmation = iota
	// WholeBoot is the system that runs, and what the machine gave up for it.
	WholeBoot
	// GivenUp is what the machine gave up: it stays marked until the site says that this
	// worker is the one of its host.
	GivenUp
)

// confirmIsDue reports whether the system that has started is to be looked at now: to be
// confirmed, unless it is on trial. In a run that is after verify, which does it itself:
// until the upgrade is over nobody knows whether the system is well. Only the worker of the
// host may do it: another worker on this machine may have the upgrade in hand, and could not
// find out any more that the machine gave it up.
func (s State) confirmIsDue(seen Seen) bool {
	if s.Unconfirmed == NothingLeft || s.away(seen) {
		return false
	}
	switch s.Phase {
	case Upgrading, Verifying, RollingBack, Rebooting:
		return false
	}
	return seen.Lease == Held || seen.Lease == Unanswered && s.Unconfirmed == WholeBoot
}

// Judge decides on the system that the host says has started, outside of an upgrade.
// Unconfirmed says what to do in the state that it returns: nothing if the system is on
// trial, confirm what runs and leave marked what the machine gave up, or confirm the whole
// boot. own means that this worker may have installed what the machine gave up.
func (s State) Judge(boot strategy.Boot, own bool, seen Seen, now time.Time) State {
	if next, gone := s.wentBack(boot); gone {
		s = s.begin(next)
	}
	mayForget := boot.Failed == "" || own && s.PastPrepare()
	switch {
	case s.Boots.OnTrial(boot, now):
		s.Unconfirmed = NothingLeft
	case seen.Lease == Unanswered && !mayForget:
		s.Unconfirmed = GivenUp
	default:
		s.Unconfirmed = WholeBoot
	}
	return s
}

// Judged returns the state in which nothing more is to be confirmed in this boot.
func (s State) Judged(bootID string) State {
	if s.Boots.Judged != bootID {
		s.Boots.Judged, s.Unconfirmed = bootID, NothingLeft
	}
	return s
}

// ConfirmLater returns the state in which what runs is to be confirmed later in this boot,
// though it may have failed its verify before.
func (s State) ConfirmLater(bootID string) State {
	if s.Boots.Judged == bootID {
		s.Boots.Judged = ""
	}
	return s
}

// Reject returns the state after the machine gave up a version in this boot, as a start of it
// shows; false when that was noted in this boot: a person may have accepted the version since. name
// is what the version is of, by the plan.
func (s State) Reject(boot strategy.Boot, name, bootID string, now time.Time) (State, Rejected, bool) {
	if boot.Failed == "" || s.Boots.Noted == bootID {
		return s, Rejected{}, false
	}
	r := Rejected{Name: name, Version: boot.Failed, Running: boot.Running, At: now.UTC().Round(0)}
	s.Boots = s.Boots.reject(r)
	s.Boots.Noted = bootID
	return s, r, true
}

// Settle returns the state after the checks of a task have passed, and the system on which they
// did still runs.
func (s State) Settle(t message.Task) State {
	s.Boots = s.Boots.endTrial(t)
	return s
}

// withTrial returns the state with the trial of b. What runs is confirmed once it is not on
// trial any more.
func (s State) withTrial(b Boots, bootID string) State {
	if b.Trial == s.Boots.Trial {
		return s
	}
	if s.Boots = b; b.Judged != bootID {
		s.Unconfirmed = WholeBoot
	}
	return s
}
