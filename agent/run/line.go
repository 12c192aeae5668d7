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
func (l *line) Push(place any) { *l = append(*l, place.(int)) } //nolint:forcetypeassert // only lineUpAgain pushes

// Pop implements heap.Interface.
func (l *line) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}

// The lines of a stage: of those that need a slot, and of those that have one
// since a run before.
const (
	needy = iota
	holding
)

// lineOf returns the line in which the host may stand; false when in none.
func (m *member) lineOf() (int, bool) {
	if m.Held() {
		return holding, m.mayGo()
	}
	return needy, m.mayGo()
}

// lineUpAgain takes in that a host may go now, may not any more, or has another
// line.
func (s *State) lineUpAgain(i int) {
	m := &s.members[i]
	g := &s.stages[m.stage]
	if n, goes := m.lineOf(); goes && !m.lined[n] {
		heap.Push(&g.lines[n], m.place)
		m.lined[n] = true
	}
	for n := range g.lines {
		for l := &g.lines[n]; len(*l) > 0; {
			first := &s.members[g.order[(*l)[0]]]
			if of, goes := first.lineOf(); goes && of == n {
				break
			}
			first.lined[n] = false
			heap.Pop(l)
		}
	}
}

// upNext returns the host of the current stage whose turn is next; false when
// none can go. One that holds a slot goes first if it can go now.
func (s *State) upNext() (int, bool) {
	g := &s.stages[s.current]
	for _, n := range []int{holding, needy} {
		if l := g.lines[n]; len(l) > 0 {
			if i := g.order[l[0]]; n == needy || len(g.lines[needy]) == 0 || s.roomFor(i) {
				return i, true
			}
		}
	}
	return 0, false
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
