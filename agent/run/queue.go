package run

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// ticket is a host's place in a queue. It counts while the host has not moved
// on.
type ticket struct {
	host, move int
	since      time.Time
}

// queues hold the hosts of each step that somebody looks for, in the order in
// which they came to it. A host that has moved on leaves its ticket behind;
// it is dropped when it comes to the front, so that a step costs the same
// however many hosts there are.
type queues map[step][]ticket

// queued are the steps that have a queue: those with something to send, and
// those with a deadline.
var queued = map[step]bool{
	checkingBefore: true, ready: true, draining: true, drained: true, upgrading: true, rebootDue: true, rebooting: true,
	checkingAfter: true, undraining: true,
}

// front returns the host that is longest at a step; false when there is none.
func (s *State) front(at step) (int, bool) {
	if queue := s.queues[at]; len(queue) > 0 {
		return queue[0].host, true
	}
	return 0, false
}

// enter gives a host its place in the queue of a step.
func (s *State) enter(i int, from, to step, at time.Time) {
	m := &s.members[i]
	t := ticket{host: i, move: m.moves, since: at}
	switch {
	case to == undraining:
		if from == draining { // That comes to its end first, though nobody waits for it.
			t.since = later(at, m.takenAt.Add(s.taskLimit(message.Drain)))
		}
		s.queues[to] = slices.Insert(s.queues[to], s.placeOf(t), t)
	case to == ready && m.Held(): // It needs none, so nobody without may stand before it.
		s.queues[to] = slices.Insert(s.queues[to], 0, t)
	case queued[to]:
		s.queues[to] = append(s.queues[to], t)
	}
}

// placeOf is where a ticket stands in the queue of those that are undrained: of
// those whose drain has to end first, each has the later time.
func (s *State) placeOf(t ticket) int {
	queue := s.queues[undraining]
	i := len(queue)
	for i > 0 && queue[i-1].since.After(t.since) {
		i--
	}
	return i
}

// leave drops the tickets at the front of a step's queue that count no more.
func (s *State) leave(at step) {
	queue := s.queues[at]
	for len(queue) > 0 && !s.holds(queue[0]) {
		queue = queue[1:]
	}
	if len(queue) == 0 {
		delete(s.queues, at)
		return
	}
	s.queues[at] = queue
}

func (s *State) holds(t ticket) bool { return s.members[t.host].moves == t.move }

// all returns the names of the hosts at a step that came to it before a time;
// the zero time means all.
func (s *State) all(at step, before time.Time) []string {
	var names []string
	for _, t := range s.queues[at] {
		if !before.IsZero() && t.since.After(before) {
			break
		}
		if s.holds(t) {
			names = append(names, s.members[t.host].Name)
		}
	}
	return names
}
