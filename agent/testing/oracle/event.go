package oracle

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// results are how a run may end.
var results = []string{"completed", "partial", "failed", "aborted", "timed-out"}

// eventCounts reports whether an event of a run under way has an effect.
func (o *Oracle) eventCounts(r message.Decoded, e message.Event) bool {
	p := o.run
	switch e := e.(type) {
	case message.Begun:
		return p.stepBegins(e)
	case message.Ran:
		return p.outcomeCounts(e.Outcome)
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
		return p.paused != 0 || p.perhapsPaused != 0
	case message.Aborted:
		return !p.aborted || e.Now && !p.atOnce
	case message.Frozen:
		ends := p.ends
		if r.Time.Before(o.newest) { // The run sees first that the clock was set back.
			ends = r.Time.Add(ends.Sub(o.newest))
		}
		return e.NotAfter.Before(ends) && r.Time.Before(e.Until)
	case message.Finished:
		return has(results, e.Result)
	case message.Opened, message.Missed, message.Carried:
		return false
	case message.Late:
		return p.id != 0 && !p.allPrepared && p.enoughPrepared() && o.hostsCount(e)
	case message.Differing:
		return p.allPrepared && (p.same || len(e.Refused) == 0)
	}
	return o.hostsCount(e)
}

// hostsCount reports whether an event of hosts has an effect: all hosts are known, the
// event is possible for each of them, and it changes at least one.
func (o *Oracle) hostsCount(e message.Event) bool {
	_, released := e.(message.Released)
	changes := false
	for _, name := range message.Hosts(e) {
		m := o.run.member(name)
		other, _ := o.other(name)
		switch {
		case m == nil && o.neighbour(e, name):
			changes = true
		case m == nil && other == nil, released && !o.releasable(name):
			return false
		case m != nil && o.run.changesMember(m, e), m == nil && o.changesOther(name, e):
			changes = true
		}
	}
	return changes
}

// releasable reports whether a person may release a host: it is out of service, or not done.
func (o *Oracle) releasable(name string) bool {
	if m := o.run.member(name); m != nil {
		return m.outByRun() || !m.ended
	}
	return o.hosts[name].outByRun()
}

// changesMember reports whether an event of hosts changes a member.
func (p *run) changesMember(m *member, e message.Event) bool {
	mayBegin := p.allPrepared && m.stage == p.current() && !m.silent && !m.locked && m.notNow == nil
	switch e := e.(type) {
	case message.Silent:
		return !m.silent && !m.absent && !m.removed
	case message.Recovered:
		return m.silent
	case message.Busy:
		waits := !m.ended && (m.phase == prepared || m.phase == checking || m.phase == checked)
		return waits && m.toldBusy < maxBusy && (m.notNow == nil || m.notNow.Reason != e.Reason || !m.notNow.Until.Equal(e.Until))
	case message.Idle:
		return m.notNow != nil && m.phase == prepared
	case message.Deleted:
		return !m.ended || m.phase != over || m.outByRun() || m.works != ""
	case message.Released:
		return true
	case message.Admitted:
		return mayBegin && has(follows[checking], m.phase)
	case message.Slot:
		return mayBegin && has(follows[draining], m.phase)
	case message.Overdue:
		return p.waitsFor(m, e.Awaited)
	case message.Late:
		return m.isAwaited()
	case message.Unprepared:
		return p.allPrepared && m.isAwaited() && m.stage == p.current()
	case message.Cancelled:
		return p.waitsFor(m, e.Awaited) && e.Action != message.Prepare || p.cancelsBefore(m, e.Awaited)
	}
	return false
}

// changesOther reports whether an event changes a host that is no member.
func (o *Oracle) changesOther(name string, e message.Event) bool {
	h, counts := o.other(name)
	switch e.(type) {
	case message.Silent:
		return counts && !h.silent && !h.absent && !h.removed
	case message.Recovered:
		return h.silent
	case message.Released:
		return h.outByRun()
	case message.Deleted:
		return h.outByRun() || h.works != ""
	}
	return false
}

// countsAfter reports whether an event counts after the end of a run: a host that
// is still out of service may be released or deleted, and one that is silent may
// recover.
func (o *Oracle) countsAfter(e message.Event) bool {
	recovered, deleted := false, false
	switch e.(type) {
	case message.Released:
	case message.Deleted:
		deleted = true
	case message.Recovered:
		recovered = true
	default:
		return false
	}
	changes := false
	for _, name := range message.Hosts(e) {
		h := o.hosts[name]
		other, _ := o.other(name)
		if h == nil || h.home != o.environment || h.member == nil && other == nil && !h.removed {
			return false
		}
		changes = changes || h.silent || h.held() && !recovered || deleted && h.works != ""
	}
	return changes
}

