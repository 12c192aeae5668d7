package run

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// measures is how many of the last hosts tell how long a host takes.
const measures = 20

// pace is how long the last hosts took for something. It is a value: a copy of it is
// independent.
type pace struct {
	last  [measures]time.Duration
	count int
	// usual is how long it usually takes: nine in ten of the last hosts were not slower, so that one
	// very slow host does not stop the rest. It is 0 while none is measured. It is asked for at each
	// decision, and so kept.
	usual time.Duration
}

// add adds how long a host took.
func (p *pace) add(took time.Duration) {
	p.last[p.count%measures] = max(took, 0)
	p.count++
	n, sorted := min(p.count, measures), p.last
	slices.Sort(sorted[:n])
	p.usual = sorted[(n*9+9)/10-1]
}

// Forecast is when a run is expected to end, if hosts go on to take as long as
// those before.
type Forecast struct {
	// End is of the whole run. It is zero while that waits for what nobody can
	// foresee, which Waits says in words.
	End   time.Time
	Waits string
	// Hosts are the ends of the members, in the order of State.Hosts; zero for those that are
	// done, and for those that wait for what nobody can foresee.
	Hosts []time.Time
	// Left counts the hosts that are expected not to be done by not-after.
	Left int
}

// Forecast tells when the run is expected to end; false when nothing is
// measured yet, or the run waits for members to answer prepare.
// Unless hosts wait for nothing but slots, it plays the rest of the run on a copy, in virtual time: each
// host and each step takes what is typical, checks pass, and nobody does anything else. It ends at a step
// that was never done before. Its cost grows with the number of hosts.
func (s *State) Forecast(now time.Time) (Forecast, bool) {
	took := s.durations.usual
	if took == 0 || s.Over() || s.isPreparing() {
		return Forecast{}, false
	}
	if f, only := s.forecastSlots(now, took); only {
		return f, true
	}
	p := s.forecaster(now, took, s.roster.Clone())
	playOut(now, p)
	return p.f, p.known()
}

// forecastSlots is the forecast of a run in whose last stage hosts wait for nothing but free
// slots: each starts when the first of those at work is done. It needs no copy of the run. False
// means that the rest of the run depends on more.
func (s *State) forecastSlots(now time.Time, took time.Duration) (Forecast, bool) {
	g, free := s.stages.current(), s.roster.Free(s.stages.index)
	order, only := s.waitForSlots(now)
	if !only {
		return Forecast{}, false
	}
	starts := len(order) // From here on, order has those that start.
	for _, i := range g.candidates.order {
		if m := &s.members[i]; m.isCandidate() && !m.HasSlot() {
			order = append(order, i)
		}
	}
	if len(order)-starts != s.counts.unstarted || starts+free < 1 && len(order) > starts {
		return Forecast{}, false
	}
	f := Forecast{End: now, Hosts: make([]time.Time, len(s.members))}
	for k, i := range order {
		switch before := k - starts - free; {
		case k < starts:
			f.End = times.Later(now, s.members[i].takenAt.Add(took))
		case before < 0:
			f.End = now.Add(took)
		default:
			start := f.Hosts[order[before]]
			if !s.fits(start, 0) {
				return Forecast{}, false
			}
			f.End = start.Add(took)
		}
		f.Hosts[i] = f.End
		if f.End.After(s.NotAfter) {
			f.Left++
		}
	}
	return f, true
}

// waitForSlots reports whether hosts of the current stage, the last that has any, may start
// whenever a slot is free. It returns the hosts at work, those first that are done first: each
// of them frees a slot then.
func (s *State) waitForSlots(now time.Time) (working []int, only bool) {
	_, ending := s.ending(now)
	b, g := s.blocker(now), s.stages.current()
	begun := !now.Before(times.Later(s.stages.reached(), g.approvedAt))
	if ending || !begun || g.Step != nil || s.roster.Budgeted() || b != nothing && b != slots || s.rollout.Splay.Duration() > 0 || len(s.rollout.Checks.Fleet) > 0 || g.admitted > 0 || !s.stages.lastWithHosts() {
		return nil, false
	}
	working = make([]int, 0, s.counts.unstarted+s.counts.underWay)
	for i := range s.members {
		m := &s.members[i]
		if !m.underWay() {
			continue
		}
		if owes := m.Owes(); m.final != "" || m.IsSilent() || owes.Look || owes.Answer != "" || m.takenAt.After(now) {
			return nil, false
		}
		working = append(working, i)
	}
	s.sortTaken(working)
	return working, true
}

