package run

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
)

// Foreseen is the forecast of the run under way in an environment.
type Foreseen struct {
	*Environment
	Forecast
}

// Forecast tells when the run under way in an environment is expected to end, as State.Forecast does.
// Runs that share cells of disruption budgets delay each other, so they are played together: the answer
// has the forecasts of all of them, and of one of which nothing is known it has none. Runs that are
// opened later are not foreseen.
func (l *Ledger) Forecast(e *Environment, now time.Time) []Foreseen {
	current := e.Current()
	if current == nil || current.isPreparing() {
		return nil // Nothing is foreseen of its run, so the others need not be played for it.
	}
	if group := l.sharing(e); len(group) > 1 {
		return forecastTogether(group, now)
	}
	if f, known := current.Forecast(now); known {
		return []Foreseen{{Environment: e, Forecast: f}}
	}
	return nil
}

// sharing returns the environments whose runs under way share cells with that of an environment, or
// with one that does, in the order of UnderWay. None does without budgets.
func (l *Ledger) sharing(e *Environment) []*Environment {
	if len(l.underWay) < 2 || !l.cells.Counts() {
		return nil
	}
	cells, sharers := map[*Environment][]int{}, map[int][]*Environment{}
	for _, other := range l.underWay {
		cells[other] = other.newest.cellsLeft()
		for _, n := range cells[other] {
			sharers[n] = append(sharers[n], other)
		}
	}
	reached, next := map[*Environment]bool{e: true}, []*Environment{e}
	for ; len(next) > 0; next = next[1:] {
		for _, n := range cells[next[0]] {
			for _, other := range sharers[n] {
				if !reached[other] {
					reached[other], next = true, append(next, other)
				}
			}
			delete(sharers, n)
		}
	}
	return slices.DeleteFunc(slices.Clone(l.underWay), func(other *Environment) bool { return !reached[other] })
}

// cellsLeft returns the cells of the hosts that the run has yet to upgrade, or has at work.
func (s *State) cellsLeft() (cells []int) {
	if s.ID == 0 {
		return nil // It is prepared in a moment.
	}
	seen := make([]bool, s.roster.Sets())
	for i := range s.members {
		if m := &s.members[i]; m.left() && !seen[m.SetOf()] {
			seen[m.SetOf()] = true
			cells = append(cells, s.roster.CellsOf(m.SetOf())...)
		}
	}
	return cells
}

// forecastTogether plays the runs of environments together. A run in which no host is measured yet
// takes as long for each as the slowest of the others.
func forecastTogether(group []*Environment, now time.Time) []Foreseen {
	var slowest time.Duration
	rosters := make([]*roster.Roster, len(group))
	for n, e := range group {
		slowest, rosters[n] = max(slowest, e.newest.durations.usual), e.roster
	}
	if slowest == 0 {
		return nil
	}
	rosters = roster.CloneAll(rosters)
	all := make([]*forecaster, len(group))
	for n, e := range group {
		took := e.newest.durations.usual
		if took == 0 {
			took = slowest
		}
		all[n] = e.newest.forecaster(now, took, rosters[n])
		all[n].turn = e.Turn()
		all[n].run.prepareAll(now)
	}
	playOut(now, all...)
	var foreseen []Foreseen
	for n, p := range all {
		if p.known() && !group[n].newest.isPreparing() {
			foreseen = append(foreseen, Foreseen{Environment: group[n], Forecast: p.f})
		}
	}
	return foreseen
}

// prepareAll begins a run that waits for answers to prepare, as if each host that is heard of gave
// its answer now: its hosts soon want the places that it shares.
func (s *State) prepareAll(now time.Time) {
	if !s.isPreparing() {
		return
	}
	for i := range s.members {
		if m := &s.members[i]; m.isAwaited() && !m.IsSilent() {
			s.recount(i, now, func(m *member) { m.phase = idle })
		}
	}
	s.begins(now)
}

// playOut plays runs to their ends in one virtual time. When several may have a host start, that one
// goes first which had one start longest ago, as their controller has it.
func playOut(now time.Time, all ...*forecaster) {
	t := table{now: now, all: all}
	for _, p := range all {
		t.turns = max(t.turns, p.turn)
	}
	for t.start() || t.pass() {
	}
	for _, p := range all {
		p.conclude(t.now)
	}
}

// table is what runs that are played together have in common.
type table struct {
	now   time.Time
	all   []*forecaster
	turns uint64
	// freed are the lists of cells of hosts that have given back their places, as long as a place
	// in one of these cells is free. No run that waits for a place need be asked otherwise.
	freed []int
}

// start has the next host start, if any run may have one start.
func (t *table) start() bool {
	for {
		p := t.next()
		if p == nil {
			return false
		}
		if p.start(t.now) {
			t.turns++
			p.turn = t.turns
			return true
		}
	}
}

// next returns the run whose turn it is; nil when none need be asked.
func (t *table) next() (first *forecaster) {
	t.freed = slices.DeleteFunc(t.freed, func(set int) bool { return !t.all[0].run.roster.HasFreePlace(set) })
	for _, p := range t.all {
		if p.awake && (!p.forPlace || len(t.freed) > 0) && (first == nil || p.turn < first.turn) {
			first = p
		}
	}
	return first
}

// pass lets time pass until the next thing happens. False means that nothing more will happen.
func (t *table) pass() bool {
	var next *forecaster
	var at time.Time
	for _, p := range t.all {
		if due := p.due(t.now); !due.IsZero() && (next == nil || due.Before(at)) {
			next, at = p, due
		}
	}
	if next == nil {
		return false
	}
	t.now = at
	if set := next.pass(at); set > 0 {
		t.freed = append(t.freed, set)
		for _, p := range t.all {
			p.awake = p.awake || p.forPlace
		}
	}
	return true
}
