package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// installed are the packages of the release of the run; nil if it installs none.
func installed(pinned *release.Pin) *release.Packages {
	if pinned == nil {
		return nil
	}
	r, err := pinned.Release()
	if err != nil {
		return nil
	}
	return r.Packages
}

// ComparesPlans reports whether the plans of the hosts of the run are to be compared, because it
// installs packages of a release, and whether hosts that plan something else are refused.
func (s *State) ComparesPlans() (compares, refuses bool) {
	return s.packages != nil, s.packages != nil && s.packages.Same
}

// BegunHosts returns the members with which the run has begun: what they get counts for those that differ.
func (s *State) BegunHosts() map[string]bool {
	began := map[string]bool{}
	for i := range s.members {
		if s.hasBegun(i) {
			began[s.members[i].Name] = true
		}
	}
	return began
}

// hasBegun reports whether a member is admitted, or was taken out of service.
func (s *State) hasBegun(i int) bool {
	m := &s.members[i]
	return m.phase > idle && m.phase < done || s.touched && !m.takenAt.IsZero()
}

// Outdates reports whether the run has begun with a host that was to be refused: then what counts has to
// be decided anew.
func (s *State) Outdates(e message.Differing) bool {
	return slices.ContainsFunc(e.Refused, func(r message.Refusal) bool {
		return slices.ContainsFunc(r.Hosts, func(host string) bool {
			i, err := s.member(host)
			return err == nil && s.isMember(i) && s.hasBegun(i)
		})
	})
}

// mayBeRefused reports whether a member is prepared, and nothing was done to it yet.
func (s *State) mayBeRefused(i int) bool { return s.isMember(i) && s.members[i].phase == idle }

// DifferingTexts returns what the plans of the hosts differ in, a line each; none if they do not.
func (s *State) DifferingTexts() []string {
	if s.differing == nil {
		return nil
	}
	return s.differing.Texts()
}

// tellDiffering returns the event that the plans of the hosts differ: once, and again if hosts are
// refused that have prepared since. Nil if there is nothing new.
func (s *State) tellDiffering(seen *Seen) message.Event {
	if seen.Differing == nil || s.packages == nil || s.isPreparing() {
		return nil
	}
	e := message.Differing{}
	if s.differing == nil {
		e.Packages, e.More = seen.Differing.Packages, seen.Differing.More
	}
	for _, r := range seen.Differing.Refused {
		if _, refuses := s.ComparesPlans(); !refuses {
			break
		}
		r.Hosts = slices.DeleteFunc(slices.Clone(r.Hosts), func(host string) bool {
			i, err := s.member(host)
			return err != nil || !s.mayBeRefused(i)
		})
		if len(r.Hosts) > 0 {
			e.Refused = append(e.Refused, r)
		}
	}
	if len(e.Packages) == 0 && len(e.Refused) == 0 {
		return nil
	}
	return e
}

// differ notes what the plans of the hosts differ in. A host that is refused has failed as one that
// could not prepare, and min-prepared says as then whether the run goes on without it.
func (s *State) differ(e message.Differing, at time.Time) error {
	if s.isPreparing() {
		return fmt.Errorf("run %d compares plans only when its hosts are prepared", s.Key())
	}
	if _, refuses := s.ComparesPlans(); !refuses && len(e.Refused) > 0 {
		return fmt.Errorf("run %d refuses no host: packages.same of its release is not true", s.Key())
	}
	if len(e.Packages) > 0 {
		s.differing = &e
	}
	s.changed = at
	for _, r := range e.Refused {
		for _, host := range r.Hosts {
			if i, err := s.member(host); err == nil && s.mayBeRefused(i) {
				s.members[i].class = message.Repository
				s.endFailed(i, r.Why, at)
			}
		}
	}
	if s.Begun() == 0 && len(e.Refused) > 0 {
		s.enough(at)
	}
	return nil
}
