package run

import (
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
)

// ticket is a host in a queue. It is void once the host has moved on.
type ticket struct {
	host, move int
	since      time.Time
}

func (t ticket) isVoid(members []member) bool { return members[t.host].moves != t.move }

// queues hold the hosts in each phase, in the order in which they came to it. A
// void ticket is removed when it reaches the front, so that the cost of a decision does
// not depend on the number of hosts.
type queues [done + 1][]ticket

// queued are the phases that have a queue: those with something to send, and
// those with a deadline.
var queued = [done + 1]bool{
	checkingBefore: true, ready: true, draining: true, drained: true, upgrading: true, rebootDue: true, rebooting: true,
	checkingAfter: true, undraining: true,
}

// front returns the first host of the queue of a phase; false when the queue is
// empty.
func (q *queues) front(at hostPhase) (int, bool) {
	if queue := q[at]; len(queue) > 0 {
		return queue[0].host, true
	}
	return 0, false
}

// enter adds a host to the queue of its phase, where it is since a time.
func (q *queues) enter(members []member, i int, since time.Time) {
	m := &members[i]
	t := ticket{host: i, move: m.moves, since: since}
	switch at := m.phase; {
	case at == undraining:
		q[at] = slices.Insert(q[at], q.undrainIndex(t), t)
	case at == ready && m.HasSlot(): // The host needs no slot, so it does not wait for one.
		q[at] = slices.Insert(q[at], 0, t)
	case queued[at]:
		q[at] = append(q[at], t)
	}
}

// undrainIndex is the index of a ticket in the queue of undraining, which is
// ordered by time: a host whose drain hook has to end first has a later time.
func (q *queues) undrainIndex(t ticket) int {
	queue := q[undraining]
	i := len(queue)
	for i > 0 && queue[i-1].since.After(t.since) {
		i--
	}
	return i
}

// leave removes the void tickets at the front of the queue of a phase.
func (q *queues) leave(members []member, at hostPhase) {
	queue := q[at]
	for len(queue) > 0 && queue[0].isVoid(members) {
		queue = queue[1:]
	}
	if len(queue) == 0 {
		queue = q[at][:0] // The next host reuses its room.
	}
	q[at] = queue
}

// hosts returns the names of the hosts that came to a phase before a time; the zero
// time means all hosts in the phase.
func (q *queues) hosts(members []member, at hostPhase, before time.Time) []string {
	var names []string
	for _, t := range q[at] {
		if !before.IsZero() && t.since.After(before) {
			break
		}
		if !t.isVoid(members) {
			names = append(names, members[t.host].Name)
		}
	}
	return names
}

// setBack follows the log's clock that was set back.
func (q *queues) setBack(now time.Time) {
	for _, queue := range q {
		for i := range queue {
			queue[i].since = times.Earlier(queue[i].since, now)
		}
	}
}
