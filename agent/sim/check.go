package sim

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// command checks a command that is on the log (design.md 5, invariants 1 to 4).
func (b *book) command(r message.Record, c message.Command, sent time.Time) {
	p := b.run
	switch {
	case p == nil || p.finished:
		b.w.violated("invariant 3: %s, record %d, is of no run under way", c.Action, r.Seq)
		return
	case !sent.Before(p.notAfter):
		b.w.violated("invariant 3: %s, record %d, was sent at %s, and not-after is %s", c.Action, r.Seq, sent, p.notAfter)
	case p.aborted:
		b.w.violated("invariant 3: %s, record %d, after an abort", c.Action, r.Seq)
	}
	if c.Action == message.Prepare {
		b.prepare(r, c)
		return
	}
	m := p.members[c.Host]
	switch {
	case m == nil:
		b.w.violated("%s, record %d, is for %s, which is no member", c.Action, r.Seq, c.Host)
		return
	case r.Run != p.id:
		b.w.violated("%s, record %d, is of run %d, and run %d is under way", c.Action, r.Seq, r.Run, p.id)
	case m.left:
		b.w.violated("%s, record %d, is for %s, which was released or deleted", c.Action, r.Seq, c.Host)
	}
	if c.Action == message.Reboot {
		b.reboot(r, m)
		return
	}
	b.upgrade(r, m, sent)
}

func (b *book) prepare(r message.Record, c message.Command) {
	p := b.run
	if p.id != 0 {
		b.w.violated("run %d is prepared twice, by record %d", p.id, r.Seq)
	}
	p.id = r.Seq
	asked := map[string]bool{}
	for _, host := range c.Hosts {
		asked[host] = true
		if m := p.members[host]; m == nil || m.left {
			b.w.violated("prepare %d is for %s, which is no member", r.Seq, host)
		}
	}
	for host, m := range p.members {
		if !asked[host] && !m.left {
			b.w.violated("prepare %d is not for %s", r.Seq, host)
		}
	}
}

func (b *book) reboot(r message.Record, m *part) {
	switch {
	case m.reboot != 0:
		b.w.violated("invariant 2: %s is told to reboot twice, by record %d", m.host, r.Seq)
	case m.upgradeSaid != message.RebootRequired:
		b.w.violated("invariant 4: %s is told to reboot, and answered %q to upgrade", m.host, m.upgradeSaid)
	case m.gaveUp[string(message.Upgrade)]:
		b.w.violated("%s is told to reboot, and was given up", m.host)
	}
	for _, n := range b.run.policy.NoReboot {
		if n.Host == m.host {
			b.w.violated("%s is told to reboot, and is exempt from that", m.host)
		}
	}
	m.reboot = r.Seq
}

func (b *book) upgrade(r message.Record, m *part, sent time.Time) {
	if m.before.unknown {
		b.w.violated("%s is told to upgrade, and does not know what it did before", m.host)
	}
	if m.upgrade != 0 {
		b.w.violated("invariant 2: %s is told to upgrade twice, by record %d", m.host, r.Seq)
	}
	if !m.slot {
		b.begins(r, m, true, sent)
	}
	hooks := b.run.policy.Hooks
	switch {
	case (hooks.Drain != nil || hooks.Undrain != nil) && !m.slot:
		b.w.violated("%s is told to upgrade without a slot", m.host)
	case hooks.Drain != nil && !m.ran[message.Drain]:
		b.w.violated("%s is told to upgrade, and is not drained", m.host)
	case m.gaveUp[string(message.Drain)]:
		b.w.violated("%s is told to upgrade, and its drain was given up", m.host)
	case len(b.run.policy.Checks.BeforeHost) > 0 && !m.ran[message.BeforeHost]:
		b.w.violated("%s is told to upgrade, and the checks before it have not passed", m.host)
	}
	m.upgrade = r.Seq
}

