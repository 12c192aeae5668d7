package oracle

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// run is the state of one run by the log.
type run struct {
	// opened is the sequence of the run's opening; id is that of its prepare, 0 before.
	opened, id uint64
	policy     rollout.Resolved
	notAfter   time.Time
	// ends is not-after as it follows the log's clock that is set back: a controller
	// that has not seen that may still send a command until notAfter.
	ends time.Time
	// overAt is when the run is over for hosts under way: not-after, or when a freeze
	// was written that had begun. It follows the log's clock, too.
	overAt  time.Time
	members []*member
	stages  []stage
	// taken is the record by which it last admitted a host or let one leave service, slowest the
	// longest that a host was out of service for its upgrade.
	taken   uint64
	slowest time.Duration
	// roster names the hosts that the run knows.
	roster map[string]bool
	// paused and halted are the records after which no further host may begin: an
	// operator or a failure paused the run, or a failure stopped it. 0 for none.
	paused, halted uint64
	// pausedBy is who paused the run, and pausedSince the record by which it is for that
	// reason: a failure takes the place of the rollout or the agent.
	pausedBy    string
	pausedSince uint64
	// perhapsPaused is the first record that may have paused the run, see uncertain; 0 for none.
	perhapsPaused uint64
	aborted       bool
	// release is what it installs, by name and digest; empty for none. rollsBack are the runs that it
	// rolls back, by and why who has started it and why.
	release   string
	rollsBack message.Interval
	by, why   string
	openedAt  time.Time
	// outputs are those that the runs which it rolls back have left.
	outputs []outputsOf
	// same tells that its release refuses hosts that plan another version than the others.
	same bool
	// window is when the window of the run opened, windowUsed that an earlier run has
	// used it up; touched means that this run has taken a host out of service.
	window              time.Time
	windowUsed, touched bool
	// chosen means that somebody has chosen its hosts, overrides that somebody has started it before
	// the environments that its own comes after had completed theirs.
	chosen, overrides bool
	// until is the stage after which it ends, reached what earlier runs have done by its opening; nil if
	// the next run does not go on where it ends.
	until   string
	reached *message.Reached
	// soaksBefore are the soaks of the runs from which it goes on.
	soaksBefore []soak
	// allPrepared means that each member that is waited for has answered prepare, or that
	// the run begins without those that have not: they are late.
	allPrepared bool
	patience    patience
	// atOnce means that the run was aborted and does not wait for any host.
	atOnce   bool
	finished bool
	// failures counts the hosts that failed since a person resumed the run.
	failures int
	// fleetPassed means that the checks of the fleet have passed.
	fleetPassed bool
	health      health
}

// stage is a stage of the run under way.
type stage struct {
	rollout.ResolvedStage
	// hosts are the stage's members, and the non-members that count in it.
	hosts    []*host
	approved bool
	// begun means that a host of the stage was admitted, begunAt when the first was; doneAt is when the last host
	// of this stage and the stages before it was done.
	begun           bool
	begunAt, doneAt time.Time
	// soaked means that the stage had soaked before the log's clock was set back.
	soaked bool
	// approvedAt is when it was approved.
	approvedAt time.Time
	// unmet means that a member that was late has failed to prepare.
	unmet bool
	// doing is how its step stands, if it has one.
	doing doing
}

// begins notes that a host or the step of the stage begins.
func (s *stage) begins(at time.Time) {
	if !s.begun {
		s.begun, s.begunAt = true, at
	}
}

// phase is how far a member has come.
type phase string

// The phases of a member. From draining to undraining the run has taken it out of
// service.
const (
	pending    phase = ""
	preparing  phase = "preparing"
	prepared   phase = "prepared"
	checking   phase = "checking"   // the checks before its upgrade run
	checked    phase = "checked"    // the checks have passed, and it waits for its slot
	draining   phase = "draining"   // it has its slot
	drained    phase = "drained"    // it waits for its upgrade command
	upgrading  phase = "upgrading"  // it has yet to answer upgrade
	rebootDue  phase = "reboot-due" // it waits for its reboot command
	rebooting  phase = "rebooting"  // it has yet to answer reboot
	rechecking phase = "rechecking" // the checks after its upgrade run
	undraining phase = "undraining" // its undrain hook runs
	over       phase = "over"       // the run sends it no further command; it may owe something
)

