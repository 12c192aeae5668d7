// Package decide decides what the worker of a host does next. State is what the worker
// remembers of one part of the host that is upgraded, such as its system. Next decides the next
// action of it, by what the worker sees (Seen) and the time. The worker writes the state of the
// action down, takes the action, and says how it ended (After).
//
// The package does no I/O, has no clock and starts no goroutine. It also knows how a state looks
// on disk: a journal of the commands, the starts of the machine, the plan of a run and the
// versions that a person accepts. It never reads or writes a file, never calls a strategy, and
// never decides which host goes when: the controller does.
//
// The files, from the top down: decide.go is the state and its next action; confirm.go what
// becomes of a system that has started; permit.go what a worker may do without the lease;
// takeover.go where one begins that has no journal, or had another worker; restored.go which
// commands count, also on another log; machine.go the commands of a run and their actions;
// deferred.go upgrades that wait for a busy host; retry.go and interrupted.go actions that are
// taken again;
// result.go what is replied; kept.go which runs can be rolled back, and what they come to; accepted.go what a person accepts; boots.go and trial.go the
// starts of the machine and the rules of a trial; plan.go, journal.go and do.go the values.
package decide

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// State is all that a worker decides by, besides what it sees at the moment (Seen). Next
// decides which action comes next. The other methods return the state after something has
// happened: a command came (Receive), an action has ended (After), the host has said which system
// has started (Judge), or another worker had the lease (TakeOver).
type State struct {
	// Journal is what is on disk of the commands, and Boots of the starts of the machine.
	// Each has a file, because an operator may remove a damaged journal: a system must not
	// be confirmed without its checks then.
	Journal
	Boots Boots
	// Kept is what is on disk of the runs that have touched the host; nil if none has. What it
	// points to never changes.
	Kept *Kept

	// The rest lasts as long as the process.

	// Blank means that there is no journal yet.
	Blank bool
	// Fresh means that the phase of the journal began in this process, not before a crash.
	Fresh bool
	// Unconfirmed is what of this boot is left to confirm outside of an upgrade.
	Unconfirmed Confirmation
}

// Seen is what a worker sees when it decides.
type Seen struct {
	Host string
	// BootID is the kernel's boot id.
	BootID string
	// Confirms means that the host may have more than one bootable system.
	Confirms bool
	// Lease is what is known of the lease, and Epoch is its epoch while this worker holds it.
	Lease Lease
	Epoch uint64
	// Accepted are the versions that a person accepts; read while some are on trial.
	Accepted AcceptedVersions
	// Passed are checks that have passed, and which nobody has settled yet; nil when there
	// are none.
	Passed *Pass
	// Busy is why the host is not to be upgraded now; nil when it may be.
	Busy *message.NotNow
	// Prepared is the plan on disk; read when a command comes, and before an upgrade.
	Prepared KeptPlan
	// Planless means that the strategy need not make a plan: without one an upgrade may change
	// anything.
	Planless bool
	// Limit is how long an action may take, with all its tries.
	Limit time.Duration
	// Retires means that the worker is to make room for the next one as soon as it may: its
	// program or key was replaced, and no check or hook is under way.
	Retires bool
}

// Pass are checks that have passed on this host.
type Pass struct {
	Task message.Task
	// Began is the journal when they began: they say nothing of what was installed after
	// that.
	Began Journal
}

// Decision is the next thing that a worker does.
type Decision struct {
	Do Do
	// State is what to write down before.
	State State
}

// Start returns the state of a worker that starts, by what is on disk.
func Start(j Journal, blank bool, known Boots, kept *Kept, seen Seen) State {
	s := State{Journal: j, Blank: blank, Boots: known, Kept: kept}
	if seen.Confirms && known.Judged != seen.BootID {
		s.Unconfirmed = WholeBoot
	}
	return s
}

// Next returns the next action.
func (s State) Next(now time.Time, seen Seen) Decision {
	if next := s.withTrial(s.Boots.withoutAccepted(seen.Accepted), seen.BootID); next.Boots.Trial != s.Boots.Trial {
		return Decision{DoAccept, next}
	}
	switch {
	case s.confirmIsDue(seen):
		return Decision{DoConfirm, s}
	case seen.Passed != nil && s.outdated(*seen.Passed):
		return Decision{DoDrop, s}
	case seen.Passed != nil:
		return Decision{DoSettle, s}
	case seen.Lease == Taken && !s.Blank && !s.Away:
		// For a restart at a time when the lease is free again. The phase stays as it was,
		// interrupted or not.
		s.Away = true
		return Decision{DoNote, s}
	}
	return s.nextOfJournal(now, seen)
}

