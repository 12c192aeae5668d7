package oracle

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// checkCommand judges a command (invariants 2, 3 and 4).
func (o *Oracle) checkCommand(r message.Decoded, c message.Command, sent time.Time) {
	p := o.run
	switch {
	case p == nil || p.finished:
		o.violated("invariant 3: %s, record %d, is of no run under way", c.Action, r.Seq)
		return
	case !sent.Before(p.notAfter):
		o.violated("invariant 3: %s, record %d, was sent at %s, and not-after is %s", c.Action, r.Seq, sent, p.notAfter)
	case p.aborted:
		o.violated("invariant 3: %s, record %d, after an abort", c.Action, r.Seq)
	}
	o.notFrozen(string(c.Action), r, sent)
	o.asksRelease(r, c)
	if c.Action == message.Prepare {
		o.checkPrepare(r, c)
		return
	}
	m := p.member(c.Host)
	switch {
	case m == nil:
		o.violated("%s, record %d, is for %s, which is no member", c.Action, r.Seq, c.Host)
		return
	case r.Run != p.id:
		o.violated("%s, record %d, is of run %d, and run %d is under way", c.Action, r.Seq, r.Run, p.id)
	case m.removed:
		o.violated("%s, record %d, is for %s, which was released or deleted", c.Action, r.Seq, c.Host)
	}
	if c.Action == message.Reboot {
		o.checkReboot(r, m)
		return
	}
	o.checkUpgrade(r, m, sent)
}

// checkPrepare judges that prepare is sent once, to each remaining member.
func (o *Oracle) checkPrepare(r message.Decoded, c message.Command) {
	p := o.run
	if p.id != 0 {
		o.violated("run %d is prepared twice, by record %d", p.id, r.Seq)
	}
	o.isHealthy(r)
	for _, name := range c.Hosts {
		if m := p.member(name); m == nil || m.removed || m.ended {
			o.violated("prepare %d is for %s, which is no member or absent", r.Seq, name)
		}
	}
	for _, m := range p.members {
		if !m.removed && !m.ended && !has(c.Hosts, m.name) {
			o.violated("prepare %d is not for %s", r.Seq, m.name)
		}
	}
}

func (o *Oracle) checkReboot(r message.Decoded, m *member) {
	switch {
	case m.reboot != 0:
		o.violated("invariant 2: %s is told to reboot twice, by record %d", m.name, r.Seq)
	case m.phase != rebootDue:
		o.violated("invariant 4: %s is told to reboot by record %d, and is %s", m.name, r.Seq, m.phase)
	case o.run.needless(m.name):
		o.violated("%s is told to reboot by record %d, and is exempt from that", m.name, r.Seq)
	}
}

func (o *Oracle) checkUpgrade(r message.Decoded, m *member, sent time.Time) {
	hooks := o.run.policy.Hooks
	switch {
	case m.upgrade != 0:
		o.violated("invariant 2: %s is told to upgrade twice, by record %d", m.name, r.Seq)
	case m.phase == drained:
		return
	case hooks.Drain != nil || hooks.Undrain != nil:
		o.violated("%s is told to upgrade by record %d, and is %s: it has no slot or is not drained", m.name, r.Seq, m.phase)
	}
	o.mayBegin(m, r, sent)
	o.mayTakeSlot(m, r, sent)
}

// mayBegin judges the conditions under which a host begins: it is admitted, takes its
// slot or gets its upgrade command, whichever is first (invariant 3).
func (o *Oracle) mayBegin(m *member, r message.Decoded, sent time.Time) {
	p, s := o.run, &o.run.stages[m.stage]
	what := "the admission of " + m.name
	switch {
	case !m.prepared || m.removed || m.ended:
		o.violated("invariant 3: %s, record %d, and it is not prepared", what, r.Seq)
	case m.owes.look:
		o.violated("%s, record %d, and it does not know what it did before", what, r.Seq)
	case m.silent:
		o.violated("%s, record %d, and it is silent", what, r.Seq)
	case m.locked:
		o.violated("%s, record %d, and it is locked", what, r.Seq)
	case m.notNow != nil:
		o.violated("%s, record %d, and it is busy: %s", what, r.Seq, m.notNow.Reason)
	case p.aborted:
		o.violated("invariant 3: %s, record %d, after an abort", what, r.Seq)
	case p.halted != 0 && o.known(p.halted):
		o.violated("invariant 3: %s, record %d, and record %d stopped the run", what, r.Seq, p.halted)
	case p.paused != 0 && o.known(p.paused):
		o.violated("%s, record %d, and record %d paused the run", what, r.Seq, p.paused)
	case !sent.Before(p.notAfter):
		o.violated("invariant 3: %s, record %d, after not-after", what, r.Seq)
	case s.Approval && !s.approved:
		o.violated("%s, record %d, and stage %s is not approved", what, r.Seq, s.Name)
	case len(p.policy.Checks.Fleet) > 0 && !p.fleetPassed:
		o.violated("%s, record %d, and the checks of the fleet never passed", what, r.Seq)
	}
	o.notFrozen(what, r, sent)
	o.othersAllow(m, what, r)
	o.stepsAllow(m, what, r)
	o.soaked(m.stage, what, r, sent)
}

