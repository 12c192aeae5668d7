package oracle

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// results are how a run may end.
var results = []string{"completed", "partial", "failed", "aborted", "timed-out"}

// eventCounts reports whether an event of a run under way has an effect.
func (o *Oracle) eventCounts(r message.Record, e message.Event) bool {
	p := o.run
	switch e.Event {
	case message.Ran:
		return p.outcomeCounts(*e.Outcome)
	case message.Approved:
		for n := range p.stages {
			if s := &p.stages[n]; s.Name == e.Stage {
				return s.Approval && !s.approved
			}
		}
		return false
	case message.Paused:
		return p.paused == 0
	case message.Resumed:
		return p.paused != 0 || p.perhapsPaused
	case message.Aborted:
		return !p.aborted
	case message.Frozen:
		return e.NotAfter.Before(p.notAfter) && (e.Until == nil || r.Time.Before(*e.Until))
	case message.Finished:
		return has(results, e.Result)
	case message.Opened, message.Missed:
		return false
	}
	return o.hostsCount(e)
}

// hostsCount reports whether an event of hosts has an effect: all of them are known,
// none refuses it, and it changes one of them.
func (o *Oracle) hostsCount(e message.Event) bool {
	changes := false
	for _, name := range e.Hosts {
		m := o.run.member(name)
		other, _ := o.other(name)
		switch {
		case m == nil && other == nil, e.Event == message.Released && !o.releasable(name):
			return false
		case m != nil && o.run.changesMember(m, e), m == nil && o.changesOther(name, e):
			changes = true
		}
	}
	return changes
}

// releasable reports whether a person may release a host: it is out of service, and
// neither being upgraded nor being undrained.
func (o *Oracle) releasable(name string) bool {
	m := o.run.member(name)
	if m == nil {
		return o.hosts[name].out()
	}
	return m.out() && (m.ended && m.phase == over || m.phase.before(checking))
}

// changesMember reports whether an event of hosts changes a member.
func (p *run) changesMember(m *member, e message.Event) bool {
	mayBegin := p.allAnswered() && m.stage == p.current() && !m.silent
	switch e.Event {
	case message.Silent:
		return !m.silent && !m.removed
	case message.Recovered:
		if e.Reason == message.Deleted {
			return !m.ended || m.phase != over || m.out()
		}
		return m.silent
	case message.Released:
		return true
	case message.Turn:
		return mayBegin && has(follows[checking], m.phase)
	case message.Slot:
		return mayBegin && has(follows[draining], m.phase)
	case message.GaveUp:
		return p.givesUp(m, e)
	}
	return false
}

// changesOther reports whether an event changes a host that is no member.
func (o *Oracle) changesOther(name string, e message.Event) bool {
	h, inStage := o.other(name)
	switch {
	case e.Event == message.Silent:
		return inStage && !h.silent && !h.removed
	case e.Event == message.Recovered && e.Reason == message.Heard:
		return h.silent
	}
	return (e.Event == message.Released || e.Event == message.Recovered) && h.out()
}

// removalCounts reports whether an event counts after the end of a run: hosts that
// are still out of service may be released or deleted.
func (o *Oracle) removalCounts(e message.Event) bool {
	if e.Event != message.Released && (e.Event != message.Recovered || e.Reason != message.Deleted) {
		return false
	}
	for _, name := range e.Hosts {
		if h := o.hosts[name]; h == nil || !h.held() {
			return false
		}
	}
	return true
}

// outcomeCounts reports whether the outcome of a task may count: its host waits for
// a task of this kind.
func (p *run) outcomeCounts(t message.Outcome) bool {
	if t.Run != p.id {
		return false
	}
	if t.Kind == message.Fleet {
		return len(p.policy.Checks.Fleet) > 0
	}
	m := p.member(t.Host)
	return m != nil && t.Kind != "" && m.wants() == t.Kind
}

// givesUp reports whether an event ends the wait for a member: for the answer to a
// command, for the outcome of a task, or, at the end of the run, before the next
// step.
func (p *run) givesUp(m *member, e message.Event) bool {
	switch e.Action {
	case message.Prepare:
		return p.id != 0 && m.phase.before(prepared)
	case message.Upgrade:
		return m.phase == upgrading
	case message.Reboot:
		return m.phase == rebooting || m.phase == rebootDue && e.Reason != ""
	}
	return p.turnsBack(m, e) || m.wants() == e.Task && m.phase != over
}

// turnsBack reports whether an event ends a member's part before its upgrade,
// because the run ends.
func (p *run) turnsBack(m *member, e message.Event) bool {
	switch {
	case e.Reason == "":
		return false
	case e.Task == message.BeforeHost:
		return m.phase == checking || m.phase == checked
	case e.Task == message.Drain:
		return m.phase == draining || m.phase == drained
	}
	return false
}

// allAnswered reports whether each member has answered prepare, or was given up or
// removed.
func (p *run) allAnswered() bool {
	for _, m := range p.members {
		if m.phase.before(prepared) {
			return false
		}
	}
	return true
}

