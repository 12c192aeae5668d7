package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// outsider is a host that is no member of the run and may count as out of
// service nevertheless.
type outsider struct {
	message.Unwell
	// stage is the index of its stage, -1 when it has none and counts for none.
	stage int
	// slot tells that it is out of service since a run before, silent that it is
	// not heard of since silentAt, gone that it was deleted or released.
	slot, silent, gone bool
	silentAt           time.Time
}

func (o *outsider) out() bool { return o.slot || o.silent }

func (o *outsider) since() time.Time {
	if o.slot {
		return o.Since
	}
	return o.silentAt
}

// reason says why it counts as out of service; empty when it does not.
func (o *outsider) reason() string {
	switch {
	case o.slot:
		return notWell
	case o.silent:
		return "it is silent"
	}
	return ""
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
	for k := range s.outsiders {
		if o := &s.outsiders[k]; o.out() {
			all = append(all, Outsider{Name: o.Host, Slot: o.since(), SlotReason: o.reason()})
		}
	}
	return all
}

// Watched returns the hosts whose silence matters to the run: its members, and
// those aside.
func (s *State) Watched() []string {
	names := make([]string, 0, len(s.members)+len(s.outsiders))
	for i := range s.members {
		names = append(names, s.members[i].name)
	}
	for k := range s.outsiders {
		if s.outsiders[k].stage >= 0 {
			names = append(names, s.outsiders[k].Host)
		}
	}
	return names
}

// setAside makes the outsiders of a stage.
func (s *State) setAside(stage int, hosts []string) {
	for _, host := range hosts {
		s.outside[host] = len(s.outsiders)
		s.outsiders = append(s.outsiders, outsider{Unwell: message.Unwell{Host: host}, stage: stage})
	}
}

// outsider returns the outsider of a name; nil when there is none.
func (s *State) outsider(host string) *outsider {
	if k, known := s.outside[host]; known {
		return &s.outsiders[k]
	}
	return nil
}

// editOutsider changes an outsider and keeps right what is counted.
func (s *State) editOutsider(o *outsider, at time.Time, change func(*outsider)) {
	before := o.out()
	change(o)
	s.changed = at
	if o.stage < 0 || before == o.out() {
		return
	}
	if g := &s.stages[o.stage]; o.out() {
		g.out++
		g.outside++
	} else {
		g.out--
		g.outside--
	}
}

// happens takes in an event of an outsider, and reports whether it changes
// anything.
func (s *State) happens(o *outsider, e message.Event, at time.Time) bool {
	gone := e.Event == message.Released || e.Event == message.Recovered && e.Reason == message.Deleted
	switch {
	case gone && o.out():
		s.editOutsider(o, at, func(o *outsider) { o.slot, o.silent, o.gone = false, false, true })
	case e.Event == message.Recovered && e.Reason == message.Heard && o.silent:
		s.editOutsider(o, at, func(o *outsider) { o.silent = false })
	case e.Event == message.Silent && !o.silent && !o.gone && o.stage >= 0:
		s.editOutsider(o, at, func(o *outsider) { o.silent, o.silentAt = true, at })
	default:
		return false
	}
	return true
}
