package sim

import (
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// unwell is what a host certainly lacks when its run ends: it is out of service
// in the next one, until that has come.
type unwell struct{ answer, undrain, checks, unknown bool }

// aside is a host that counts in a stage and is no member.
type aside struct {
	stage  int
	silent bool
}

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
		unknown: m.before.unknown || m.lost,
	}
}

// lost reports whether a host answered that it does not know what it did.
func lost(result string) bool { return strings.HasSuffix(result, message.PastUnknown) }

// afterwards takes in a reply that comes after the end of its run.
func (b *book) afterwards(p *pass, r message.Record) {
	m := p.members[r.Host]
	u, unwell := b.unwell[r.Host]
	ashore := m != nil && r.Action == message.Prepare && m.upgrade == 0 && u.answer
	if m == nil || !unwell || !ashore && !m.isAwaited(r.Action) {
		return
	}
	if u.answer, u.unknown = false, u.unknown || lost(resultOf(r)); u == unwellNothing {
		delete(b.unwell, r.Host)
		return
	}
	b.unwell[r.Host] = u
}

var unwellNothing unwell

// isAwaited reports whether a member has yet to answer a command that it was
// sent.
func (m *part) isAwaited(a message.Action) bool {
	return a == message.Upgrade && m.upgrade != 0 && m.upgradeSaid == "" || a == message.Reboot && m.reboot != 0 && m.rebootSaid == ""
}

// outside takes in an event of a host that is no member, and reports whether it
// may have one.
func (b *book) outside(p *pass, e message.Event, host string) bool {
	a := p.asides[host]
	inherits := slices.ContainsFunc(p.opened.Unwell, func(u message.Unwell) bool { return u.Host == host })
	switch {
	case e.Event == message.Released || e.Event == message.Recovered && e.Reason == message.Deleted:
		delete(b.unwell, host)
		if a != nil {
			a.silent = false
		}
		return a != nil || inherits
	case e.Event == message.Silent || e.Event == message.Recovered:
		if a != nil {
			a.silent = e.Event == message.Silent
			b.w.count("event " + e.Event + " of a host aside")
		}
		return a != nil
	}
	return false
}

// outAside counts the hosts of a stage that are no members and certainly out of
// service.
func (b *book) outAside(stage int) (out int) {
	for host, a := range b.run.asides {
		if a.stage == stage && (a.silent || b.unwell[host] != unwellNothing) {
			out++
		}
	}
	return out
}

// leave notes who is not well when a run ends.
func (b *book) leave(p *pass) {
	for _, m := range p.members {
		delete(b.unwell, m.host)
		if u := p.unwell(m); u != unwellNothing {
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
