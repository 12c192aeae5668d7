package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Ledger is the fold of a whole log: for each environment one run after the other, and the
// runs of different environments side by side.
//
// A record is of the run that it names, a prepare and what belongs to no run of the
// environment that it names. A host is in the roster of one environment at most: that of the
// last `opened` that has named it.
type Ledger struct {
	// LastCommand is the sequence of the last record that a controller wrote;
	// the next one must be based on it, or the log refuses it (log.ErrBehind).
	LastCommand uint64
	// LastSeq is the sequence of the last record folded.
	LastSeq uint64
	// Ignored counts the records that changed nothing.
	Ignored uint64

	// environments are those of which the log knows something, by name; sorted are
	// the same in the order of their names.
	environments map[string]*Environment
	sorted       []*Environment
	// byRun are the environments by the sequences that begin their newest run: its opening
	// and its prepare.
	byRun map[uint64]*Environment
	// homes are the environments whose rosters have a host, by host; nil while there is only
	// one environment.
	homes map[string]*Environment
	// underWay are the environments with a run under way, in the order of their ids.
	underWay []*Environment
	// cells count the hosts that are out of service for the disruption budgets of the tenant.
	cells roster.Cells
	// locks are the hosts that may reboot by themselves, by name, and lockRoster counts them in
	// their cells.
	locks      map[string]Lock
	lockRoster *roster.Roster
	// last is the environment of the last record, touched are all that it may have changed.
	last    *Environment
	touched []*Environment
	// answers are the replies since the last command or event to runs that were over, by
	// host: the roster of a run that is being opened may not take them into account yet.
	answers map[string][]answer
	// time is that of the last record.
	time time.Time
}

// Of returns an environment by its name on the log: the default one has none.
func (l *Ledger) Of(name string) *Environment {
	if e := l.environments[name]; e != nil {
		return e
	}
	return &Environment{Name: name}
}

// Newest is that of the default environment, as are Current, Ended, Roster, Considered, Missed
// and Next.
func (l *Ledger) Newest() *State { return l.Of("").Newest() }

// Current is Environment.Current.
func (l *Ledger) Current() *State { return l.Of("").Current() }

// Ended is Environment.Ended.
func (l *Ledger) Ended() *State { return l.Of("").Ended() }

// Roster is Environment.Roster.
func (l *Ledger) Roster() *roster.Roster { return l.Of("").Roster() }

// Considered is Environment.Considered.
func (l *Ledger) Considered() time.Time { return l.Of("").Considered() }

// Missed is Environment.Missed.
func (l *Ledger) Missed(now time.Time) *message.Missed { return l.Of("").Missed(now) }

// Next is Environment.Next.
func (l *Ledger) Next(now time.Time, seen Seen) Decision { return l.Of("").Next(now, seen) }

// Environments returns the environments of which the log knows something, by name: the
// default one comes first, if it has had a run or missed a window. The caller does not change
// the slice.
func (l *Ledger) Environments() []*Environment { return l.sorted }

// UnderWay returns the environments with a run under way, in the order of the ids of the runs.
// The caller does not change the slice.
func (l *Ledger) UnderWay() []*Environment { return l.underWay }

// Last returns the environment of the last record; nil if it is of none, or has changed
// nothing.
func (l *Ledger) Last() *Environment { return l.last }

// Touched returns the environments that the last record may have changed: the next decision of
// all others is what it was. The next record changes the slice.
func (l *Ledger) Touched() []*Environment { return l.touched }

// Run returns the run with an id, and its environment, if it is the newest of the environment
// or the last that has ended there; nil otherwise.
func (l *Ledger) Run(id uint64) (*State, *Environment) {
	if e := l.byRun[id]; e != nil && e.Newest() != nil {
		return e.newest, e
	}
	for _, e := range l.environments {
		if e.ended != nil && (e.ended.ID == id || e.ended.OpenedSeq == id) {
			return e.ended, e
		}
	}
	return nil, nil
}