// othersAllow judges the conditions on the other members when a host begins.
func (o *Oracle) othersAllow(m *member, what string, r message.Decoded) {
	for _, other := range o.run.members {
		if other.phase.before(prepared) && !o.run.allPrepared {
			o.violated("invariant 3: %s, record %d, and %s has not answered prepare", what, r.Seq, other.name)
		}
		if other.stage < m.stage && other.left() {
			o.violated("%s, record %d, and %s of an earlier stage is %s", what, r.Seq, other.name, other.phase)
		}
	}
	if ready := o.run.counted(); ready < o.run.policy.MinPrepared {
		o.violated("%s, record %d, and %d hosts are prepared, of at least %d", what, r.Seq, ready, o.run.policy.MinPrepared)
	}
}

// counted returns how many members count as prepared.
func (p *run) counted() (ready int) {
	for _, m := range p.members {
		if m.prepared || m.removed || m.leftOut {
			ready++
		}
	}
	return ready
}

// soaked judges that the stages before one have soaked, also those of the runs that this one goes on from
// (invariant 15).
func (o *Oracle) soaked(stage int, what string, r message.Decoded, sent time.Time) {
	at := o.decided(sent)
	for _, s := range o.run.soaks(stage) {
		if !s.over && at.Before(s.ends()) {
			o.violated("%s, record %d, sent at %s, and stage %s soaks since %s for %s", what, r.Seq, at, s.stage, s.since, s.lasts)
		}
		if o.run.openedAt.Before(s.ends()) && s.since.Before(o.run.openedAt) {
			o.count("beginnings after the soak of an earlier run")
		}
	}
}

// decided is by what time a controller has decided that sent a record: one whose clock
// is behind goes by the clock of the log, and knows only of the records that it was given that the
// clock was set back.
func (o *Oracle) decided(sent time.Time) time.Time {
	least := o.least()
	if o.back.seq > o.knows {
		least = least.Add(o.back.lag)
	}
	if sent.Before(least) {
		return least
	}
	return sent
}

// validity is how long the checks before a host count after they have passed, in
// addition to the time that checks take.
const validity = 10 * time.Minute

// mayTakeSlot judges that there is a slot for a host (invariant 1), and that the checks
// before it have passed. A host that is out of service since an earlier run holds a
// slot already. Even so, no more hosts of a stage are upgraded at once than its limit.
func (o *Oracle) mayTakeSlot(m *member, r message.Decoded, sent time.Time) {
	out, inHand, limit := 0, 0, o.run.stages[m.stage].MaxUnavailable
	for _, h := range o.run.stages[m.stage].hosts {
		if h == m.host {
			continue
		}
		if h.out() {
			out++
		}
		if h.member.inHand() && !h.member.phase.before(draining) {
			inHand++
		}
	}
	if out >= limit && !m.held() || inHand >= limit {
		o.violated("invariant 1: %s takes a slot by record %d, and %d of at most %d are out of service, %d of them in hand", m.name, r.Seq, out, limit, inHand)
	}
	o.mayTakePlace(m, m.name+" takes a slot", r)
	if len(o.run.policy.Checks.BeforeHost) == 0 {
		return
	}
	valid := validity + message.Task{Checks: o.run.policy.Checks.BeforeHost}.Limit() + message.Task{Checks: o.run.policy.Checks.Fleet}.Limit()
	if m.phase != checked || m.passedAt.IsZero() || sent.Sub(m.passedAt) > valid {
		o.violated("%s takes a slot by record %d, sent at %s, and its checks passed at %s", m.name, r.Seq, sent, m.passedAt)
	}
}

// mayCancel judges that a run is over for a host that is at work: with overrun "stop"
// at not-after, else, and for its undrain hook, at the end of overrun-limit.
func (o *Oracle) mayCancel(m *member, e message.Cancelled, r message.Decoded, sent time.Time) {
	p := o.run
	until := p.overAt
	if p.policy.Overrun != rollout.StopHost || e.AtOnce {
		until = until.Add(p.policy.OverrunLimit.Duration())
	}
	working := m.phase == upgrading || m.phase == rebooting || m.phase == rechecking || m.phase == undraining
	if (working || e.AtOnce) && !p.atOnce && o.decided(sent).Before(until) {
		o.violated("record %d, sent at %s, cancels %s, which is %s, and may not before %s", r.Seq, sent, m.name, m.phase, until)
	}
}

// checkFinished judges the end of a run: nothing of a host is under way, each drained host
// was undrained or its undrain was tried, and the result is true. A record may have ended the
// part of a host that owes its undrain since an earlier run before the controller was given
// it: the controller did not know that when it sent the end, and the host goes on owing it.
func (o *Oracle) checkFinished(r message.Decoded, e message.Finished, sent time.Time) {
	all := true
	for _, m := range o.run.members {
		all = all && m.upgraded
		switch {
		case m.ended && m.phase == undraining && m.endedBy > o.knows:
			o.count("undrains that a run did not know of when it ended")
		case m.left() && m.phase == undraining:
			o.violated("run %d ends before an undrain of %s was tried", o.run.id, m.name)
		case m.inHand():
			o.violated("run %d ends while %s is %s", o.run.id, m.name, m.phase)
		}
	}
	all = o.stepsFinished(r) && all
	o.healthFinished(r, e)
	switch {
	case e.Result == "completed" && !all:
		o.violated("run %d ends as completed, and not each host is upgraded and each step done", o.run.id)
	case o.run.aborted != (e.Result == "aborted"):
		o.violated("independence: run %d ends as %s by record %d, and that it was aborted is %t", o.run.key(), e.Result, r.Seq, o.run.aborted)
	case e.Result == "timed-out" && o.decided(sent).Before(o.run.ends):
		o.violated("independence: run %d ends as timed-out by record %d, sent at %s, and may last until %s", o.run.key(), r.Seq, sent, o.run.ends)
	}
}
