package oracle

import (
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// inRun reports whether a run under way has a host in hand, or checks it before that.
func (h *host) inRun() bool {
	m := h.member
	return m != nil && !m.run.finished && (m.inHand() || m.phase == checking || m.phase == checked)
}

// lockCounts reports whether the event that a host is locked has an effect. One that has since
// tells anew of a lock.
func (o *Oracle) lockCounts(e message.Locked) bool {
	h := o.host(e.Host)
	if h.locked {
		return !e.Since.IsZero()
	}
	return !h.inRun()
}

// lock judges and applies the event that a host is locked: it leaves service, as by a slot.
func (o *Oracle) lock(r message.Decoded, e message.Locked) {
	h := o.host(e.Host)
	if h.locked {
		o.count("locks told anew")
		return
	}
	if e.Since.IsZero() {
		o.mayLock(h, r, e)
	}
	h.locked, h.lockedIn = true, e.Environment
	if o.budgets != "" && !o.inAnyRoster(h) {
		o.addLockedCells(e)
	}
	o.count("hosts locked")
}

// addLockedCells notes the cells of a locked host that no run knows. The limits of those that are known stay.
func (o *Oracle) addLockedCells(e message.Locked) {
	o.dropFromCells(func(host string) bool { return host == e.Host })
	for _, named := range e.Cells {
		if c := o.cells[named.Key()]; c != nil {
			c.hosts[e.Host] = true
			continue
		}
		o.addCells([]message.Cell{named})
	}
}

// mayLock judges that a host may leave service by itself: no run has it in hand, it has answered
// all that it was told, and it has a free slot in its stage and a free place in its cells. One that
// is in no cell is the only locked one of its environment that is in none.
func (o *Oracle) mayLock(h *host, r message.Decoded, e message.Locked) {
	if h.owes.answer != "" || h.works != "" {
		o.violated("%s is locked by record %d, and has not answered %s%s", h.name, r.Seq, h.owes.answer, h.works)
	}
	if h.out() {
		o.count("hosts locked that are out of service")
		return
	}
	for _, p := range o.runs {
		for n := range p.stages {
			if s := &p.stages[n]; !p.finished && has(s.hosts, h) {
				if out := s.outOrAdmitted(h); out >= s.MaxUnavailable {
					o.violated("invariant 1: %s is locked by record %d, and %d of at most %d of its stage are out of service", h.name, r.Seq, out, s.MaxUnavailable)
				}
				o.count("hosts locked in a stage")
			}
		}
	}
	known := o.inAnyRoster(h)
	var cells []*cell
	if known {
		cells = o.cellsOf(h.name)
	}
	for _, c := range cells {
		if out, admitted := o.outOf(c, h.name); out+admitted >= c.limit {
			o.violated("invariant 9: %s is locked by record %d, and in %s %d of at most %d are out of service, and %d are admitted", h.name, r.Seq, c.name, out, c.limit, admitted)
		}
		o.count("places taken by locked hosts")
	}
	if len(cells) == 0 && (known || len(e.Cells) == 0) {
		for _, other := range o.hosts {
			if other.locked && other.lockedIn == e.Environment && len(o.cellsOf(other.name)) == 0 {
				o.violated("%s is locked by record %d while %s is, and both are in no cell", h.name, r.Seq, other.name)
			}
		}
		return
	}
	if known {
		return
	}
	for _, named := range e.Cells {
		limit, out := named.MaxUnavailable, 0
		if c := o.cells[named.Key()]; c != nil {
			is, admitted := o.outOf(c, h.name)
			limit, out = c.limit, is+admitted
		}
		if out >= limit {
			o.violated("invariant 9: %s is locked by record %d, and in %s %d of at most %d are out of service", h.name, r.Seq, named.Name(), out, limit)
		}
		o.count("places taken by locked hosts that no run knows")
	}
}

// outOrAdmitted returns how many hosts of a stage but one are out of service, or admitted.
func (s *stage) outOrAdmitted(but *host) (out int) {
	for _, h := range s.hosts {
		if h != but && (h.out() || h.inRun()) {
			out++
		}
	}
	return out
}

// inAnyRoster reports whether the newest run of an environment knows a host.
func (o *Oracle) inAnyRoster(h *host) bool {
	p := o.runs[h.home]
	return h.homed && p != nil && p.roster[h.name]
}

// unlock applies the event that a host is not locked any more. If no run knows it, its cells forget
// it.
func (o *Oracle) unlock(e message.Unlocked) {
	h := o.host(e.Host)
	h.locked = false
	if o.inAnyRoster(h) {
		return
	}
	o.dropFromCells(func(host string) bool { return host == h.name })
}
