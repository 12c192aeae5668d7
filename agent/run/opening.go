package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Opening returns the roster that the next run of an environment is opened with: who is out of
// service there, and what its members and those that count in its stages owe that come from
// other environments.
func (l *Ledger) Opening(environment string, members, silent []string, others []message.Entry) []message.Entry {
	e := l.Of(environment)
	entries := e.Roster().Opening(silent, others)
	if l.RosterAsOf(environment) == 0 {
		return entries
	}
	for _, host := range named(message.Opened{Members: members, Roster: entries}) {
		if home := l.home(host); home != nil && home.Name != environment {
			if brought, some := home.Roster().Entry(host); some {
				entries = roster.Take(entries, brought)
			}
		}
	}
	for i := range entries {
		if of := l.byRun[entries[i].Run]; of != nil {
			entries[i].Epoch = of.newest.Epoch(entries[i].Host)
		}
	}
	return entries
}

// Says returns of which hosts an opening has to say the cells: of those that it names, and of locked
// hosts and those in the rosters of all other environments if its budgets are not those of the log.
// These would else count by budgets that are not in force any more.
func (l *Ledger) Says(e message.Opened) func(host string) bool {
	said := map[string]bool{}
	for _, host := range named(e) {
		said[host] = true
	}
	edited := e.Budgets != l.cells.Budgets()
	return func(host string) bool {
		if said[host] || !edited {
			return said[host]
		}
		if _, locked := l.locks[host]; locked {
			return true
		}
		home := l.home(host)
		return home != nil && home.Name != e.Environment && home.roster.Has(host)
	}
}

// RosterAsOf is what the opening of a run of an environment has to say of its roster, and
// decides how it is appended. 0 means that nothing may come in between (log.Log.AppendNext).
// With several environments this would hold up a run for as long as the hosts of another one
// answer: there it is the last record that Opening takes into account.
func (l *Ledger) RosterAsOf(environment string) uint64 {
	if environment == "" && !l.hasOthers(l.Of("")) {
		return 0
	}
	return l.LastSeq
}

// hasOthers reports whether the log knows of other environments than this one.
func (l *Ledger) hasOthers(e *Environment) bool {
	return len(l.environments) > 1 || len(l.environments) == 1 && l.environments[e.Name] == nil
}

// home returns the environment whose roster has a host; nil when none has.
func (l *Ledger) home(host string) *Environment {
	if l.homes != nil {
		return l.homes[host]
	}
	for _, e := range l.environments { // There is only one.
		if _, known := e.Roster().Index(host); known {
			return e
		}
	}
	return nil
}

// takeOver makes an environment the home of neighbours that its roster has from a record on. Where
// they were before they owed nothing. That the record counts is known only from the opening of its
// run on, so the log is kept from there for the environments that they leave, too.
func (l *Ledger) takeOver(e *Environment, hosts []string, r message.Record) {
	for _, host := range hosts {
		if home, _ := l.rosterOf(host); home != nil {
			home.needs(e.from)
		}
	}
	l.letGo(hosts, r, e)
	if l.homes != nil {
		l.takeIn(e, hosts)
	}
	l.regroup()
}

// takeIn makes an environment the home of hosts.
func (l *Ledger) takeIn(e *Environment, hosts []string) {
	switch {
	case !l.hasOthers(e):
		return
	case l.homes == nil:
		l.homes = map[string]*Environment{}
		for _, other := range l.environments {
			for _, h := range other.Roster().From(0) {
				l.homes[h.Name] = other
			}
		}
	}
	for _, host := range hosts {
		l.homes[host] = e
	}
}

// named are the hosts that the opening of a run names, each once: from then on they are in its
// environment.
func named(e message.Opened) []string {
	hosts, members := slices.Clone(e.Members), make(map[string]bool, len(e.Members))
	for _, host := range e.Members {
		members[host] = true
	}
	for _, entry := range e.Roster {
		if !members[entry.Host] {
			hosts = append(hosts, entry.Host)
		}
	}
	return hosts
}

// open begins the next run of an environment. The hosts that it names leave the other rosters:
// what they owe is in its own.
func (l *Ledger) open(r message.Record, o message.Opened) error {
	e := l.Of(o.Environment)
	if current := e.Current(); current != nil {
		return fmt.Errorf("event %s has no place in the middle of run %d", message.Name(o), current.Key())
	}
	var hosts []string
	if l.hasOthers(e) {
		hosts = named(o)
	}
	for _, host := range hosts {
		if other := l.MemberOf(host); other != nil {
			return fmt.Errorf("%s is a member of run %d, which is in progress in another environment", host, other.newest.Key())
		}
	}
	e = l.touch(o.Environment)
	l.letGo(hosts, r, e)
	if e.newest != nil {
		delete(l.byRun, e.newest.OpenedSeq)
		delete(l.byRun, e.newest.ID)
	}
	e.open(r, l.settled(o), l.locks)
	l.takeIn(e, hosts)
	l.byRun[r.Seq] = e
	l.underWay = append(l.underWay, e) // Its id is the highest.
	l.recount(e, o)
	return nil
}