// unseen is how long a reply may be on the log before a controller that follows
// it slowly has seen it: only commands and events are appended in full
// knowledge of one another.
const unseen = 2 * time.Minute

// begins checks that a host may have its turn, or its slot.
func (b *book) begins(r message.Record, m *part, slot bool, sent time.Time) {
	p := b.run
	stage := p.policy.Stages[m.stage]
	switch {
	case !m.prepared || m.left:
		b.w.violated("invariant 3: the turn of %s, record %d, and it is not prepared", m.host, r.Seq)
	case p.aborted || !p.stopped.IsZero() && time.Since(p.stopped) > unseen:
		b.w.violated("invariant 3: the turn of %s, record %d, and the run was stopped", m.host, r.Seq)
	case p.paused:
		b.w.violated("the turn of %s, record %d, and the run is paused", m.host, r.Seq)
	case !sent.Before(p.notAfter):
		b.w.violated("invariant 3: the turn of %s, record %d, after not-after", m.host, r.Seq)
	case stage.Approval && !p.approved[stage.Name]:
		b.w.violated("the turn of %s, record %d, and stage %s is not approved", m.host, r.Seq, stage.Name)
	case len(p.policy.Checks.Fleet) > 0 && !p.fleetOK:
		b.w.violated("the turn of %s, record %d, and the checks of the fleet never passed", m.host, r.Seq)
	}
	b.others(r, m)
	if slot {
		b.takes(r, m)
		m.slot = m.slot || r.Kind == message.EventRecord
	}
	m.begun = true
}

// others checks what the other members stand at when a host begins.
func (b *book) others(r message.Record, m *part) {
	prepared := 0
	for _, host := range b.run.order {
		o := b.run.members[host]
		if !o.answered {
			b.w.violated("invariant 3: the turn of %s, record %d, and %s has not answered prepare", m.host, r.Seq, host)
		}
		if o.prepared || o.left {
			prepared++
		}
		if o.stage < m.stage && o.upgrade != 0 && o.upgradeSaid == "" && !o.left && !o.gaveUp[string(message.Upgrade)] {
			b.w.violated("the turn of %s, record %d, and %s of an earlier stage is being upgraded", m.host, r.Seq, host)
		}
	}
	if prepared < b.run.policy.MinPrepared {
		b.w.violated("the turn of %s, record %d, and %d hosts are prepared, of at least %d", m.host, r.Seq, prepared, b.run.policy.MinPrepared)
	}
}

// takes checks that there is a slot (design.md 5, invariant 1).
func (b *book) takes(r message.Record, m *part) {
	out, limit := b.outAside(m.stage), b.run.policy.Stages[m.stage].MaxUnavailable
	for _, host := range b.run.order {
		if o := b.run.members[host]; o != m && o.stage == m.stage && b.run.out(o) {
			out++
		}
	}
	if out >= limit && !m.holds {
		b.w.violated("invariant 1: %s takes a slot by record %d, and %d of at most %d are taken", m.host, r.Seq, out, limit)
	}
}

// out reports whether a member certainly counts as out of service.
func (p *pass) out(m *part) bool {
	switch {
	case m.left:
		return false
	case m.silent || p.unwell(m) != unwellNothing:
		return true
	}
	drains := !m.tried[message.Drain] || m.ran[message.Drain] && !m.gaveUp[string(message.Drain)]
	return m.slot && m.upgrade == 0 && drains
}

// awaited reports whether a host that was told to upgrade has yet to answer
// what it was told, or will be told.
func (m *part) awaited(p *pass) bool {
	switch {
	case m.upgradeSaid == "" || m.reboot != 0 && m.rebootSaid == "":
		return true
	case m.upgradeSaid != message.RebootRequired || m.reboot != 0 || m.gaveUp[string(message.Reboot)] || m.gaveUp[string(message.Upgrade)]:
		return false
	}
	for _, n := range p.policy.NoReboot {
		if n.Host == m.host {
			return false
		}
	}
	return true
}