// order lists the phases in the order in which a member goes through them.
var order = []phase{pending, preparing, prepared, checking, checked, draining, drained, upgrading, rebootDue, rebooting, rechecking, undraining, over}

// before reports whether a phase comes before another.
func (p phase) before(other phase) bool {
	for _, at := range order {
		switch at {
		case other:
			return false
		case p:
			return true
		}
	}
	return false
}

// follows lists the phases from which a command or an event may bring a member to
// another one.
var follows = map[phase][]phase{
	preparing: {pending},
	checking:  {prepared, checked},
	draining:  {prepared, checked},
	upgrading: {prepared, checked, drained},
	rebooting: {rebootDue},
}

// member is a host's part in the run under way.
type member struct {
	*host
	run   *run
	stage int
	phase phase
	// ended means that the member has its final status; upgraded, that the status is
	// "upgraded".
	ended, upgraded bool
	// failed means that its final status is "failed"; givenUp, that it was deleted or
	// released before it had one.
	failed, givenUp bool
	// endedBy is the record by which it got its final status.
	endedBy uint64
	// keeps means that the member was out of service when it was admitted: it keeps
	// its slot even when it no longer owes anything.
	keeps bool
	// leftOut means that the member was left out, because it had not answered a command
	// of an earlier run.
	leftOut bool
	// drainGivenUp means that the run no longer waits for the drain hook.
	drainGivenUp bool
	// epoch is the epoch of the worker that was prepared.
	epoch uint64
	// prepared means that the member answered prepare with "done".
	prepared bool
	// passedAt is when the checks before the upgrade passed; zero when they have to
	// pass again.
	passedAt time.Time
	// notNow is why the run passes the member over; nil while it does not. toldBusy
	// counts how often the log says so.
	notNow   *message.NotNow
	toldBusy int
	// readySince is the record since which nothing but a place in its cells keeps it from beginning;
	// 0 while something does. tookAt is when it was taken out of service.
	readySince uint64
	tookAt     time.Time
	// hadPlace means that the member was out of service when it was admitted or taken.
	hadPlace bool
	// outlastsLimit means that the member was taken out of service before a limit of its cells was
	// lowered, or the budgets were edited.
	outlastsLimit bool
	// upgrade and reboot are the commands to the member; 0 for none.
	upgrade, reboot uint64
	// rebootAnswered means that the member answered reboot.
	rebootAnswered bool
}

// maxBusy is how often in a run a host may be passed over because it is busy.
const maxBusy = 20

// inHand reports whether the run has taken a member out of service and has not put it
// back.
func (m *member) inHand() bool {
	switch {
	case m == nil || m.ended:
		return false
	case m.phase == checking || m.phase == checked:
		return m.keeps
	}
	return !m.phase.before(draining) && m.phase != over
}

// owesBefore reports whether a member has not answered a command of an earlier run, released
// or not.
func (m *member) owesBefore() bool {
	return m.owes.answer != "" && !m.owes.isOf(m.run) || m.works != "" && m.worksBefore
}

// isAwaited reports whether the run waits for a member's answer to prepare.
func (m *member) isAwaited() bool { return m.phase.before(prepared) && !m.owesBefore() }

// left reports whether the stage of a member waits for it.
func (m *member) left() bool { return !m.ended || m.phase == undraining }

// asked returns the command whose answer counts: the last one, even if the run no
// longer waits for the answer. No further answer counts of a host that does not know
// what it did.
func (m *member) asked() message.Action {
	switch {
	case m == nil:
		return ""
	case m.phase == preparing:
		return message.Prepare
	case m.phase == upgrading:
		return message.Upgrade
	case m.phase == rebooting:
		return message.Reboot
	case m.works != "" && !m.worksBefore:
		return m.works
	case m.owes.isOf(m.run) && !m.owes.look:
		return m.owes.answer
	}
	return ""
}