// current is the first stage with hosts left; the last one when there is none.
func (p *run) current() int {
	for n := range p.stages {
		if p.stages[n].doneAt.IsZero() {
			return n
		}
	}
	return len(p.stages) - 1
}

// event judges and applies an event that counts.
func (o *Oracle) event(r message.Record, e message.Event, sent time.Time) {
	p := o.run
	switch e.Event {
	case message.Opened:
		o.open(r, e)
	case message.Missed:
	case message.Ran:
		o.ran(*e.Outcome, r)
	case message.Approved:
		for n := range p.stages {
			p.stages[n].approved = p.stages[n].approved || p.stages[n].Name == e.Stage
		}
	case message.Paused:
		p.paused = r.Seq
	case message.Resumed:
		p.paused, p.perhapsPaused = 0, false
		if !message.GoesOn(e.By) {
			p.failures = 0
		}
		for _, m := range p.members {
			m.passedAt = time.Time{}
		}
	case message.Aborted:
		p.aborted = true
	case message.Frozen:
		p.notAfter = *e.NotAfter
	case message.Finished:
		o.finish(r, e)
	default:
		for _, name := range e.Hosts {
			o.hostEvent(r, e, name, sent)
		}
	}
}

// hostEvent applies an event to one of its hosts.
func (o *Oracle) hostEvent(r message.Record, e message.Event, name string, sent time.Time) {
	h, m := o.host(name), o.run.member(name)
	if !o.run.finished && (m != nil && !o.run.changesMember(m, e) || m == nil && !o.changesOther(name, e)) {
		return
	}
	if m == nil {
		o.count("event " + e.Event + " of a host aside")
	}
	switch e.Event {
	case message.Silent:
		h.silent = true
		if m != nil && (m.phase == checking || m.phase == checked) {
			m.phase, m.keeps = prepared, false
		}
	case message.Recovered, message.Released:
		if e.Event == message.Recovered && e.Reason == message.Heard {
			h.silent = false
			return
		}
		if o.run.finished {
			o.count(e.Event + " after the end of a run")
		}
		h.remove()
		o.stagesDone(r.Time)
	case message.Turn:
		o.mayBegin(m, r, sent)
		o.run.stages[m.stage].begun = true
		m.phase, m.keeps = checking, m.held()
	case message.Slot:
		o.mayBegin(m, r, sent)
		o.mayTakeSlot(m, r, sent)
		o.run.stages[m.stage].begun = true
		m.phase, m.owes.undrain = draining, o.run.policy.Hooks.Undrain != nil
		if o.run.policy.Hooks.Drain == nil {
			m.phase = drained
		}
	case message.GaveUp:
		o.gaveUp(m, e, r)
	}
}

// gaveUp applies that nobody waits for a member any more.
func (o *Oracle) gaveUp(m *member, e message.Event, r message.Record) {
	switch {
	case e.Action == message.Prepare && m.silent:
		o.end(m, r.Time)
	case e.Action == message.Prepare, m.phase == rebootDue:
		o.fail(m, r.Seq, r.Time)
	case e.Action != "":
		m.owes.answer, m.owes.answerOf = e.Action, o.run.id
		o.fail(m, r.Seq, r.Time)
	case o.run.turnsBack(m, e):
		m.drainGivenUp = e.Task == message.Drain
		o.end(m, r.Time)
	default:
		m.drainGivenUp = m.drainGivenUp || e.Task == message.Drain
		o.outcome(m, e.Task, false, r)
	}
}

// ran applies the outcome of a task.
func (o *Oracle) ran(t message.Outcome, r message.Record) {
	o.count(fmt.Sprintf("outcome of %s: %v", t.Kind, t.OK))
	switch {
	case t.Kind != message.Fleet:
		o.outcome(o.run.member(t.Host), t.Kind, t.OK, r)
	case t.OK:
		o.run.fleetPassed = true
	default:
		o.run.tooMany(r.Seq)
	}
}

// outcome applies the outcome of a host's task.
func (o *Oracle) outcome(m *member, kind message.TaskKind, ok bool, r message.Record) {
	if ok && kind == message.Undrain {
		m.owes.undrain = false
	}
	if ok && kind == m.owes.checks {
		m.owes.checks = ""
	}
	switch {
	case m.ended:
		m.phase = over
		o.stagesDone(r.Time)
	case !ok:
		o.fail(m, r.Seq, r.Time)
	case kind == message.BeforeHost:
		m.phase, m.passedAt = checked, r.Time
	case kind == message.Drain:
		m.phase = drained
	default:
		o.wellAgain(m, r.Time)
	}
}

// finish judges and applies the end of a run.
func (o *Oracle) finish(r message.Record, e message.Event) {
	o.checkFinished(e)
	o.count("result " + e.Result)
	if o.run.id != 0 {
		o.ended = append(o.ended, o.run.id)
	}
	o.run.finished = true
	for _, m := range o.run.members {
		m.phase, m.ended, m.keeps = over, true, false
		if m.owes != (debt{}) {
			o.count("hosts that are not well when a run ends")
		}
	}
	for _, h := range o.hosts {
		h.silent = false
	}
	o.stagesDone(r.Time)
}
