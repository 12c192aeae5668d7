package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"time"
)

// candidates are the hosts of a stage that may be admitted now.
type candidates struct {
	// order holds all hosts of the stage in the order in which they go.
	order []int
	// held has the positions in that order of the candidates that are out of service already,
	// since an earlier run, unheld those of the candidates that need a slot: one queue for each
	// list of cells that hosts have in common. So a decision looks at the first host of each list,
	// and a host that may not leave service holds up only those with the same cells.
	held   positions
	unheld []positions
}

// The queues in which a host may stand.
const (
	needsSlot = iota
	hasSlot
)

// newCandidates puts the hosts of a stage into order: as they were given, or by their
// hash. Hosts that are out of service since an earlier run go first, because their
// upgrade takes no other host out of service.
func newCandidates(members []member, first, size int, byHash bool, sets int) candidates {
	order := make([]int, size)
	for k := range order {
		order[k] = first + k
	}
	if byHash {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(members[a].hash, members[b].hash) })
	}
	held, free := make([]int, 0, size), make([]int, 0, size)
	for _, i := range order {
		if members[i].HasSlot() {
			held = append(held, i)
		} else {
			free = append(free, i)
		}
	}
	c := candidates{order: append(held, free...), unheld: make([]positions, sets)}
	for k, i := range c.order {
		members[i].position = k
	}
	return c
}

// regroup puts the candidates into queues anew, after their cells have changed.
func (c *candidates) regroup(members []member, sets int) {
	c.held, c.unheld = nil, make([]positions, sets)
	for _, i := range c.order {
		members[i].queued = [2]bool{}
		c.update(members, i)
	}
}

// queue returns a queue in which a host may stand.
func (c *candidates) queue(m *member, n int) *positions {
	if n == hasSlot {
		return &c.held
	}
	return &c.unheld[m.SetOf()]
}

// candidateQueue returns the queue in which the host belongs; false when the host is
// no candidate.
func (m *member) candidateQueue() (int, bool) {
	if m.HasSlot() {
		return hasSlot, m.isCandidate()
	}
	return needsSlot, m.isCandidate()
}

// update updates the queues after a host has become a candidate, is none any more,
// or belongs in the other queue.
func (c *candidates) update(members []member, i int) {
	if len(c.unheld) == 0 {
		return // Before prepare there are none.
	}
	m := &members[i]
	if n, ok := m.candidateQueue(); ok && !m.queued[n] {
		c.queue(m, n).push(m.position)
		m.queued[n] = true
	}
	for n := range m.queued {
		for q := c.queue(m, n); len(*q) > 0; {
			first := &members[c.order[(*q)[0]]]
			if of, ok := first.candidateQueue(); ok && of == n {
				break
			}
			first.queued[n] = false
			q.pop()
		}
	}
}

// firstHeld returns the first host that is out of service; false when there is none.
func (c *candidates) firstHeld() (int, bool) {
	if len(c.held) == 0 {
		return 0, false
	}
	return c.order[c.held[0]], true
}

// firstUnheld returns the first host that needs a slot and has cells that a test accepts, nil all;
// false when there is none.
func (c *candidates) firstUnheld(accepts func(set int) bool) (int, bool) {
	first := len(c.order)
	for set, q := range c.unheld {
		if len(q) > 0 && q[0] < first && (accepts == nil || accepts(set)) {
			first = q[0]
		}
	}
	if first == len(c.order) {
		return 0, false
	}
	return c.order[first], true
}

func (c *candidates) clone() candidates {
	clone := candidates{order: c.order, held: slices.Clone(c.held), unheld: make([]positions, len(c.unheld))}
	for set, q := range c.unheld {
		clone.unheld[set] = slices.Clone(q)
	}
	return clone
}

// positions is a heap of positions with lazy deletion: a host that is no candidate
// any more is removed when it reaches the top, and regains its old position when it
// is a candidate again. Each takes O(log n). Unlike container/heap it makes no value of
// each position for the garbage collector.
type positions []int

// push adds a position.
func (p *positions) push(position int) {
	q := append(*p, position)
	*p = q
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if q[parent] <= q[i] {
			return
		}
		q[parent], q[i] = q[i], q[parent]
		i = parent
	}
}

// pop removes the first position.
func (p *positions) pop() {
	q := *p
	last := len(q) - 1
	q[0], q = q[last], q[:last]
	*p = q
	for i := 0; 2*i+1 < last; {
		child := 2*i + 1
		if child+1 < last && q[child+1] < q[child] {
			child++
		}
		if q[i] <= q[child] {
			return
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
}

// hashOf is a random number of a host in a run, the same in each controller.
func hashOf(run uint64, host string) uint64 {
	sum := sha256.Sum256([]byte(strconv.FormatUint(run, 10) + "/" + host))
	return binary.BigEndian.Uint64(sum[:])
}

// share is the part of a span that a hash stands for; it grows with the hash.
func share(hash uint64, span time.Duration) time.Duration {
	part, _ := bits.Mul64(hash, uint64(span))
	return time.Duration(part)
}