// wants returns the kind of the member's next task.
func (m *member) wants() message.TaskKind {
	switch m.phase {
	case checking:
		return message.BeforeHost
	case draining:
		return message.Drain
	case rechecking:
		return message.AfterHost
	case undraining:
		return message.Undrain
	case over:
		switch {
		case m.owes.undrain:
			return message.Undrain
		case m.owes.answer == "" && !m.owes.look:
			return m.owes.checks
		}
	case pending, preparing, prepared, checked, drained, upgrading, rebootDue, rebooting:
	}
	return ""
}

func newRun(r message.Decoded, e message.Opened) *run {
	p := &run{
		roster: map[string]bool{}, opened: r.Seq, policy: e.Rollout, notAfter: e.NotAfter, ends: e.NotAfter, overAt: e.NotAfter, window: e.Window, windowUsed: e.WindowUsed,
		chosen: e.Chosen || e.RetryOf != 0, overrides: e.OverrideAfter != "", until: e.Until, reached: e.Reached, release: releaseOf(e), rollsBack: e.RollsBack(), by: e.By, why: e.Why, openedAt: r.Time, health: newHealth(e.Rollout.Start),
	}
	for _, name := range e.Members {
		p.roster[name] = true
	}
	for _, entry := range e.Roster {
		p.roster[entry.Host] = true
	}
	p.patience = newPatience(p.policy.PreparePatience, e.NotAfter.Sub(r.Time))
	if e.Release != nil {
		installs, err := e.Release.Release()
		p.same = err == nil && installs.Packages != nil && installs.Packages.Same
	}
	if p.policy.Paused {
		p.paused, p.pausedSince, p.pausedBy = r.Seq, r.Seq, message.ByRollout
	}
	return p
}

func (p *run) member(name string) *member {
	for _, m := range p.members {
		if m.name == name && m.member == m { // It may have moved after the end of the run.
			return m
		}
	}
	return nil
}

// other returns a non-member that counts in a stage or in a cell, is out of service, or may still
// be at work.
func (o *Oracle) other(name string) (h *host, counts bool) {
	for n := range o.run.stages {
		for _, h := range o.run.stages[n].hosts {
			if h.name == name && h.member == nil {
				return h, true
			}
		}
	}
	if h := o.hosts[name]; h != nil && h.member == nil && o.run.roster[name] && len(o.cellsOf(name)) > 0 {
		return h, true
	}
	if h := o.hosts[name]; h != nil && h.member == nil && h.home == o.environment && (h.owes != (debt{}) || h.silent || h.works != "") {
		return h, false
	}
	return nil, false
}

// checks returns the checks of a kind.
func (p *run) checks(kind message.TaskKind) []rollout.Check {
	switch kind {
	case message.BeforeHost:
		return p.policy.Checks.BeforeHost
	case message.AfterHost:
		return p.policy.Checks.AfterHost
	case message.Fleet:
		return p.policy.Checks.Fleet
	case message.Drain, message.Undrain:
	}
	return nil
}

// needless reports whether a member is exempt from reboots.
func (p *run) needless(name string) bool {
	for _, n := range p.policy.NoReboot {
		if n.Host == name {
			return true
		}
	}
	return false
}

// commandCounts reports whether a command reaches a phase of its host.
func (p *run) commandCounts(r message.Decoded, c message.Command) bool {
	if c.Action == message.Prepare {
		for _, name := range c.Hosts {
			if p.member(name) == nil {
				return false
			}
		}
		return p.id == 0 && (len(c.Hosts) > 0 || !p.hasPending())
	}
	m := p.member(c.Host)
	to := map[message.Action]phase{message.Upgrade: upgrading, message.Reboot: rebooting}[c.Action]
	return m != nil && r.Run == p.id && has(follows[to], m.phase)
}

// hasPending reports whether a member is there to be prepared.
func (p *run) hasPending() bool {
	for _, m := range p.members {
		if m.phase == pending && !m.ended {
			return true
		}
	}
	return false
}