// outcomeCounts reports whether the outcome of a task may count: the run waits for a
// task of this kind of the host.
func (p *run) outcomeCounts(t message.Outcome) bool {
	if t.Kind == message.Start {
		return p.healthCounts(t)
	}
	if t.Run != p.id {
		return false
	}
	switch t.Kind {
	case message.Fleet:
		return len(p.policy.Checks.Fleet) > 0
	case message.Step, message.Undo:
		return p.awaitsStep(t)
	}
	m := p.member(t.Host)
	return m != nil && t.Kind != "" && m.wants() == t.Kind
}

// waitsFor reports whether the run waits for a member: for the answer to a command,
// or for the outcome of a task.
func (p *run) waitsFor(m *member, a message.Awaited) bool {
	switch a.Action {
	case message.Prepare:
		return p.id != 0 && m.phase.before(prepared)
	case message.Upgrade:
		return m.phase == upgrading
	case message.Reboot:
		return m.phase == rebooting
	}
	return m.wants() == a.Task && m.phase != over
}

// cancelsBefore reports whether the end of the run ends a member's part before its
// next command: before its upgrade, or before its reboot.
func (p *run) cancelsBefore(m *member, a message.Awaited) bool {
	switch {
	case a.Action == message.Reboot:
		return m.phase == rebootDue
	case a.Task == message.BeforeHost:
		return m.phase == checking || m.phase == checked
	case a.Task == message.Drain:
		return m.phase == draining || m.phase == drained
	}
	return false
}

