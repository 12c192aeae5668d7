package run

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestFairness plays runs that share the places of a budget, whose hosts do what they are asked, each
// as fast as it is, while people pause and resume them. The oracle judges that none of the runs is
// passed over; besides, each run is completed: none starves, and none waits for the other.
func TestFairness(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		p := newProperty(rt)
		p.sideBySide = true
		names := []string{"", "basel", "bern", "chur"}[:rapid.IntRange(2, 4).Draw(rt, "environments")]
		cells := p.drawShared(names)
		for _, name := range names {
			p.environment = name
			p.openShared(name, cells)
		}
		for range 400 {
			if p.drive(); len(p.ledger.UnderWay()) == 0 {
				break
			}
			p.environment = rapid.SampledFrom(names).Draw(rt, "in")
			switch current := p.in().Current(); {
			case current == nil:
			case current.Paused != nil:
				p.fact(message.Resumed{By: "ann"})
			case rapid.IntRange(0, 9).Draw(rt, "somebody pauses it") == 0:
				p.fact(message.Paused{By: "ann"})
			case rapid.Bool().Draw(rt, "a check or a hook passes"):
				p.taskPasses()
			default:
				p.comesThrough()
			}
			p.now = p.now.Add(time.Second)
		}
		for range 400 { // Now nobody pauses them any more.
			for _, p.environment = range names {
				if current := p.in().Current(); current != nil && current.Paused != nil {
					p.fact(message.Resumed{By: "ann"})
				} else if current != nil {
					p.taskPasses()
					p.comesThrough()
				}
				p.drive()
			}
		}
		for _, name := range names {
			if r := p.ledger.Of(name).Newest(); r.Result != Completed {
				rt.Fatalf("the run of %q is %s %s, and waits for %+v", name, r.Phase, r.Result, waitOf(r, p.now))
			}
		}
	})
}

// taskPasses is a task that comes out well.
func (p *property) taskPasses() {
	run := p.in().Current()
	for _, name := range p.judge().Members() {
		if task, _, wanted := run.Task(name); wanted {
			p.fact(message.Ran{Outcome: task.Outcome(true, "")})
			return
		}
	}
}

func waitOf(r *State, now time.Time) Waiting {
	w, _ := r.Waiting(now)
	return w
}

// hostsIn are the hosts of an environment: five of them.
func hostsIn(environment string) (hosts []string) {
	for n := range 5 {
		hosts = append(hosts, fmt.Sprintf("h%d%s", n, environment))
	}
	return hosts
}

// drawShared draws the cells of budgets over the hosts of all environments, each of which lets at
// least one leave service.
func (p *property) drawShared(names []string) []message.Cell {
	var hosts []string
	for _, name := range names {
		hosts = append(hosts, hostsIn(name)...)
	}
	cells := drawCells(p.rt, hosts)
	for n := range cells {
		cells[n].MaxUnavailable = max(1, cells[n].MaxUnavailable)
	}
	return cells
}

// openShared opens a run that would let several hosts leave service at once, and prepares them.
func (p *property) openShared(name string, cells []message.Cell) {
	e := message.Opened{Trigger: message.TriggerWindow, Environment: name, Members: hostsIn(name), NotAfter: p.now.Add(24 * time.Hour), Rollout: rollout.Default(5), Budgets: "v1"}
	e.Rollout.Stages[0].MaxUnavailable = rapid.IntRange(1, 5).Draw(p.rt, "max-unavailable")
	if rapid.Bool().Draw(p.rt, "checks") {
		e.Rollout.Checks.BeforeHost = []rollout.Check{{Name: "c", Type: rollout.TCP, Passes: 1, Timeout: rollout.SpanOf(time.Hour)}}
	}
	if rapid.Bool().Draw(p.rt, "drains") {
		e.Rollout.Hooks.Drain = &rollout.Hook{Type: rollout.Exec, On: rollout.OnHost, Timeout: rollout.SpanOf(time.Hour)}
	}
	e.Cells = p.ledger.CellsOf(e, cells)
	p.must(p.eventOf(p.in(), e))
	p.drive()
	for _, host := range e.Members {
		p.reply(p.in().Newest().ID, host, "prepare", message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}.Encode())
	}
}
