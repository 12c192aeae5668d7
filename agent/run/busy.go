package run

import (
	"maps"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// A host that says "not now" is passed over: other hosts of its stage go first, and it is
// a candidate again once it says that it is idle. The run is told only when it would
// start the host, so that the log has what decided and no more. A command that has been
// sent already is the worker's business, which waits with it itself.

// maxBusy is how often a run is told that a host is busy: a host cannot fill the log.
// After that its own worker alone waits.
const maxBusy = 20

// isBusy reports whether the host waits for its turn only because it is busy.
func (m *member) isBusy() bool { return m.busy != nil && m.phase == idle }

// heeds reports whether it changes anything in the run that a host says "not now".
func (m *member) heeds(said message.NotNow) bool {
	waits := m.phase == idle || m.isAdmitted()
	return waits && m.timesBusy < maxBusy && (m.busy == nil || !m.busy.Equal(said))
}

// busyHosts are the members that are passed over, by their index.
type busyHosts map[int]bool

func (b busyHosts) clone() busyHosts { return maps.Clone(b) }

// tellBusy returns the event of a host that is idle again, or that gives another reason
// or end; nil when there is none. Nothing is known of a host that is silent.
func (s *State) tellBusy(seen *Seen) message.Event {
	if len(s.busyHosts) == 0 { // Even sorting nothing takes two allocations.
		return nil
	}
	for _, i := range slices.Sorted(maps.Keys(s.busyHosts)) {
		m := &s.members[i]
		switch said, heard := seen.Busy[m.Name]; {
		case !heard || m.IsSilent():
		case said == nil:
			return message.Idle{Host: m.Name}
		case m.heeds(*said):
			return message.Busy{Host: m.Name, NotNow: *said}
		}
	}
	return nil
}

// passOver returns the event that the host which goes next is busy; nil when it is not.
func (s *State) passOver(i int, seen *Seen) message.Event {
	m := &s.members[i]
	if said := seen.Busy[m.Name]; said != nil && m.heeds(*said) {
		return message.Busy{Host: m.Name, NotNow: *said}
	}
	return nil
}

// becomeBusy notes that a host is passed over. A host that is being checked before its
// upgrade is not admitted any more.
func (s *State) becomeBusy(i int, said message.NotNow, at time.Time) bool {
	if !s.isMember(i) || !s.members[i].heeds(said) {
		return false
	}
	s.edit(i, at, func(m *member) {
		if m.busy == nil {
			m.busySince = at
		}
		m.busy, m.timesBusy = &said, m.timesBusy+1
		if m.isAdmitted() {
			s.withdraw(i, at)
		}
	})
	return true
}

func (s *State) becomeIdle(i int, at time.Time) bool {
	if !s.isMember(i) || !s.members[i].isBusy() {
		return false
	}
	s.edit(i, at, func(m *member) { m.busy, m.busySince = nil, time.Time{} })
	return true
}

// noteBusy keeps the set of the hosts that are passed over.
func (s *State) noteBusy(i int) {
	if s.members[i].isBusy() {
		s.busyHosts[i] = true
		return
	}
	delete(s.busyHosts, i)
}

// Busy reports whether the run passes a host over because it is busy, and why.
func (s *State) Busy(host string) (message.NotNow, bool) {
	i, err := s.member(host)
	if err != nil || s.Over() || !s.members[i].isBusy() {
		return message.NotNow{}, false
	}
	return *s.members[i].busy, true
}