// sortTaken sorts hosts by when they were taken out of service.
func (s *State) sortTaken(hosts []int) {
	slices.SortStableFunc(hosts, func(a, b int) int { return s.members[a].takenAt.Compare(s.members[b].takenAt) })
}

// forecaster plays a run to its end, alone or together with others.
type forecaster struct {
	// run is a copy of the run, now when it did something last in virtual time.
	run *State
	now time.Time
	// took is how long each host takes.
	took time.Duration
	f    Forecast
	// some tells that something is foreseen of a host or a step, if only that nobody can tell how long
	// the step takes.
	some bool
	// stepEnds is when the step under way will be done; zero while none is.
	stepEnds time.Time
	// ending means that no host and no step starts any more.
	ending bool
	// working are the hosts at work, in the order in which they are done: all take
	// equally long.
	working []int

	// turn is when the run had a host start last, by the order of all starts.
	turn uint64
	// awake tells that something has changed since it was asked last whether a host may start.
	// Otherwise until is when time alone may change that, zero for never, and forPlace tells that
	// a free place in a cell may.
	awake    bool
	until    time.Time
	forPlace bool
}

// forecaster makes a forecaster of the run, on a copy of its roster.
func (s *State) forecaster(now time.Time, took time.Duration, copied *roster.Roster) *forecaster {
	p := &forecaster{
		run: s.clone(copied), now: now, took: took, awake: true, f: Forecast{Hosts: make([]time.Time, len(s.members))},
		working: make([]int, 0, s.counts.unstarted+s.counts.underWay),
	}
	_, p.ending = s.ending(now)
	p.run.durations.usual = 0 // A host that will be late starts all the same, and is counted.
	p.resume()
	return p
}

// resume adds the hosts that are at work already.
func (p *forecaster) resume() {
	for i := range p.run.members {
		if m := &p.run.members[i]; m.final == "" && m.underWay() {
			p.working = append(p.working, i)
		}
	}
	p.run.sortTaken(p.working)
	for _, i := range p.working {
		p.expect(i, times.Later(p.now, p.run.members[i].takenAt.Add(p.took)))
	}
	if g := p.run.stages.current(); g.doing.underWay() {
		p.expectStep(g)
	}
}

// expect notes when a host will be done.
func (p *forecaster) expect(i int, at time.Time) {
	p.f.Hosts[i], p.some = at, true
	if at.After(p.run.NotAfter) {
		p.f.Left++
	}
}

// start starts the next host, if one can start, or leaves out those that are late. False means
// that only time, or another host, may change that.
func (p *forecaster) start(now time.Time) bool {
	p.until, p.forPlace, p.awake = time.Time{}, false, false
	if p.ending {
		return false
	}
	if at := p.run.leavesOutLate(); !at.IsZero() && !now.Before(at) {
		for _, host := range p.run.lateNow() {
			p.run.leaveOutLate(p.run.indexOf(host), "", now)
		}
		p.now, p.awake = now, true
		return true
	}
	if p.run.noneLeft() {
		return false
	}
	why := p.run.blocker(now)
	if why == nothing {
		p.now, p.awake = now, true
		p.startNext()
		return true
	}
	// Another host may go before the one whose splay is waited for.
	p.until, p.forPlace = p.run.unblocks(now), why == budgets || why == splay
	return false
}

// due is when the next thing happens in the run: a host is done, or time alone may let one start.
func (p *forecaster) due(now time.Time) time.Time {
	at := p.until
	if !at.After(now) {
		at = time.Time{}
	}
	if len(p.working) > 0 {
		at = times.Sooner(at, p.f.Hosts[p.working[0]])
	}
	return times.Sooner(at, p.stepEnds)
}

