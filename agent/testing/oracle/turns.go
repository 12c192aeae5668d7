package oracle

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// takes notes that a run lets a host leave service, or admits it: the run had its turn.
func (o *Oracle) takes(r message.Decoded) { o.run.taken = r.Seq }

// inTurn judges bounded waiting: a run takes its next turn only if no other run has been ready for the
// same place since before its last one. It judges nothing while a controller that has just started
// may still wait to hear of hosts.
func (o *Oracle) inTurn(m *member, what string, r message.Decoded) {
	last, cells := o.run.taken, o.cellsOf(m.name)
	if last == 0 || o.gathering || len(cells) == 0 {
		return
	}
	for environment, other := range o.runs {
		if other == o.run || other.finished || max(other.taken, other.opened) > last {
			continue
		}
		for _, waits := range other.members {
			if waits.readySince == 0 || waits.readySince > last || !within(o.cellsOf(waits.name), cells) {
				continue
			}
			o.violated("turns: %s by record %d, and its run had its last turn by record %d: %s of the run of %q waits since record %d for the same place",
				what, r.Seq, last, waits.name, environment, waits.readySince)
		}
	}
	if len(o.runs) > 1 {
		o.count("turns of runs side by side")
	}
}

// Startable is a member that only waits for its run to let it begin, and the record since which.
type Startable struct {
	Host, Environment string
	Since             uint64
}

// Startable returns the members that could begin now: there is a slot and a place for each in its cells. A
// run goes on whatever those of other environments do (independence), so each of them begins soon at a
// site that is well.
func (o *Oracle) Startable() (all []Startable) {
	for environment, p := range o.runs {
		for _, m := range p.members {
			if m.readySince != 0 && p.isReady(m, o.least()) && !o.keptByCell(m.host) {
				all = append(all, Startable{m.name, environment, m.readySince})
			}
		}
	}
	return all
}

// within reports whether there are cells, and all of them are among others.
func within(cells, others []*cell) bool {
	return len(cells) > 0 && !slices.ContainsFunc(cells, func(c *cell) bool { return !has(others, c) })
}

// noteReady notes after a record which members only wait for a place in their cells, and since when.
func (o *Oracle) noteReady(seq uint64, at time.Time) {
	for _, p := range o.runs {
		for _, m := range p.members {
			switch ready := !o.schedule.wrong && p.isReady(m, at); {
			case !ready:
				m.readySince = 0
			case m.readySince == 0:
				m.readySince = seq
			}
		}
	}
}

// isReady reports whether a member surely begins at a time if there is a place in its cells. What
// may depend on more than the log does not count as ready.
func (p *run) isReady(m *member, at time.Time) bool {
	goesOn := !p.finished && p.id != 0 && p.allPrepared && !p.aborted && p.halted == 0 && p.paused == 0 && p.perhapsPaused == 0
	well := m.phase == prepared && m.prepared && !m.ended && !m.removed && !m.leftOut && !m.silent && !m.absent && !m.locked && m.notNow == nil && m.owes == (debt{}) && m.works == ""
	if !goesOn || !well || p.same || m.stage != p.current() || len(p.policy.Checks.Fleet) > 0 || p.policy.Splay.Duration() > 0 {
		return false
	}
	s := &p.stages[m.stage]
	return (!s.Approval || s.approved) && p.haveSoaked(m.stage, at) && p.hasSlot(s) && p.enoughReady() && at.Add(p.slowest).Before(p.ends)
}

// haveSoaked reports whether the stages before one have soaked, also by a clock that is a little
// behind.
func (p *run) haveSoaked(stage int, at time.Time) bool {
	return !slices.ContainsFunc(p.soaks(stage), func(s soak) bool { return at.Before(s.ends().Add(time.Minute)) })
}

// hasSlot reports whether a slot of a stage is free, also if each admitted host needs one.
func (p *run) hasSlot(s *stage) bool {
	taken := 0
	for _, h := range s.hosts {
		if h.out() || h.member != nil && (h.member.phase == checking || h.member.phase == checked) {
			taken++
		}
	}
	return taken < s.MaxUnavailable
}

// enoughReady reports whether min-prepared is met.
func (p *run) enoughReady() bool {
	ready := 0
	for _, m := range p.members {
		if m.prepared && !m.removed {
			ready++
		}
	}
	return ready >= p.policy.MinPrepared
}
