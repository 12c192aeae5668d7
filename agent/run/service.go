package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
)

// nonMembers are the hosts of the roster that are no members.
func (s *State) nonMembers() []*roster.Host { return s.roster.From(len(s.members)) }

// NonMember is a host that is out of service and no member of the run, as others
// see it.
type NonMember struct {
	Name       string
	Slot       time.Time
	SlotReason string
}

// NonMembers returns the hosts that are out of service and no members.
func (s *State) NonMembers() []NonMember {
	var all []NonMember
	for _, h := range s.nonMembers() {
		if h.Out() {
			all = append(all, NonMember{Name: h.Name, Slot: h.OutSince(), SlotReason: h.Reason()})
		}
	}
	return all
}

// Knows reports whether a host is in the roster of the run, as a member or not.
func (s *State) Knows(host string) bool { return s.roster.Has(host) }

// Minds reports whether the deletion of a host changes anything in the run: the run
// waits for the host, counts it as out of service, or remembers that it may be at work.
func (s *State) Minds(host string) bool {
	i, known := s.roster.Index(host)
	if !known {
		return false
	}
	works, _ := s.roster.Host(i).Works()
	return works != "" || s.roster.CountsAsOut(i) || s.isMember(i) && s.members[i].final == ""
}

// silence reports whether a host counts as silent; matters is false for a host whose
// silence says nothing: it is no member, is absent, was left out, or is out of service
// anyway, or the run has ended.
func (s *State) silence(name string) (silent, matters bool) {
	i, known := s.roster.Index(name)
	if !known {
		return false, false
	}
	h := s.roster.Host(i)
	switch {
	case s.Over():
		return s.roster.CountsAsSilent(i), false
	case h.IsAbsent() && !h.IsSilent():
		return false, false
	case !s.isMember(i):
		return h.IsSilent(), h.Counts() && !h.IsRemoved()
	case h.IsSilent():
		return true, true
	}
	m := &s.members[i]
	return false, (!h.HasSlot() || m.phase <= ready) && m.final != Skipped && !h.IsRemoved()
}