// recount counts the hosts of all rosters in their cells, after that of an environment has begun.
func (l *Ledger) recount(e *Environment, o message.Opened) {
	counted := l.cells.Counts()
	l.cells.Open(o, e.roster, l.rosters(e)...)
	if counted || l.cells.Counts() {
		l.regroup()
	}
}

// regroup has all runs follow a change of the cells of hosts: they have other places in the list.
func (l *Ledger) regroup() {
	for _, other := range l.environments {
		if other.newest != nil {
			other.newest.regroup()
		}
	}
}

// letGo takes hosts that an opening names from the rosters of other environments.
func (l *Ledger) letGo(hosts []string, r message.Record, to *Environment) {
	for _, host := range hosts {
		if home := l.home(host); home != nil && home != to && home.newest.letGo(host, r) {
			l.note(home)
		}
	}
}

// rosters are those of all environments but one, by name, and that of the locked hosts; nil leaves
// out none.
func (l *Ledger) rosters(but *Environment) []*roster.Roster {
	var all []*roster.Roster
	for _, e := range l.Environments() {
		if e != but && e.roster != nil {
			all = append(all, e.roster)
		}
	}
	if len(l.locks) > 0 {
		all = append(all, l.lockRoster)
	}
	return all
}

// Carrying is the event that carries an environment.
func (l *Ledger) Carrying(e *Environment) message.Carried {
	c := message.Carried{
		Environment: e.Name, Run: e.Key(), Considered: e.Considered(), Follows: e.follows, Completed: e.completed, Reached: e.reached, Promotion: e.Promotion(), Roster: e.Roster().Opening(nil, nil),
	}
	c.Budgets, c.Cells = l.cells.Budgets(), l.cells.Of(named(message.Opened{Roster: c.Roster}))
	return c
}

// carry forgets the newest run of an environment but for what its hosts owe.
func (l *Ledger) carry(r message.Record, c message.Carried) error {
	if current := l.Of(c.Environment).Current(); current != nil {
		return fmt.Errorf("event %s has no place in the middle of run %d", message.Name(c), current.Key())
	}
	if other := l.byRun[c.Run]; other != nil && other.Name != c.Environment {
		return fmt.Errorf("event %s names run %d, which is of another environment", message.Name(c), c.Run)
	}
	e := l.touch(c.Environment)
	if e.newest != nil {
		delete(l.byRun, e.newest.OpenedSeq)
		delete(l.byRun, e.newest.ID)
	}
	e.carry(r, c, l.locks)
	l.takeIn(e, named(message.Opened{Roster: c.Roster}))
	l.byRun[c.Run] = e
	l.recount(e, message.Opened{Budgets: c.Budgets, Cells: c.Cells})
	return nil
}

// letGo takes a host from the roster, because the run of another environment has named it. It
// reports whether the roster had it.
func (s *State) letGo(host string, r message.Record) bool {
	i, known := s.roster.Index(host)
	if !known || s.roster.Host(i).HasMoved() {
		return false
	}
	s.serve(i, r.Time, func() { s.roster.Leave(i, r.Time) })
	s.LastSeq = r.Seq
	return true
}

// answer is a reply to a run that was over.
type answer struct {
	seq, run, epoch uint64
	action          message.Action
	unknown         bool
}

// answer remembers the reply of a host to a run that is over, or that is not on the log any
// more: if the next record opens a run whose roster was made before, it has to be settled then.
// After any other command or event no such opening can come: the log refuses it.
func (l *Ledger) answer(r *message.Decoded) {
	if r.Kind != message.ReplyRecord {
		return
	}
	if l.answers == nil {
		l.answers = map[string][]answer{}
	}
	unknown := r.Outcome == message.Unknown || r.Reply != nil && r.Reply.Result.Outcome == message.Unknown
	l.answers[r.Host] = append(l.answers[r.Host], answer{r.Seq, r.Run, r.Epoch, r.Action, unknown})
}

// settled returns the opening of a run with the answers that its roster does not take into
// account, because they came while it was written. They are taken from the records and not
// from the runs before: those may not be on the log any more.
func (l *Ledger) settled(o message.Opened) message.Opened {
	if o.RosterAsOf == 0 {
		return o
	}
	o.Roster = slices.Clone(o.Roster)
	for i := range o.Roster {
		for _, a := range l.answers[o.Roster[i].Host] {
			if a.seq > o.RosterAsOf {
				a.settle(&o.Roster[i])
			}
		}
	}
	return o
}

// settle notes in an entry that its host has answered, as the run would that has asked. A worker
// does one thing at a time: the answer to a later prepare shows that it has finished what it was
// told before. The entry has an epoch only if its run was the newest of its environment: the answer
// to an older one counts nowhere.
func (a answer) settle(e *message.Entry) {
	same := a.run == e.Run && e.Epoch != 0 && (a.action == e.Owes.Answer || a.action == e.Works)
	if !same && (a.action != message.Prepare || a.run <= e.Run) || e.Owes.Answer == "" && e.Works == "" {
		return
	}
	unknown := a.unknown || same && a.epoch != e.Epoch
	e.Owes.Look = e.Owes.Look || unknown && e.Works == ""
	e.Owes.Answer, e.Works, e.Run, e.Epoch = "", "", 0, 0
	if !e.Owes.Any() && !e.Silent {
		e.Since = time.Time{}
	}
}