// command applies a command.
func (o *Oracle) command(r message.Decoded, c message.Command) {
	p := o.run
	switch c.Action {
	case message.Prepare:
		p.id = r.Seq
		o.named[r.Seq], o.pinned[r.Seq], o.rollsBack[r.Seq] = c.Hosts, o.run.release, o.run.rollsBack
		if o.checks[r.Seq] = len(p.policy.Checks.AfterHost) > 0; !o.checks[r.Seq] {
			o.uncheckedRun = r.Seq
		}
		for _, name := range c.Hosts {
			if m := p.member(name); m.phase == pending {
				m.phase = preparing
			}
		}
	case message.Upgrade:
		m := p.member(c.Host)
		if m.tookAt.IsZero() {
			m.tookAt = r.Time
			o.takes(r)
		}
		m.phase, m.upgrade, p.touched = upgrading, r.Seq, true
		p.stages[m.stage].begins(r.Time)
	case message.Reboot:
		m := p.member(c.Host)
		m.phase, m.reboot = rebooting, r.Seq
	}
}

// fail gives a member its final status "failed". The member stays out of service until
// its checks pass. A member that could not prepare does not count to max-failures.
func (o *Oracle) fail(m *member, seq uint64, at time.Time) {
	p, unprepared := o.run, m.phase.before(prepared)
	o.endFailed(m, at)
	if unprepared {
		return
	}
	p.failures++
	if p.failures >= p.policy.MaxFailures {
		p.tooMany(seq)
	}
}

// endFailed gives a member its final status "failed".
func (o *Oracle) endFailed(m *member, at time.Time) {
	p := o.run
	switch {
	case m.phase.before(draining) && m.owes.checks != "": // As before this run.
	case m.phase == checking:
		m.owes.checks = message.BeforeHost
	case m.held() && len(p.policy.Checks.AfterHost) > 0:
		m.owes.checks = message.AfterHost
	default:
		m.owes.checks = ""
	}
	m.failed = true
	o.end(m, at)
}

// tooMany stops or pauses the run, by its policy, because too many hosts failed.
func (p *run) tooMany(seq uint64) {
	switch {
	case p.policy.OnFailure == rollout.Stop && p.halted == 0:
		p.halted = seq
	case p.policy.OnFailure == rollout.Pause:
		if p.paused == 0 || message.GoesOn(p.pausedBy) {
			p.pausedSince, p.pausedBy = seq, "on-failure"
		}
		if p.paused == 0 {
			p.paused = seq
		}
	}
}

// end gives a member its final status. The undrain hook of a drained member is tried at
// once.
func (o *Oracle) end(m *member, at time.Time) {
	m.ended, m.endedBy, m.keeps = true, o.seen+1, false
	if m.owes.undrain && m.phase != undraining {
		m.phase = undraining
	} else {
		m.phase = over
	}
	o.stagesDone(at)
}

// wellAgain is the end of an upgrade: the member is upgraded and its checks have
// passed. It is undrained, or back in service.
func (o *Oracle) wellAgain(m *member, at time.Time) {
	if m.owes.undrain {
		m.phase = undraining
		return
	}
	m.owes, m.upgraded = debt{}, true
	o.run.slowest = max(o.run.slowest, at.Sub(m.tookAt))
	o.end(m, at)
}

// stagesDone notes when the last host of a stage and the stages before it was done. That no
// host of a stage has begun, because those that were late have failed to prepare, counts as
// too many failures: other stages go by how it fares.
func (o *Oracle) stagesDone(at time.Time) {
	for n := range o.run.stages {
		s := &o.run.stages[n]
		for _, h := range s.hosts {
			if h.member != nil && h.member.left() {
				return
			}
		}
		if s.Step != nil && !s.doing.passed {
			return
		}
		if s.doneAt.IsZero() {
			s.doneAt = at
			if s.unmet && !s.begun && o.run.leftAfter(n) {
				o.count("stages whose hosts were late and failed to prepare")
				o.run.tooMany(o.seen + 1)
			}
		}
	}
}
