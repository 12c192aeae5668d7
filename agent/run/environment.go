package run

import (
	"cmp"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Environment is what the log says of one environment: its runs, one after the other. Only
// its ledger changes it.
type Environment struct {
	// Name is empty for the default environment.
	Name string

	newest, ended *State
	// from is the first record that is needed to know newest.
	from uint64
	// roster is nil before the first run.
	roster    *roster.Roster
	stepTimes StepTimes
	missed    *message.Missed
	// considered is when the last window opened that had its run or was missed:
	// the last one on the log, whatever clock it went by.
	considered time.Time
	// completed are the runs of all its hosts that have completed, and after which none has
	// ended in another way; follows are the runs of other environments that its runs have
	// followed.
	completed []message.Completion
	follows   []message.Follow
	// reached is what the runs so far have done; nil if no run goes on from there.
	reached *message.Reached
}

// Newest returns the run that was opened last, ended or not; nil before the
// first, and once only what its hosts owe is kept of it.
func (e *Environment) Newest() *State {
	if e.newest == nil || e.newest.carried {
		return nil
	}
	return e.newest
}

// Current returns the run that is under way, or nil.
func (e *Environment) Current() *State {
	if e.newest == nil || e.newest.Over() {
		return nil
	}
	return e.newest
}

// Ended returns the last run that has ended, or nil.
func (e *Environment) Ended() *State { return e.ended }

// Key is the number that an event about hosts of the environment bears: that of its last run,
// which Newest may not return any more; 0 before the first.
func (e *Environment) Key() uint64 {
	if e.newest == nil {
		return 0
	}
	return e.newest.Key()
}

// NeededFrom is the first record of the log that is needed to know the newest run; 0 before the first
// run.
func (e *Environment) NeededFrom() uint64 { return e.from }

// needs has the log kept from a record on.
func (e *Environment) needs(from uint64) { e.from = min(e.from, from) }

// Turn is the record by which the run under way had its last turn: it let a host leave service, or
// was opened. The environment with the lowest one is asked first for its next decision. This follows
// from the log alone, so it is the same after any crash. An environment without a run comes first:
// opening a run takes nothing from the others, whose decisions could otherwise delay it without end.
func (e *Environment) Turn() uint64 {
	if e.Current() == nil {
		return 0
	}
	return cmp.Or(e.newest.TakenSeq, e.newest.OpenedSeq)
}

// Outdated is that of the last run (State.Outdated).
func (e *Environment) Outdated(host string, silent bool) bool {
	return e.newest != nil && e.newest.Outdated(host, silent)
}

// Minds is that of the last run (State.Minds).
func (e *Environment) Minds(host string) bool { return e.newest != nil && e.newest.Minds(host) }

// Roster knows which hosts of the environment are out of service, before, during and after
// its runs.
func (e *Environment) Roster() *roster.Roster {
	if e.roster == nil {
		return &roster.Roster{}
	}
	return e.roster
}

// Missed returns the window that was missed last, or nil. One that has not closed by now was
// missed by a wrong clock alone.
func (e *Environment) Missed(now time.Time) *message.Missed {
	if e.missed == nil || e.missed.WindowEnd.After(now) {
		return nil
	}
	return e.missed
}

// Reached is what the runs so far have done, for the next one to go on from; nil if that begins with the
// first stage.
func (e *Environment) Reached() *message.Reached {
	if e.reached != nil && e.reached.Ended {
		return nil
	}
	return e.reached
}

// ReachedToRetry is what the runs so far have done, for a retry to go on from; nil if that begins with the
// first stage.
func (e *Environment) ReachedToRetry() *message.Reached { return e.reached }

// Promotion is how far the environment has come to a release, with what the run under way has done so
// far; nil if no run has gone to one.
func (e *Environment) Promotion() *message.Promotion {
	if e.newest == nil {
		return nil
	}
	return e.newest.promoted()
}

// Considered is when the last window opened that had its run or was missed;
// zero when none did. Windows before it are done with.
func (e *Environment) Considered() time.Time { return e.considered }

// Next returns what has to be appended to the log, or waited for, at a time.
// What people want comes first, also after the end of a run: what they ask, and
// the hosts that they have deleted. Also after it the run is told that a host is
// heard of that fell silent during it. Then the run is told what it does not know
// yet, and then it goes on.
func (e *Environment) Next(now time.Time, seen Seen) Decision {
	q := seen.Request
	switch {
	case e.Newest() != nil, e.newest != nil && (q == nil || q.Ask == Release):
		return e.newest.Next(now, seen)
	case q != nil && q.Ask == Release:
		return Decision{Act: Refuse, Refused: &Refused{Message: fmt.Sprintf("host %s holds no slot: there was no run yet; there is nothing to release", q.Host)}}
	case q != nil:
		return Decision{Act: Refuse, Refused: &Refused{Message: "no run is in progress; to start one: " + TypedIn(q.Environment, "start --override-window")}}
	}
	return Decision{}
}

// miss notes a window that had no run.
func (e *Environment) miss(missed message.Missed) error {
	if e.Current() != nil {
		return fmt.Errorf("event %s has no place in the middle of run %d", message.Name(missed), e.newest.Key())
	}
	e.missed, e.considered = &missed, missed.Window
	if missed.UpToDate() {
		e.missed = nil // What an earlier window has missed is done, too.
	}
	return nil
}

// open begins the next run.
func (e *Environment) open(r message.Record, o message.Opened, locks map[string]Lock) {
	e.roster = roster.Open(o, r.Time)
	lockAll(e.roster, locks)
	if e.stepTimes == nil {
		e.stepTimes = StepTimes{}
	}
	e.newest = open(r, o, e.roster, e.stepTimes)
	e.follows, e.completed, e.reached = o.Follows, o.Completed, o.Reached
	if e.from = r.Seq; o.RosterAsOf != 0 {
		e.from = min(r.Seq, o.RosterAsOf+1)
	}
	if e.missed != nil && !o.Window.IsZero() && o.Window.Before(e.missed.WindowEnd) {
		e.missed = nil // It had not closed yet: the clock was wrong, and the window has its run now or later.
	}
	switch {
	case !o.Window.IsZero():
		e.considered = o.Window
	case !o.Considered.IsZero(): // What came before may be trimmed.
		e.considered = o.Considered
	}
}

// carry forgets the runs of the environment but for what its hosts owe.
func (e *Environment) carry(r message.Record, c message.Carried, locks map[string]Lock) {
	o := message.Opened{Roster: c.Roster}
	e.roster = roster.Open(o, r.Time)
	lockAll(e.roster, locks)
	e.newest = &State{ID: c.Run, Origin: Origin{OpenedSeq: c.Run, Promotion: c.Promotion}, Phase: Finished, LastSeq: r.Seq, roster: e.roster, carried: true, changed: r.Time}
	e.roster.Begin(c.Run)
	e.roster.Finish()
	e.ended, e.considered, e.from = nil, c.Considered, r.Seq
	e.follows, e.completed, e.reached = c.Follows, c.Completed, c.Reached
}