// nextOfJournal returns the next action of the command in the journal.
func (s State) nextOfJournal(now time.Time, seen Seen) Decision {
	do := s.allow(s.next(s.Fresh, seen.BootID, now), seen.Lease, s.away(seen))
	if next, counted := s.interrupted(do, seen, now); counted {
		return Decision{DoInterrupted, next}
	}
	switch do {
	case DoAwaitRetry:
		s.Fresh = true // No action is in progress; Retry.Resume says what the last one needs.
	case Nothing, DoWait:
		if seen.Retires && s.Over(now) {
			do = DoRetire
		}
	case DoUpgrade:
		if next, deferred := s.Deferred(seen.Busy); deferred {
			return Decision{DoNote, next}
		}
		s = s.touched(seen)
	case DoResume:
		s = s.touched(seen)
	case DoAwaitIdle:
		if next, begins := s.undeferred(seen.Busy, now); begins {
			return Decision{DoNote, s.begin(next)}
		}
	case DoReboot:
		return Decision{do, s.begin(s.askReboot())}
	}
	return Decision{do, s}
}

// Receive decides on a command and returns the state to write before acting on it. An error
// means that the command is ignored.
func (s State) Receive(r message.Record, seen Seen, now time.Time) (State, error) {
	next, refused := s.receive(r, seen.Host, seen.BootID, now)
	if refused != nil {
		return s, refused
	}
	if seen.Confirms {
		var installs []string
		if r.Checks && next.Action == message.Upgrade {
			installs = seen.Prepared.installs(next)
		}
		s = s.withTrial(s.Boots.commanded(r.Checks, installs, now), seen.BootID)
	}
	// What is interrupted once it may have begun has to be resumed: it is deferred before.
	next, _ = next.deferred(seen.Busy)
	return s.begin(next), nil
}

// TakeOver returns the state in which this worker works for its host, after another worker or
// without a journal. records are the newest commands to the host on the log.
func (s State) TakeOver(records []message.Record, seen Seen, now time.Time) State {
	next := s.takeOver(records, seen.Host, now)
	if s.Blank {
		next = blank(records, seen.Host, now)
	}
	next.Epoch = seen.Epoch
	if seen.Confirms && (!s.Blank || s.Boots.Trial == nil) {
		s = s.withTrial(s.Boots.takenOver(checkedUntil(records, seen.Host, now)), seen.BootID)
	}
	return s.begin(next)
}

// Ended is how an action has ended. Its tries have the limit together.
type Ended struct {
	Do      Do
	Outcome strategy.Outcome
	Err     error
	// UpToDate says of DoVerify that the plan has nothing to change.
	UpToDate bool
	// Release is what DoGetRelease has got, with its text.
	Release *release.Pin
	Began   time.Time
	Limit   time.Duration
}

// After returns the state after an action. again means that the action is to be taken again.
func (s State) After(e Ended, bootID string, now time.Time) (next State, again bool) {
	if e.Do == DoGetRelease && e.Err == nil {
		j := s.Journal
		j.Release = e.Release
		return s.begin(j), false
	}
	if j, again := s.retry(e.Do, e.Err, e.Began, now, e.Limit); again {
		return s.begin(j), true
	}
	j := s.after(e.Do, e.Outcome, e.Err, now)
	if e.Do == DoVerify && j.Action == message.Upgrade && j.Result.Outcome == message.Done {
		j.Result.UpToDate = e.UpToDate // A host that has rebooted for it was not.
	}
	if e.Do == DoRollback && j.Phase == Rebooting {
		j.BootID = bootID
	}
	ended := e.Do == DoRollback || e.Do == DoVerify && j.RollsBack != ""
	if ended && j.Phase == Answering && j.unwell() {
		// The system that runs has failed, and there is no way back: it is not confirmed.
		s = s.Judged(bootID)
	}
	return s.begin(j).done(), false
}

// outdated reports whether what checks have seen may be gone: an upgrade came in between, or
// is not over.
func (s State) outdated(p Pass) bool {
	return p.Began.works() || s.works() || p.Began.Log != s.Log || p.Began.Seq != s.Seq
}

// begin returns the state in which a journal is the current one, and its phase begins.
func (s State) begin(j Journal) State {
	s.Journal, s.Blank, s.Fresh = j, false, true
	return s
}

// away reports whether another worker has held the lease since the journal was written
// under it. A worker without a journal must assume so.
func (s State) away(seen Seen) bool {
	return s.Blank || s.Away || seen.Lease == Held && seen.Epoch != s.Epoch
}
