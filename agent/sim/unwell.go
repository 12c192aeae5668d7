package sim

import (
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// unwell is what a host certainly lacks when its run ends: it is out of service
// in the next one, until that has come.
type unwell struct{ answer, undrain, checks bool }

// unwell returns what a member lacks by now.
func (p *pass) unwell(m *part) unwell {
	if m.left {
		return unwell{}
	}
	checked := m.ran[message.AfterHost] || len(p.policy.Checks.AfterHost) == 0
	undrained := m.ran[message.Undrain] || p.policy.Hooks.Undrain == nil
	return unwell{
		answer:  m.before.answer && !m.replied || m.upgrade != 0 && m.awaited(p),
		undrain: (m.before.undrain || m.slot) && !undrained,
		checks:  (m.before.checks || m.upgrade != 0) && !checked,
	}
}

// leave notes who is not well when a run ends.
func (b *book) leave(p *pass) {
	for _, m := range p.members {
		delete(b.unwell, m.host)
		if u := p.unwell(m); u != (unwell{}) {
			b.unwell[m.host] = u
			b.w.count("hosts that are not well when a run ends")
		}
	}
}

// inherit checks that a run is opened with whoever is not well.
func (b *book) inherit(p *pass) {
	for host, u := range b.unwell {
		if !slices.ContainsFunc(p.opened.Unwell, func(o message.Unwell) bool { return o.Host == host }) {
			b.w.violated("invariant 1: run %d is opened as if %s were well, which lacks %+v", p.seq, host, u)
		}
		if m := p.members[host]; m != nil {
			m.before = u
			b.w.count("hosts that are not well when a run is opened")
		}
	}
	for _, u := range p.opened.Unwell {
		if m := p.members[u.Host]; m != nil {
			m.holds = true
		}
	}
}

// rest takes in what happens after the end of a run: hosts that are not well
// are deleted, or released.
func (b *book) rest(r message.Record, e message.Event) {
	if e.Event != message.Released && (e.Event != message.Recovered || e.Reason != message.Deleted) {
		b.w.violated("event %d, %s, is of no run under way", r.Seq, e.Event)
		return
	}
	b.w.count(e.Event + " after the end of a run")
	for _, host := range e.Hosts {
		delete(b.unwell, host)
	}
}
