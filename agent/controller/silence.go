package controller

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// listen notes who has fallen silent.
func (s *state) listen(now time.Time) {
	s.wasAway(now)
	for _, name := range s.present.expire(now) {
		s.Logger.Warn("host is silent", "tenant", s.Tenant, "host", name, "for", message.Silence)
		s.suspect(name)
	}
}

// suspect has the next decision compare what the run says of a host with what
// is heard of it.
func (s *state) suspect(name string) { s.suspects[name] = true }

// suspectAll does so for all members of a run.
func (s *state) suspectAll(current *run.State) {
	for _, name := range current.Watched() {
		s.suspect(name)
	}
}

// silence returns the event that brings the run's view of its hosts up to
// date; false when it is.
func (s *state) silence(current *run.State) (message.Event, bool) {
	var gone, heard []string
	for name := range s.suspects {
		silent, matters := current.Silence(name)
		_, forgotten := s.forgotten[name]
		switch {
		case silent && s.present.online(name):
			heard = append(heard, name)
		case !forgotten && !silent && matters && !s.present.online(name):
			gone = append(gone, name)
		default:
			delete(s.suspects, name)
		}
	}
	for _, e := range []message.Event{
		{Event: message.Recovered, Reason: message.Heard, Hosts: heard},
		{Event: message.Silent, Hosts: gone},
	} {
		if len(e.Hosts) > 0 {
			return sortedHosts(e), true
		}
	}
	return message.Event{}, false
}

// gathered reports whether a controller that has just started knows enough of
// the run's hosts to go on: each was heard of, or is known to be silent. After
// a while those that were not heard of are silent (design.md 5, invariant 1).
func (s *state) gathered(current *run.State, now time.Time) bool {
	if s.settled || !now.Before(s.started.Add(settle)) {
		s.settled = true
		return true
	}
	for name := range s.suspects {
		silent, matters := current.Silence(name)
		if _, forgotten := s.forgotten[name]; matters && !silent && !forgotten && !s.present.online(name) {
			return false
		}
	}
	s.settled = true
	return true
}
