package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// inherit takes in a host that was out of service when the run before ended.
// What it would lack by a policy that is no more is not asked of it.
func (s *State) inherit(u message.Unwell, at time.Time) {
	i, known := s.index[u.Host]
	if !known {
		s.beyond = append(s.beyond, u)
		return
	}
	s.edit(i, at, func(m *member) {
		m.slot, m.slotAt, m.stranded = true, u.Since, u.Late
		m.undrain = u.Drained && s.policy.Hooks.Undrain != nil
		if len(s.task(u.Checks).Checks) > 0 {
			m.unwell = u.Checks
		}
	})
	if s.members[i].stranded == "" {
		s.freeSlot(i, at)
	}
}

// Unwell returns the hosts that still hold a slot after the end of the run, in
// the order of its members; those that were silent and nothing else are well.
func (s *State) Unwell() []message.Unwell {
	var hosts []message.Unwell
	for i := range s.members {
		m := &s.members[i]
		if !m.slot {
			continue
		}
		u := message.Unwell{Host: m.name, Since: m.slotAt, Late: m.late, Drained: m.undrain, Checks: m.unwell}
		if u.Late == "" {
			u.Late = m.stranded
		}
		hosts = append(hosts, u)
	}
	return append(hosts, s.beyond...)
}

// Beyond returns the hosts that hold a slot since a run before and are no
// members of this one. The caller may not change them.
func (s *State) Beyond() []message.Unwell { return s.beyond }

// HoldsSlot reports whether a host holds a slot after the end of the run.
func (s *State) HoldsSlot(host string) bool {
	if i, member := s.index[host]; member {
		return s.members[i].slot
	}
	return slices.ContainsFunc(s.beyond, func(u message.Unwell) bool { return u.Host == host })
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
		s.beyond = slices.DeleteFunc(s.beyond, func(u message.Unwell) bool { return u.Host == host })
		if i, member := s.index[host]; member {
			s.leaveBehind(i, leftBehind(e), r.Time)
		}
	}
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
