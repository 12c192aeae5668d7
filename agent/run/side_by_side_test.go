package run

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestInvariantsSideBySide plays runs of two to four environments side by side, as
// TestInvariants plays one: anything may happen in any of them, hosts move from one to another
// with what they owe, and answers come while runs are opened. Each record is judged by the run
// that it names, no host is ever out of service in two rosters, and each run ends by itself.
func TestInvariantsSideBySide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := &sideBySide{property: newProperty(rt), opened: map[string]message.Opened{}}
		p.sideBySide = true
		p.names = []string{"", "basel", "bern", "chur"}[:rapid.IntRange(2, 4).Draw(rt, "environments")]
		for range rapid.IntRange(1, 80).Draw(rt, "events") {
			p.turnTo(rapid.SampledFrom(p.names).Draw(rt, "in"))
			switch between := p.in().Current() == nil; {
			case p.in().Newest() == nil, between && rapid.IntRange(0, 2).Draw(rt, "opens") == 0:
				p.open()
			case between && rapid.IntRange(0, 5).Draw(rt, "carries") == 0:
				p.must(p.eventOf(p.in(), p.ledger.Carrying(p.in())))
			case rapid.IntRange(0, 9).Draw(rt, "budgets change") == 0:
				p.budgets()
			default:
				p.random()
			}
			if rapid.IntRange(0, 3).Draw(rt, "the controller is away") > 0 {
				p.drive()
			}
			p.checkAll()
		}
		p.toTheEnd(p.drive)
		p.checkAll()
	})
}

// sideBySide is a property with several environments.
type sideBySide struct {
	*property
	names []string
	// opened are the openings of the newest runs, hosts those that any run had, also as neighbours.
	opened map[string]message.Opened
	hosts  []string
	fresh  int
}

// known are hosts that are in a roster, were in one or are in none.
func (p *sideBySide) known() []string { return union(p.hosts, []string{"stranger", "beyond", "aside"}) }

// budgets is an edit of the budgets, or a neighbour that falls silent. No controller tells a run of
// a host of another run under way; from a log that was trimmed one could not see that either.
func (p *sideBySide) budgets() {
	p.budgetsOf(p.known(), func(host string) bool { return p.ledger.Unwatched(host) })
	for _, host := range p.known() {
		if p.ledger.InRoster(host) {
			p.hosts = union(p.hosts, []string{host})
		}
	}
}

// turnTo has what happens next happen in an environment.
func (p *sideBySide) turnTo(environment string) {
	p.environment, p.property.opened = environment, p.opened[environment]
}

// open opens a run, some of whose members come from other environments. It may be written
// before the last answers of hosts.
func (p *sideBySide) open() {
	e := p.drawOpening()
	if rapid.Bool().Draw(p.rt, "while hosts answer") {
		e.RosterAsOf = p.ledger.LastSeq
		for range rapid.IntRange(0, 2).Draw(p.rt, "answers") {
			p.environment = rapid.SampledFrom(p.names).Draw(p.rt, "of")
			if p.in().Newest() != nil {
				p.answer1()
			}
		}
		p.environment = e.Environment
	}
	p.opened[e.Environment] = e
	p.hosts = union(p.hosts, named(e))
	p.openRun(e)
}

// drawOpening draws how the next run of the environment is opened.
func (p *sideBySide) drawOpening() message.Opened {
	e := drawOpening(p.rt, p.now)
	e.Environment = p.environment
	names := map[string]string{}
	used := map[string]bool{}
	for _, host := range named(e) {
		names[host] = p.name(e, host, used)
		used[names[host]] = true
	}
	for _, g := range e.Rollout.Start {
		for i, host := range g.Hosts {
			g.Hosts[i] = names[host]
		}
	}
	for i, host := range e.Members {
		e.Members[i] = names[host]
	}
	for i := range e.Rollout.NoReboot {
		e.Rollout.NoReboot[i].Host = names[e.Rollout.NoReboot[i].Host]
	}
	first := p.in().Key() == 0
	var entries []message.Entry
	for _, entry := range e.Roster {
		entry.Host = names[entry.Host]
		known := slices.Contains(p.hosts, entry.Host)
		if p.ledger.MemberOf(entry.Host) == nil && (first && !known || entry.Since.IsZero() && entry.Works == "") {
			entries = append(entries, entry)
		}
	}
	e.Roster = p.ledger.Opening(e.Environment, e.Members, nil, entries)
	e.Budgets, e.Cells = p.ledger.Cells().Budgets(), nil
	if rapid.IntRange(0, 3).Draw(p.rt, "edits budgets") == 0 {
		e.Budgets = rapid.SampledFrom([]string{"", "v1", "v2"}).Draw(p.rt, "budgets")
	}
	if e.Budgets != "" {
		e.Cells = p.ledger.CellsOf(e, drawCells(p.rt, union(p.known(), named(e))))
	}
	return e
}

// name is what a host of an opening is called: mostly that of a host of its environment, and
// sometimes that of a member which moves. A member of another run under way does not.
func (p *sideBySide) name(e message.Opened, host string, used map[string]bool) string {
	name := fmt.Sprintf("%s-%s", e.Environment, host)
	if e.Environment == "" {
		name = host
	}
	if slices.Contains(e.Members, host) && len(p.hosts) > 0 && rapid.IntRange(0, 4).Draw(p.rt, "moves") == 0 {
		name = rapid.SampledFrom(p.hosts).Draw(p.rt, "who moves")
	}
	if p.ledger.MemberOf(name) != nil || used[name] {
		p.fresh++
		name = fmt.Sprintf("x%d", p.fresh)
	}
	return name
}

// checkAll checks each environment, and that no host is in two rosters.
func (p *sideBySide) checkAll() {
	p.refold()
	at := p.environment
	in := map[string]string{}
	for _, e := range p.ledger.Environments() {
		if p.environment = e.Name; e.Newest() != nil {
			p.checkRun()
		}
		for host := range e.Roster().OutOfService() {
			if other, some := in[host]; some {
				p.rt.Fatalf("invariant 11: %s is out of service in %q and in %q", host, other, e.Name)
			}
			in[host] = e.Name
		}
	}
	p.environment = at
	p.refoldTrimmed()
}

// refoldTrimmed is a controller that starts on a log that was trimmed: it must know of each
// newest run what the whole log says.
func (p *sideBySide) refoldTrimmed() {
	from := p.ledger.NeededFrom()
	var trimmed Ledger
	for _, r := range p.log[from-1:] {
		_ = trimmed.Fold(r.Decode())
	}
	for _, e := range p.ledger.Environments() {
		if other := trimmed.Of(e.Name); !reflect.DeepEqual(regrouped(other.Newest()), regrouped(e.Newest())) || !reflect.DeepEqual(other.Roster(), e.Roster()) {
			p.rt.Fatalf("a log that begins with record %d gives another state of run %d", from, e.Key())
		}
	}
}

// regrouped is a run with its candidates put into queues anew: how these are laid out depends on when
// that was done last, and a log that was trimmed may not have the record that has had it done.
func regrouped(s *State) *State {
	if s == nil {
		return nil
	}
	c := *s
	c.members, c.stages = slices.Clone(s.members), s.stages.clone()
	c.regroup()
	c.stepTimes = nil // Only forecasts go by those of runs that were trimmed.
	return &c
}