// Cells count the hosts that are out of service for the disruption budgets of the tenant.
func (l *Ledger) Cells() *roster.Cells { return &l.cells }

// InRoster reports whether a host is in the roster of any environment.
func (l *Ledger) InRoster(host string) bool {
	home := l.home(host)
	return home != nil && home.Roster().Has(host)
}

// Unwatched reports whether no run of its own notices that a host falls silent: the host is in no
// roster, or in service in the roster of an environment whose run has ended. Its silence then counts
// in the runs that share a cell with it.
func (l *Ledger) Unwatched(host string) bool {
	home := l.home(host)
	switch {
	case home == nil:
		return true
	case home.Current() != nil:
		return !home.roster.Has(host)
	}
	return home.roster.Unwatched(host)
}

// NeededFrom returns the first record of the log that is needed to know the newest runs and the
// locks: those before it can be trimmed. 0 before the first run.
func (l *Ledger) NeededFrom() uint64 {
	from := l.NeededByRuns()
	if oldest, some := l.oldestLock(); some {
		from = min(from, oldest.seq)
	}
	return from
}

// NeededByRuns is NeededFrom if no host were locked.
func (l *Ledger) NeededByRuns() (from uint64) {
	for _, e := range l.environments {
		if needed := e.NeededFrom(); needed != 0 && (from == 0 || needed < from) {
			from = needed
		}
	}
	return from
}

// MemberOf returns the environment whose run under way has a host as a member; nil when none has.
// Such a host takes no part in another run before that one has ended.
func (l *Ledger) MemberOf(host string) *Environment {
	if e := l.home(host); e != nil && e.Current() != nil && e.newest.hasMember(host) {
		return e
	}
	return nil
}

// Fold applies the next record. An error means that it changed no run, and
// says why. A record that was folded before is passed over in silence: a
// reader that starts again may deliver it twice.
func (l *Ledger) Fold(r message.Decoded) error {
	if r.Seq <= l.LastSeq {
		return nil
	}
	l.LastSeq, l.last, l.touched = r.Seq, nil, l.touched[:0]
	if r.Kind == message.CommandAll || r.Kind == message.CommandHost || r.Kind == message.EventRecord {
		l.LastCommand = r.Seq
	}
	err := l.fold(&r)
	if l.LastCommand == r.Seq {
		clear(l.answers)
	}
	if err != nil {
		l.last = nil
		l.Ignored++
	}
	if l.cells.Freed() {
		for _, e := range l.underWay { // Any of them may wait for the place.
			l.note(e)
		}
	}
	return err
}

func (l *Ledger) fold(r *message.Decoded) error {
	if _, skipped := r.Event.(message.Skipped); skipped {
		return nil
	}
	l.follow(r.Time)
	if r.Kind == message.EventRecord {
		switch e := r.Event.(type) {
		case nil:
			return r.Err
		case message.Missed:
			return l.touch(e.Environment).miss(e)
		case message.Opened:
			return l.open(r.Record, e)
		case message.Carried:
			return l.carry(r.Record, e)
		case message.Budgeted:
			l.budgeted(r, e)
			return nil
		case message.Locked:
			return l.lock(r, e)
		case message.Unlocked:
			return l.unlock(r, e)
		}
	}
	e, err := l.whose(r)
	if err != nil {
		return err
	}
	return l.apply(e, r)
}

// follow notes the time of the next record. When it is before the time of the last record, the
// log's clock was set back, and all runs under way have to know: one that has no record of its
// own would wait for too long.
func (l *Ledger) follow(now time.Time) {
	if now.Before(l.time) {
		for _, e := range l.underWay {
			e.newest.setBack(l.time, now)
			l.note(e)
		}
		for _, e := range l.environments {
			e.setBack(now)
		}
		l.setLocksBack(now)
	}
	l.time = now
}

