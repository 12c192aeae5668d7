package decide

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Lease is what a worker knows of the host's one lease: several workers may run on
// a host, and only the one with the lease may work.
type Lease int

const (
	// Requesting means that the worker has asked for the lease and the response
	// may come at any moment.
	Requesting Lease = iota
	// Unanswered means that the site has not responded: it cannot be reached.
	Unanswered
	// Taken means that another worker holds the lease.
	Taken
	// Held means that this worker holds the lease.
	Held
)

// allow returns the action that a worker may take, given the next action of its
// journal. away means that another worker has held the lease since this worker
// received the prepare of the journal's run, or may have held it.
//
// This function keeps two workers of a host from both upgrading it in one run: only the
// worker that has received the run's prepare and replied to it under the lease executes
// the upgrade.
//
//   - A worker that gets the lease from another worker executes no command that
//     was on the log by then (DoTakeOver). It replies to that command, and to all
//     later commands of the same run, with an error.
//   - If two workers both execute one prepare, both therefore had the lease before
//     the prepare was sent. The earlier holder has lost the lease without knowing:
//     its reply to the prepare is refused with ErrTaken. From then on it is away,
//     and does not execute the upgrade.
//   - A gate that is behind may accept that reply. The upgrade then has the epoch
//     of that reply, and the worker that holds the lease in another epoch does not
//     execute it (receiveKnown).
//   - A worker that has begun the upgrade is therefore the only worker that has,
//     and finishes the upgrade even if another worker holds the lease now: a host
//     is not left half upgraded.
//
// The journal alone says what was begun. A host therefore finishes its action while
// the site cannot be reached, but begins no other.
func (j Journal) allow(do Do, s Lease, away bool) Do {
	switch {
	case s == Requesting:
		return DoWait
	case j.begun(do):
		return do
	case do == DoReboot && j.Reboot != NotAsked && (s == Taken || away):
		// The machine may have been asked. To ask again is for the worker of the
		// host alone.
		return DoAwaitReboot
	case s == Taken || s == Unanswered && (away || do == Nothing || do == DoGetRelease || do == DoReply):
		return DoWait
	case away && do == DoReply && j.Action != message.Prepare:
		// The reply is true, and no other worker can give it.
		return do
	case away:
		return DoTakeOver
	}
	return do
}

// begun reports whether an action continues work that has had an effect, or may have
// had one. DoUpgrade is not such an action: it begins an upgrade. Nor is DoReboot, but for
// the reboot of a rollback.
func (j Journal) begun(do Do) bool {
	switch do {
	case DoResume, DoVerify, DoRollback, DoAwaitReboot, DoBooted:
		return true
	case DoAwaitRetry:
		return j.Phase != Preparing
	case DoReboot: // It ends a rollback that was begun.
		return j.Back == BackReboots && j.Reboot == NotAsked
	default:
		return false
	}
}

// Over reports whether a worker that ends may give the lease back: no action is in
// progress, and the run has no further command for this journal. Between two
// commands of a run the worker keeps the lease, as long as the next command may
// be sent. Another worker could only reply that it does not know what was done,
// which fails the host in this run, while this worker may be back in a moment.
//
// Invariant 2 does not depend on this answer: a worker that gives the lease back
// has ended. When it is started again it continues this journal only if the epoch
// of the lease shows that no other worker has held the lease in between.
func (j Journal) Over(now time.Time) bool {
	switch j.Phase {
	case Idle:
		return true
	case Answered:
		next := j.Action != message.Reboot && j.Result.Outcome == permits(after(j.Action))
		return !next || !now.Before(j.NotAfter)
	default:
		return false
	}
}

// after returns the action that comes after an action.
func after(a message.Action) message.Action {
	if a == message.Prepare {
		return message.Upgrade
	}
	return message.Reboot
}
