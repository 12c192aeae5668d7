package run

import (
	"cmp"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// notWell is why a host holds a slot that it has had since a run before.
const notWell = "it was not well when the run before ended"

// inherit takes in a host that was out of service when the run before ended.
// What it would lack by a policy that is no more is not asked of it.
func (s *State) inherit(u message.Unwell, at time.Time) {
	i, known := s.index[u.Host]
	if !known {
		if s.outsider(u.Host) == nil {
			s.setAside(-1, []string{u.Host})
		}
		s.editOutsider(s.outsider(u.Host), at, func(o *outsider) { o.Unwell, o.slot = u, true })
		return
	}
	s.edit(i, at, func(m *member) {
		m.slot, m.slotAt, m.stranded, m.unknown = true, u.Since, u.Late, u.Unknown
		m.undrain = u.Drained && s.policy.Hooks.Undrain != nil
		if len(s.task(u.Checks).Checks) > 0 {
			m.unwell = u.Checks
		}
	})
	s.freeSlot(i, at)
}

// Unwell returns the hosts that still hold a slot after the end of the run, in
// the order of its members; those that were silent and nothing else are well.
func (s *State) Unwell() []message.Unwell {
	var hosts []message.Unwell
	for i := range s.members {
		if m := &s.members[i]; m.slot {
			hosts = append(hosts, message.Unwell{
				Host: m.name, Since: m.slotAt, Late: cmp.Or(m.late, m.stranded), Unknown: m.unknown, Drained: m.undrain, Checks: m.unwell,
			})
		}
	}
	for k := range s.outsiders {
		if s.outsiders[k].slot {
			hosts = append(hosts, s.outsiders[k].Unwell)
		}
	}
	return hosts
}

// HoldsSlot reports whether a host holds a slot after the end of the run.
func (s *State) HoldsSlot(host string) bool {
	if i, known := s.index[host]; known {
		return s.members[i].slot
	}
	o := s.outsider(host)
	return o != nil && o.slot
}

// Minds reports whether it matters to a run that a host is deleted: it waits
// for it, or counts it as out of service.
func (s *State) Minds(host string) bool {
	i, known := s.index[host]
	o := s.outsider(host)
	switch {
	case s.Over():
		return s.HoldsSlot(host)
	case known:
		return s.members[i].final == "" || s.members[i].out()
	}
	return o != nil && o.out()
}

// after takes in what happens after the end of the run: hosts that are not well
// are deleted, or released.
func (s *State) after(e message.Event, r message.Record) error {
	if e.Event != message.Released && (e.Event != message.Recovered || e.Reason != message.Deleted) {
		return fmt.Errorf("event %s belongs to no run under way", e.Event)
	}
	for _, host := range e.Hosts {
		if !s.HoldsSlot(host) {
			return fmt.Errorf("%s holds no slot since run %d", host, s.Key())
		}
	}
	for _, host := range e.Hosts {
		if i, known := s.index[host]; known {
			s.leaveBehind(i, leftBehind(e), r.Time)
		} else {
			s.happens(s.outsider(host), e, r.Time)
		}
	}
	s.LastSeq = r.Seq
	return nil
}

// answeredAfter takes in that a host answers its last command, or the prepare,
// after the end of the run: it is at work no more.
func (s *State) answeredAfter(r message.Record) error {
	i, known := s.index[r.Host]
	if known && r.Run == s.ID && s.comesAshore(i, r.Action, answerOf(r), r.Time) {
		s.LastSeq = r.Seq
		return nil
	}
	if !known || r.Run != s.ID || s.members[i].asked() == "" || s.members[i].asked() != r.Action {
		return fmt.Errorf("nobody waits for an answer of %s to %s of run %d", r.Host, r.Action, r.Run)
	}
	s.answerLate(i, answerOf(r), r.Time)
	s.LastSeq = r.Seq
	return nil
}

// leftBehind says why nobody waits for a host any more.
func leftBehind(e message.Event) string {
	if e.Event == message.Released {
		return fmt.Sprintf("its slot was released by %s: %s", e.By, e.Why)
	}
	return "it was deleted"
}

// refusesReleaseAfter tells why a slot cannot be freed after the end of the
// run: there is none.
func (s *State) refusesReleaseAfter(host string) error {
	if !s.HoldsSlot(host) {
		return s.refused("no run is under way, and host %s holds no slot since run %d", host, s.Key())
	}
	return nil
}
