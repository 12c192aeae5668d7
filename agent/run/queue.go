package run

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// ticket is a host in a queue. It is void once the host has moved on.
type ticket struct {
	host, move int
	since      time.Time
}

func (t ticket) isVoid(members []member) bool { return members[t.host].moves != t.move }

// queues hold the hosts at each step, in the order in which they came to it. A
// void ticket is removed when it reaches the front, so that the cost of a step does
// not depend on the number of hosts.
type queues map[step][]ticket

// queued are the steps that have a queue: those with something to send, and
// those with a deadline.
var queued = map[step]bool{
	checkingBefore: true, ready: true, draining: true, drained: true, upgrading: true, rebootDue: true, rebooting: true,
	checkingAfter: true, undraining: true,
}

// front returns the first host of the queue of a step; false when the queue is
// empty.
func (q queues) front(at step) (int, bool) {
	if queue := q[at]; len(queue) > 0 {
		return queue[0].host, true
	}
	return 0, false
}

// enter adds a host to the queue of a step.
func (s *State) enter(i int, from, to step, at time.Time) {
	m := &s.members[i]
	t := ticket{host: i, move: m.moves, since: at}
	switch {
	case to == undraining:
		if from == draining { // The drain hook ends first, though nobody waits for it.
			t.since = later(at, m.takenAt.Add(s.policy.taskLimit(message.Drain)))
		}
		s.queues[to] = slices.Insert(s.queues[to], s.queues.undrainIndex(t), t)
	case to == ready && m.Held(): // The host needs no slot, so it does not wait for one.
		s.queues[to] = slices.Insert(s.queues[to], 0, t)
	case queued[to]:
		s.queues[to] = append(s.queues[to], t)
	}
}

// undrainIndex is the index of a ticket in the queue of undraining, which is
// ordered by time: a host whose drain hook has to end first has a later time.
func (q queues) undrainIndex(t ticket) int {
	queue := q[undraining]
	i := len(queue)
	for i > 0 && queue[i-1].since.After(t.since) {
		i--
	}
	return i
}

// leave removes the void tickets at the front of the queue of a step.
func (q queues) leave(members []member, at step) {
	queue := q[at]
	for len(queue) > 0 && queue[0].isVoid(members) {
		queue = queue[1:]
	}
	if len(queue) == 0 {
		delete(q, at)
		return
	}
	q[at] = queue
}

// hosts returns the names of the hosts that came to a step before a time; the zero
// time means all hosts at the step.
func (q queues) hosts(members []member, at step, before time.Time) []string {
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

// positions is a heap of positions with lazy deletion: a host that is no candidate
// any more is removed when it reaches the top, and regains its old position when it
// is a candidate again. Each step is O(log n).
type positions []int

// Len implements heap.Interface.
func (l positions) Len() int { return len(l) }

// Less implements heap.Interface.
func (l positions) Less(i, j int) bool { return l[i] < l[j] }

// Swap implements heap.Interface.
func (l positions) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface.
func (l *positions) Push(position any) { *l = append(*l, position.(int)) } //nolint:forcetypeassert // only relist pushes

// Pop implements heap.Interface.
func (l *positions) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// The lists of candidates of a stage: hosts that need a slot, and hosts that are out
// of service already, since an earlier run.
const (
	needsSlot = iota
	hasSlot
)

// candidateList returns the list in which the host belongs; false when the host is no
// candidate.
func (m *member) candidateList() (int, bool) {
	if m.Held() {
		return hasSlot, m.mayGo()
	}
	return needsSlot, m.mayGo()
}

// relist updates the lists after a host has become a candidate, is none any more,
// or belongs in the other list.
func (s *State) relist(i int) {
	m := &s.members[i]
	g := &s.stages[m.Group]
	if n, goes := m.candidateList(); goes && !m.listed[n] {
		heap.Push(&g.candidates[n], m.position)
		m.listed[n] = true
	}
	for n := range g.candidates {
		for l := &g.candidates[n]; len(*l) > 0; {
			first := &s.members[g.order[(*l)[0]]]
			if of, goes := first.candidateList(); goes && of == n {
				break
			}
			first.listed[n] = false
			heap.Pop(l)
		}
	}
}

// firstCandidate returns the candidate of the current stage that goes next; false
// when there is none. A host that is out of service goes first, if there is room for
// it now.
func (s *State) firstCandidate() (int, bool) {
	g := &s.stages[s.current]
	for _, n := range []int{hasSlot, needsSlot} {
		if l := g.candidates[n]; len(l) > 0 {
			if i := g.order[l[0]]; n == needsSlot || len(g.candidates[needsSlot]) == 0 || s.roomFor(i) {
				return i, true
			}
		}
	}
	return 0, false
}

// draw is the lot of a host in a run: random, and the same in each controller.
func draw(run uint64, host string) uint64 {
	sum := sha256.Sum256([]byte(strconv.FormatUint(run, 10) + "/" + host))
	return binary.BigEndian.Uint64(sum[:])
}

// share is the part of a span that a lot stands for; it grows with the lot.
func share(lot uint64, span time.Duration) time.Duration {
	part, _ := bits.Mul64(lot, uint64(span))
	return time.Duration(part)
}
