package run

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestForecastOfSlots checks that wherever hosts wait for slots alone, the forecast is the same
// as one by one.
func TestForecastOfSlots(t *testing.T) {
	t.Parallel()
	closed := 0
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlayer(rt)
		hosts := rapid.IntRange(1, 12).Draw(rt, "hosts")
		policy := rollout.Default(hosts)
		policy.Stages[0].MaxUnavailable = rapid.IntRange(1, hosts).Draw(rt, "slots")
		e := message.Opened{Trigger: message.TriggerWindow, NotAfter: epoch.Add(rapid.SampledFrom([]time.Duration{10 * time.Minute, 4 * time.Hour}).Draw(rt, "lasts")), Rollout: policy}
		for i := range hosts {
			e.Members = append(e.Members, fmt.Sprintf("h%02d", i+1))
		}
		p.fact(e)
		p.take(p.in().Current(), p.in().Current().Next(p.now, p.look(p.in())))
		p.follow(Decision{Act: Send, Command: message.Command{Action: message.Prepare, Hosts: e.Members}})
		p.now = p.now.Add(time.Second)
		for p.in().Current() != nil && rapid.IntRange(0, 30).Draw(rt, "goes on") > 0 {
			run := p.in().Current()
			upgrading := run.members.at(upgrading)
			switch draw := rapid.IntRange(0, 9).Draw(rt, "what"); {
			case draw == 0:
				p.fact(message.Silent{Hosts: []string{rapid.SampledFrom(e.Members).Draw(rt, "silent")}})
			case draw < 3 && len(upgrading) > 0:
				host, outcome := rapid.SampledFrom(upgrading).Draw(rt, "host"), rapid.SampledFrom([]message.ReplyOutcome{message.Done, message.Done, message.Failed}).Draw(rt, "outcome")
				p.reply(run.ID, host, "upgrade", message.Reply{Action: message.Upgrade, Result: message.Result{Outcome: outcome}}.Encode())
			case draw < 5:
				p.now = p.now.Add(time.Duration(rapid.IntRange(1, 90).Draw(rt, "seconds")) * time.Second)
			default:
				if decision := run.Next(p.now, p.look(p.in())); decision.Act == Note || decision.Act == Send {
					p.take(run, decision)
				}
			}
			if took := run.durations.usual; took > 0 && !run.Over() && !run.isPreparing() {
				if _, only := run.forecastSlots(p.now, took); only {
					closed++
				}
			}
			if err := foreseen(run, p.now); err != nil {
				rt.Fatal(err)
			}
		}
	})
	if closed == 0 {
		t.Error("no forecast was of slots alone, so this test shows nothing")
	}
}

// oneByOne is a forecast that changes each host as the fold of the log does, with all that
// belongs to it. It is slow, and what Forecast has to be equal to.
func oneByOne(s *State, now time.Time) (Forecast, bool) {
	took := s.durations.usual
	if took == 0 || s.Over() || s.isPreparing() {
		return Forecast{}, false
	}
	run := s.clone(s.roster.Clone())
	for at, queue := range s.queues {
		run.queues[at] = slices.Clone(queue)
	}
	run.durations.usual = 0
	p := &slowForecaster{run: run, now: now, took: took, ends: map[int]time.Time{}}
	_, p.ending = s.ending(now)
	p.resume()
	for p.advance() {
	}
	f := Forecast{Waits: p.waits, Left: p.left, Hosts: make([]time.Time, len(s.members))}
	for i, end := range p.ends {
		f.Hosts[i] = end
		if end.After(s.NotAfter) {
			f.Left++
		}
	}
	if p.waits == "" {
		f.End = p.now
	}
	return f, p.waits == "" || len(p.ends) > 0 || p.stepped
}

type slowForecaster struct {
	run    *State
	now    time.Time
	took   time.Duration
	ends   map[int]time.Time
	ending bool
	waits  string
	// left counts hosts that never start.
	left    int
	working []int
	// stepEnds is when the step under way is done; stepped tells that there was one.
	stepEnds time.Time
	stepped  bool
}

func (p *slowForecaster) resume() {
	for i := range p.run.members {
		if m := &p.run.members[i]; m.final == "" && m.underWay() {
			p.working = append(p.working, i)
			p.ends[i] = times.Later(p.now, m.takenAt.Add(p.took))
		}
	}
	slices.SortStableFunc(p.working, func(a, b int) int { return p.run.members[a].takenAt.Compare(p.run.members[b].takenAt) })
	if p.run.stages.current().doing.underWay() {
		p.expectStep()
	}
}

func (p *slowForecaster) expectStep() {
	g := p.run.stages.current()
	p.stepped = true
	if took, known := p.run.stepTimes.usual(g.Name); known {
		p.stepEnds = times.Later(p.now, g.doing.Since.Add(took))
		return
	}
	p.waits, p.ending = "step "+g.Name+" (how long it takes is unknown)", true
}

func (p *slowForecaster) advance() bool {
	var until time.Time
	if at := p.run.leavesOutLate(); !p.ending && !at.IsZero() && !p.now.Before(at) {
		for _, host := range p.run.lateNow() {
			p.run.leaveOutLate(p.run.indexOf(host), "", p.now)
		}
		return true
	}
	if !p.ending && !p.run.noneLeft() {
		if p.run.blocker(p.now) == nothing {
			p.start()
			return true
		}
		until = p.run.unblocks(p.now)
	}
	if !p.stepEnds.IsZero() { // No host is at work.
		p.now, p.stepEnds = p.stepEnds, time.Time{}
		p.run.stages.current().doing.Since = time.Time{}
		p.run.counts.underWay--
		p.run.passStep(p.now)
		return true
	}
	if len(p.working) > 0 {
		i := p.working[0]
		if end := p.ends[i]; until.IsZero() || !end.After(until) {
			p.now, p.working = end, p.working[1:]
			p.finish(i)
			return true
		}
	}
	if until.After(p.now) {
		p.now = until
		return true
	}
	if !p.ending && !p.run.noneLeft() {
		w, _ := p.run.blocked(p.now)
		if p.waits = w.Detail; p.waits == "" {
			p.left = p.run.counts.unstarted
		}
	}
	return false
}

func (p *slowForecaster) start() {
	if _, wanted := p.run.fleetTask(p.now); wanted && p.run.fleet.trouble != "" {
		p.waits, p.ending = p.run.fleet.waiting(p.run.changed).Detail, true
		return
	}
	if g := p.run.stages.current(); g.awaitsStep() {
		g.doing.Since = p.now
		p.run.counts.underWay++
		p.run.stageBegins(g, p.now)
		p.expectStep()
		return
	}
	i := p.run.next()
	p.run.edit(i, p.now, func(m *member) {
		p.run.roster.Take(i, p.now)
		m.phase, m.takenAt = upgrading, p.now
	})
	p.run.stages.list[p.run.members[i].Group].begun = true
	p.working = append(p.working, i)
	p.ends[i] = p.now.Add(p.took)
}

func (p *slowForecaster) finish(i int) {
	p.run.edit(i, p.now, func(m *member) {
		p.run.roster.Pass(i, message.Undrain, p.now)
		p.run.roster.Return(i, p.now)
		m.phase, m.final = done, Upgraded
	})
}
