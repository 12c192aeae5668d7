package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
)

// inherit notes that a host was out of service when the run before ended. A
// member does not owe what this run's policy has no hook or checks for.
func (s *State) inherit(u message.Unwell, at time.Time) {
	i := s.roster.Add(u.Host, roster.NoGroup)
	owes := u.Debt
	if owes.Look {
		owes.Answer = ""
	}
	if s.isMember(i) {
		owes.Undrain = owes.Undrain && s.policy.Hooks.Undrain != nil
		if len(s.task(owes.Checks).Checks) == 0 {
			owes.Checks = ""
		}
	}
	s.editHost(i, at, func(h *roster.Host) { h.Since, h.Before, h.Owes = u.Since, true, owes })
}

// others are the hosts of the roster that are no members.
func (s *State) others() []*roster.Host { return s.roster.From(len(s.members)) }

// whyOut says why a host that is no member is out of service.
func whyOut(h *roster.Host) string {
	if h.Held() {
		return roster.NotWell
	}
	return h.Reason()
}

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
			all = append(all, Outsider{Name: h.Name, Slot: h.OutSince(), SlotReason: whyOut(h)})
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

// HoldsSlot reports whether a host holds a slot after the end of the run.
func (s *State) HoldsSlot(host string) bool {
	i, known := s.roster.Index(host)
	return known && s.roster.Host(i).Held()
}

// Minds reports whether it matters to a run that a host is deleted: it waits
// for it, or counts it as out of service.
func (s *State) Minds(host string) bool {
	i, known := s.roster.Index(host)
	switch {
	case !known:
		return false
	case s.Over():
		return s.roster.Host(i).Held()
	}
	return s.roster.Host(i).Out() || s.isMember(i) && s.members[i].final == ""
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
		s.leaveBehind(s.indexOf(host), leftBehind(e), r.Time)
	}
	s.LastSeq = r.Seq
	return nil
}

// answeredAfter takes in that a host answers its last command, or the prepare,
// after the end of the run: it is at work no more.
func (s *State) answeredAfter(r message.Record) error {
	i, err := s.member(r.Host)
	known := err == nil
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