// pass lets the next thing happen, which is due now. It returns the list of cells in which a host
// has given back its places; 0 for none.
func (p *forecaster) pass(now time.Time) (freed int) {
	p.now, p.awake, p.forPlace = now, true, false
	if !p.stepEnds.IsZero() && !p.stepEnds.After(now) {
		p.finishStep()
		return 0
	}
	if len(p.working) == 0 || p.f.Hosts[p.working[0]].After(now) {
		return 0
	}
	i := p.working[0]
	p.working = p.working[1:]
	p.finishHost(i)
	return p.run.members[i].SetOf()
}

// conclude notes when the run has ended, or what it waits for then.
func (p *forecaster) conclude(now time.Time) {
	if !p.ending && !p.run.noneLeft() {
		w, _ := p.run.blocked(now)
		if p.f.Waits = w.Detail; p.f.Waits == "" { // A step does not fit any more, so the run ends.
			p.f.Left += p.run.counts.unstarted
		}
	}
	if p.f.Waits == "" {
		p.f.End = p.now
	}
}

// known reports whether anything is foreseen.
func (p *forecaster) known() bool { return p.f.Waits == "" || p.some }

// startNext has the next host upgraded, or the next step done, unless the checks of the fleet have
// failed.
func (p *forecaster) startNext() {
	if _, wanted := p.run.fleetTask(p.now); wanted && p.run.fleet.trouble != "" {
		p.f.Waits, p.ending = p.run.fleet.waiting(p.run.changed).Detail, true
		return
	}
	if g := p.run.stages.current(); g.awaitsStep() {
		g.doing.Since = p.now
		p.run.counts.underWay++
		p.run.stageBegins(g, p.now)
		p.expectStep(g)
		return
	}
	i := p.run.next()
	p.move(i, func(m *member) {
		p.run.roster.Take(i, p.now)
		m.phase, m.takenAt = upgrading, p.now
	})
	p.run.stages.list[p.run.members[i].Group].begun = true
	p.working = append(p.working, i)
	p.expect(i, p.now.Add(p.took))
}

// expectStep notes when the step under way will be done. Of one that was never done before nobody can
// tell.
func (p *forecaster) expectStep(g *stage) {
	p.some = true
	took, known := p.run.stepTimes.usual(g.Name)
	if !known {
		p.f.Waits, p.ending = "step "+g.Name+" (how long it takes is unknown)", true
		return
	}
	p.stepEnds = times.Later(p.now, g.doing.Since.Add(took))
}

// finishStep has the step under way be done.
func (p *forecaster) finishStep() {
	p.stepEnds = time.Time{}
	p.run.stages.current().doing.Since = time.Time{}
	p.run.counts.underWay--
	p.run.passStep(p.now)
}

// finishHost has a host be upgraded and back in service.
func (p *forecaster) finishHost(i int) {
	p.move(i, func(m *member) {
		p.run.roster.Pass(i, message.Undrain, p.now)
		p.run.roster.Return(i, p.now)
		m.phase, m.final = done, Upgraded
	})
}

// move changes a member as edit does, but updates only what starts depend on. It is called
// twice for each host, and what a forecast does not ask for would cost more than the rest.
func (p *forecaster) move(i int, change func(*member)) {
	s := p.run
	m := &s.members[i]
	from, left := m.phase, m.left()
	s.recount(i, p.now, change)
	m.moves++
	if from == ready {
		s.queues.leave(s.members, ready)
	}
	if left && !m.left() {
		s.advance(p.now)
	}
	s.noteLate(p.now)
}

// clone copies the state onto a copy of its roster, but for what never changes and what no forecast
// asks for.
func (s *State) clone(copied *roster.Roster) *State {
	c := *s
	c.roster = copied
	c.members = slices.Clone(s.members)
	for i := range c.members {
		c.members[i].Host = c.roster.Host(i)
	}
	c.queues = queues{ready: slices.Clone(s.queues[ready])}
	c.stages, c.counts, c.busyHosts = s.stages.clone(), s.counts.clone(), s.busyHosts.clone()
	return &c
}