// allAnswered reports whether each member has answered prepare, has timed out, or was
// removed, but for those that have not answered a command of an earlier run.
func (p *run) allAnswered() bool {
	for _, m := range p.members {
		if m.isAwaited() {
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
func (o *Oracle) event(r message.Decoded, e message.Event, sent time.Time) {
	p := o.run
	switch e := e.(type) {
	case message.Opened:
		o.opensRelease(r, e)
		o.open(r, e, sent)
	case message.Missed:
		o.windowMissed(Opening{e.Environment, e.Window})
		o.needsNone(r, e)
		o.notSkipped("was missed", r, Opening{e.Environment, e.Window})
	case message.Carried:
		o.carried(r, e)
	case message.Begun:
		o.stepBegun(r, e, sent)
	case message.Ran:
		o.ran(e.Outcome, r)
	case message.Approved:
		for n := range p.stages {
			if s := &p.stages[n]; s.Name == e.Stage && !s.approved {
				s.approved, s.approvedAt = true, r.Time
			}
		}
	case message.Paused:
		p.paused, p.pausedSince, p.pausedBy = r.Seq, r.Seq, e.By
	case message.Resumed:
		p.paused, p.perhapsPaused = 0, 0
		if !message.GoesOn(e.By) && !e.KeepsFailures {
			p.failures = 0
		}
		for _, m := range p.members {
			m.passedAt = time.Time{}
		}
	case message.Aborted:
		p.aborted = true
		if e.Now {
			p.atOnce, p.overAt = true, r.Time
			o.count("runs aborted at once")
		}
	case message.Frozen:
		p.notAfter, p.ends, p.overAt = e.NotAfter, e.NotAfter, e.NotAfter
		if r.Time.After(p.overAt) {
			p.overAt = r.Time
		}
	case message.Finished:
		o.finish(r, e, sent)
	case message.Differing:
		o.refuse(e, r)
	case message.Late:
		o.mayBeginWithout(r, sent)
		o.begins(r.Time)
		o.count("runs that begin without hosts that are late")
	case message.Budgeted:
		o.editCells(e)
	case message.Locked:
		o.lock(r, e)
	case message.Unlocked:
		o.unlock(e)
	default:
		if s, silent := e.(message.Silent); silent {
			o.addNeighbours(s)
		}
		for _, name := range message.Hosts(e) {
			o.hostEvent(r, e, name, sent)
		}
	}
}

// hostEvent applies an event to one of its hosts.
func (o *Oracle) hostEvent(r message.Decoded, e message.Event, name string, sent time.Time) {
	h, m := o.host(name), o.run.member(name)
	if !o.run.finished && (m != nil && !o.run.changesMember(m, e) || m == nil && !o.changesOther(name, e)) {
		return
	}
	if m == nil {
		o.count("event " + message.Name(e) + " of a host aside")
	}
	switch e := e.(type) {
	case message.Silent:
		h.silent = true
		if m != nil && (m.phase == checking || m.phase == checked) {
			m.phase, m.keeps = prepared, false
		}
	case message.Recovered:
		if o.run.finished {
			o.count("recovered after the end of a run")
		}
		h.silent, h.absent = false, false
	case message.Busy:
		m.notNow, m.toldBusy = &e.NotNow, m.toldBusy+1
		m.phase, m.keeps = prepared, false
	case message.Idle:
		m.notNow = nil
	case message.Deleted, message.Released:
		if o.run.finished {
			o.count(message.Name(e) + " after the end of a run")
		}
		if _, released := e.(message.Released); released {
			h.release()
		} else {
			h.remove()
		}
		o.stagesDone(r.Time)
	case message.Admitted:
		o.mayBegin(m, r, sent)
		o.mayTakePlace(m, m.name+" is admitted", r)
		o.takes(r)
		o.run.stages[m.stage].begins(r.Time)
		m.phase, m.keeps = checking, m.held()
	case message.Slot:
		o.mayBegin(m, r, sent)
		o.mayTakeSlot(m, r, sent)
		o.takes(r)
		o.run.stages[m.stage].begins(r.Time)
		m.tookAt = r.Time
		m.phase, m.owes.undrain, o.run.touched = draining, o.run.policy.Hooks.Undrain != nil, true
		if o.run.policy.Hooks.Drain == nil {
			m.phase = drained
		}
	case message.Overdue:
		o.stopWaiting(m, e.Awaited, r)
	case message.Unprepared:
		o.mayLeaveOut(m, r, sent)
		o.count("hosts that are left out because they are late")
		o.end(m, r.Time)
	case message.Cancelled:
		o.mayCancel(m, e, r, sent)
		if e.AtOnce {
			o.count("hosts left as they are when a run ends")
		}
		o.cancelled(m, e.Awaited, r)
		if e.AtOnce && m.phase == undraining {
			o.outcome(m, message.Undrain, false, r)
		}
	}
}

// stopWaiting applies that the run no longer waits for a member.
func (o *Oracle) stopWaiting(m *member, a message.Awaited, r message.Decoded) {
	if a.Action == message.Prepare {
		o.unmet(m)
	}
	switch {
	case a.Action == message.Prepare && m.silent:
		o.end(m, r.Time)
	case a.Action == message.Prepare:
		o.fail(m, r.Seq, r.Time)
	case a.Action != "":
		m.owes.answer, m.owes.answerOf = a.Action, o.run.id
		o.fail(m, r.Seq, r.Time)
	default:
		m.drainGivenUp = m.drainGivenUp || a.Task == message.Drain
		o.outcome(m, a.Task, false, r)
	}
}

// cancelled applies that the end of the run ends a member's part.
func (o *Oracle) cancelled(m *member, a message.Awaited, r message.Decoded) {
	switch {
	case m.phase == rebootDue:
		o.fail(m, r.Seq, r.Time)
	case o.run.cancelsBefore(m, a):
		m.drainGivenUp = a.Task == message.Drain
		o.end(m, r.Time)
	default:
		o.stopWaiting(m, a, r)
	}
}

// ran applies the outcome of a task.
func (o *Oracle) ran(t message.Outcome, r message.Decoded) {
	o.count(fmt.Sprintf("outcome of %s: %v", t.Kind, t.OK))
	switch {
	case t.Kind == message.Start:
		o.healthRan(t, r)
	case t.Kind.OfStage():
		o.stepRan(t, r)
	case t.Kind != message.Fleet:
		o.outcome(o.run.member(t.Host), t.Kind, t.OK, r)
	case t.OK:
		o.run.fleetPassed = true
	default:
		o.run.tooMany(r.Seq)
	}
}

// outcome applies the outcome of a host's task.
func (o *Oracle) outcome(m *member, kind message.TaskKind, ok bool, r message.Decoded) {
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
func (o *Oracle) finish(r message.Decoded, e message.Finished, sent time.Time) {
	o.checkFinished(r, e, sent)
	o.noteReached()
	o.noteDone()
	o.noteRelease()
	o.noteEnding(r, e)
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
		if h.home == o.environment {
			h.silent, h.absent = h.silent && !h.absent, false
		}
	}
	o.stagesDone(r.Time)
}