// whose returns the environment whose newest run a record is of.
func (l *Ledger) whose(r *message.Decoded) (*Environment, error) {
	e := l.byRun[r.Run]
	switch {
	case r.Kind == message.CommandAll:
		e = l.environments[r.Environment]
	case e == nil && l.alone() && (r.Run == 0 || r.Kind != message.EventRecord):
		e = l.environments[""] // It changes nothing, and its run says why.
	}
	if e != nil && e.newest != nil {
		return e, nil
	}
	l.answer(r)
	if r.Run != 0 && len(l.environments) > 0 {
		return nil, fmt.Errorf("record %d is of run %d, which is the newest run of no environment", r.Seq, r.Run)
	}
	return nil, fmt.Errorf("record %d belongs to no run", r.Seq)
}

// alone reports whether the log knows of the default environment and of no other.
func (l *Ledger) alone() bool { return len(l.environments) == 1 && l.environments[""] != nil }

// apply folds a record into the newest run of an environment.
func (l *Ledger) apply(e *Environment, r *message.Decoded) error {
	run := e.newest
	l.last = e
	l.note(e)
	wasOver, before := run.Over(), run.ID
	if wasOver || r.Run != run.ID {
		l.answer(r)
	}
	neighbours, err := l.neighbours(e, r)
	if err != nil {
		return err
	}
	if err = run.Fold(r); err == nil && len(neighbours) > 0 {
		l.takeOver(e, neighbours, r.Record)
		for _, host := range neighbours {
			if _, locked := l.locks[host]; locked {
				l.tellLock(host, r.Time)
			}
		}
	}
	switch {
	case run.ID != before:
		l.byRun[run.ID] = e
		l.underWay = append(l.without(e), e) // Its id is the highest.
	case run.Over() && !wasOver:
		e.ended = run
		e.complete(run)
		e.reached = run.after
		l.underWay = l.without(e)
	}
	return err
}

// neighbours returns the hosts that a record adds to the roster of an environment, because they
// fell silent and share a cell with its hosts. No other roster would count them.
func (l *Ledger) neighbours(e *Environment, r *message.Decoded) ([]string, error) {
	silent, _ := r.Event.(message.Silent)
	if len(silent.Cells) == 0 {
		return nil, nil
	}
	for _, host := range silent.Hosts {
		if home := l.home(host); home != nil && home != e && !l.Unwatched(host) {
			return nil, fmt.Errorf("%s is in the roster of another environment", host)
		}
	}
	return silent.Hosts, nil
}

// budgeted puts edited budgets in force. The run under way for which a controller has written that
// may not be on the log any more, and between runs it is written for hosts that are locked, or are to
// be: else the next run is opened with its cells.
func (l *Ledger) budgeted(r *message.Decoded, e message.Budgeted) {
	l.cells.Edit(e, l.rosters(nil)...)
	for _, e := range l.underWay {
		e.newest.budgeted(r)
		l.note(e)
	}
	l.regroup()
}

// without returns the environments with a run under way, except one. It changes underWay in place.
func (l *Ledger) without(e *Environment) []*Environment {
	return slices.DeleteFunc(l.underWay, func(other *Environment) bool { return other == e })
}

// touch returns an environment that a record is about to change.
func (l *Ledger) touch(name string) *Environment {
	e := l.environments[name]
	if e == nil {
		e = &Environment{Name: name}
		if l.environments == nil {
			l.environments, l.byRun = map[string]*Environment{}, map[uint64]*Environment{}
		}
		l.environments[name] = e
		i, _ := slices.BinarySearchFunc(l.sorted, name, func(e *Environment, name string) int { return strings.Compare(e.Name, name) })
		l.sorted = slices.Insert(l.sorted, i, e)
	}
	l.last = e
	l.note(e)
	return e
}

// note notes that a record may have changed an environment.
func (l *Ledger) note(e *Environment) {
	if !slices.Contains(l.touched, e) {
		l.touched = append(l.touched, e)
	}
}
