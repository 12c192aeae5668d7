package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

// others are the hosts of the roster that are no members.
func (s *State) others() []*roster.Host { return s.roster.From(len(s.members)) }

// Outsider is a host that is out of service and no member of the run, as others
// see it.
type Outsider struct {
	Name       string
	Slot       time.Time
	SlotReason string
}

// Outsiders returns the hosts that are out of service and no members.
func (s *State) Outsiders() []Outsider {
	var all []Outsider
	for _, h := range s.others() {
		if h.Out() {
			all = append(all, Outsider{Name: h.Name, Slot: h.OutSince(), SlotReason: h.Reason()})
		}
	}
	return all
}

// Watched returns the hosts whose silence matters to the run: its members, and
// those aside.
func (s *State) Watched() []string {
	var names []string
	for _, h := range s.roster.From(0) {
		if h.Group != roster.NoGroup {
			names = append(names, h.Name)
		}
	}
	return names
}

// counts reports whether a host counts as out of service. After the end of the
// run nobody looks whether it is silent.
func (s *State) counts(i int) bool {
	h := s.roster.Host(i)
	return h.Held() || h.IsSilent() && !s.Over()
}

// Minds reports whether it matters to a run that a host is deleted: it waits
// for it, or counts it as out of service.
func (s *State) Minds(host string) bool {
	i, known := s.roster.Index(host)
	return known && (s.counts(i) || s.isMember(i) && s.members[i].final == "")
}
