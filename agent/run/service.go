package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
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

// Watched returns the hosts whose silence matters to the run: its members, the hosts
// that count in a stage, and those that it counts as silent.
func (s *State) Watched() []string {
	var names []string
	for _, h := range s.roster.From(0) {
		if h.Group != roster.NoGroup || h.IsSilent() {
			names = append(names, h.Name)
		}
	}
	return names
}

// countsAsOut reports whether a host counts as out of service. The silence of a host
// that was absent counts only while the run is under way.
func (s *State) countsAsOut(i int) bool {
	return s.roster.Host(i).Held() || s.countsAsSilent(i)
}

// countsAsSilent reports whether a host counts as silent.
func (s *State) countsAsSilent(i int) bool {
	h := s.roster.Host(i)
	return h.IsSilent() && (!h.Absent || !s.Over())
}

// Minds reports whether the deletion of a host changes anything in the run: the run
// waits for the host, or counts it as out of service.
func (s *State) Minds(host string) bool {
	i, known := s.roster.Index(host)
	return known && (s.countsAsOut(i) || s.isMember(i) && s.members[i].final == "")
}

// silence tells whether a host counts as silent; matters is false for a host whose
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
		return s.countsAsSilent(i), false
	case h.Absent && !h.IsSilent():
		return false, false
	case !s.isMember(i):
		return h.IsSilent(), h.Group != roster.NoGroup && !h.Removed
	case h.IsSilent():
		return true, true
	}
	m := &s.members[i]
	return false, (!h.Held() || m.step <= ready) && m.final != Skipped && !h.Removed
}

// Service says whether a host is in service and, if not, why.
type Service string

// A host that is not out of service for the newest run is InService, unless the site
// knows better: only the site knows who is heard of outside of runs.
const (
	InService Service = "in-service"
	// BeingUpgraded means that the run under way has the host out of service.
	BeingUpgraded Service = "being-upgraded"
	// Unhealthy means that the host owes an answer, a look by an operator, its undrain or
	// its checks.
	Unhealthy Service = "unhealthy"
	// FellSilent means that the host fell silent while a run was under way.
	FellSilent Service = "silent"
	// IsAbsent means that the host was silent before the run was opened.
	IsAbsent Service = "absent"
)

// Services lists them.
func Services() []Service {
	return []Service{InService, BeingUpgraded, Unhealthy, FellSilent, IsAbsent}
}

// OutOfService returns the hosts that the run counts as out of service, and why.
func (s *State) OutOfService() map[string]Service {
	out := map[string]Service{}
	for i, h := range s.roster.From(0) {
		switch {
		case !s.countsAsOut(i):
		case h.InHand && !s.Over():
			out[h.Name] = BeingUpgraded
		case h.Held():
			out[h.Name] = Unhealthy
		case h.Absent:
			out[h.Name] = IsAbsent
		default:
			out[h.Name] = FellSilent
		}
	}
	return out
}
