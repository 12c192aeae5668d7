package run

import (
	"container/heap"
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"
	"time"
)

// line holds the places of the hosts of a stage that may have their turn. It
// is a heap, because a host that is heard of again takes the place it had. One
// that may not go any more stays in it until it comes to the front, so that a
// step costs the same however many are silent.
type line []int

// Len implements heap.Interface.
func (l line) Len() int { return len(l) }

// Less implements heap.Interface.
func (l line) Less(i, j int) bool { return l[i] < l[j] }

// Swap implements heap.Interface.
func (l line) Swap(i, j int) { l[i], l[j] = l[j], l[i] }

// Push implements heap.Interface.
func (l *line) Push(place any) { *l = append(*l, place.(int)) } //nolint:forcetypeassert // only change pushes

// Pop implements heap.Interface.
func (l *line) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// change takes in that a host may go now, or may not any more.
func (l *line) change(s *State, i int) {
	m := &s.members[i]
	if m.mayGo() && !m.lined {
		heap.Push(l, m.place)
		m.lined = true
	}
	order := s.stages[m.stage].order
	for len(*l) > 0 && !s.members[order[(*l)[0]]].mayGo() {
		s.members[order[(*l)[0]]].lined = false
		heap.Pop(l)
	}
}

// upNext returns the host of the current stage whose turn is next; false when
// none can go.
func (s *State) upNext() (int, bool) {
	g := &s.stages[s.current]
	if len(g.line) == 0 {
		return 0, false
	}
	return g.order[g.line[0]], true
}

// draw is a host's lot in a run: by chance, and the same whoever draws it.
func draw(run uint64, host string) uint64 {
	sum := sha256.Sum256([]byte(strconv.FormatUint(run, 10) + "/" + host))
	return binary.BigEndian.Uint64(sum[:])
}

// share is the part of a span that a lot stands for; a lower lot never has
// more.
func share(lot uint64, span time.Duration) time.Duration {
	part, _ := bits.Mul64(lot, uint64(span))
	return time.Duration(part)
}
