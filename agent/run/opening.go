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
	from := l.others(e)
	for _, host := range named(message.Opened{Members: members, Roster: entries}) {
		for _, other := range from {
			if brought, some := other.Roster().Entry(host); some {
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

// RosterAsOf is what the opening of a run of an environment has to say of its roster, and
// decides how it is appended. 0 means that nothing may come in between (log.Log.AppendNext).
// With several environments this would hold up a run for as long as the hosts of another one
// answer: there it is the last record that Opening takes into account.
func (l *Ledger) RosterAsOf(environment string) uint64 {
	if environment == "" && len(l.others(l.Of(""))) == 0 {
		return 0
	}
	return l.LastSeq
}

// others are the environments but for one, in the order of their names.
func (l *Ledger) others(e *Environment) []*Environment {
	if l.environments[e.Name] != nil && len(l.environments) == 1 {
		return nil
	}
	return slices.DeleteFunc(l.Environments(), func(other *Environment) bool { return other.Name == e.Name })
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
	others := l.others(e)
	if len(others) > 0 {
		hosts = named(o)
	}
	for _, host := range hosts {
		if other := l.MemberOf(host); other != nil {
			return fmt.Errorf("%s is a member of run %d, which is under way in another environment", host, other.newest.Key())
		}
	}
	e = l.touch(o.Environment)
	if e.newest != nil {
		delete(l.byRun, e.newest.OpenedSeq)
		delete(l.byRun, e.newest.ID)
	}
	e.open(r, l.settled(o))
	for _, host := range hosts {
		delete(l.answers, host)
	}
	l.byRun[r.Seq] = e
	l.underWay = append(l.underWay, e)
	l.sort()
	for _, other := range others {
		if other.newest != nil && other.newest.letGo(hosts, r) {
			l.note(other)
		}
	}
	l.cells.Open(o, e.roster, rosters(others)...)
	for _, other := range l.underWay {
		other.newest.regroup()
	}
	return nil
}

// rosters are those of environments that have had a run.
func rosters(environments []*Environment) []*roster.Roster {
	var all []*roster.Roster
	for _, e := range environments {
		if e.roster != nil {
			all = append(all, e.roster)
		}
	}
	return all
}

// Carrying is the event that carries an environment.
func (l *Ledger) Carrying(e *Environment) message.Carried {
	c := message.Carried{Environment: e.Name, Run: e.Key(), Considered: e.Considered(), Roster: e.Roster().Opening(nil, nil)}
	c.Budgets, c.Cells = l.cells.Budgets(), l.cells.Of(named(message.Opened{Roster: c.Roster}))
	return c
}

// carry forgets the newest run of an environment but for what its hosts owe.
func (l *Ledger) carry(r message.Record, c message.Carried) error {
	if current := l.Of(c.Environment).Current(); current != nil {
		return fmt.Errorf("event %s has no place in the middle of run %d", message.Name(c), current.Key())
	}
	e := l.touch(c.Environment)
	if e.newest != nil {
		delete(l.byRun, e.newest.OpenedSeq)
		delete(l.byRun, e.newest.ID)
	}
	e.carry(r, c)
	l.byRun[c.Run] = e
	l.cells.Open(message.Opened{Budgets: c.Budgets, Cells: c.Cells}, e.roster, rosters(l.others(e))...)
	for _, other := range l.underWay {
		other.newest.regroup()
	}
	return nil
}

// letGo takes hosts from the roster, because the run of another environment has named them. It
// reports whether that changed anything.
func (s *State) letGo(hosts []string, r message.Record) (changed bool) {
	for _, host := range hosts {
		if i, known := s.roster.Index(host); known && !s.roster.Host(i).HasMoved() {
			s.serve(i, r.Time, func() { s.roster.Leave(i, r.Time) })
			s.LastSeq, changed = r.Seq, true
		}
	}
	return changed
}

// answer is a reply to a run that was over.
type answer struct {
	seq, run, epoch uint64
	action          message.Action
	unknown         bool
}

// answer remembers the reply of a host to a run that is over, or that is not on the log any
// more: if the roster of the next run was made before it, it has to be settled then.
func (l *Ledger) answer(r message.Decoded) {
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
// told before.
func (a answer) settle(e *message.Entry) {
	same := a.run == e.Run && (a.action == e.Owes.Answer || a.action == e.Works)
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
