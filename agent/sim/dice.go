package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// dice are the chance of a seed: one generator for each purpose, so that what
// one part of the world draws does not depend on when another one does.
type dice struct {
	seed      uint64
	mu        sync.Mutex
	byPurpose map[string]*rand.Rand
}

func newDice(seed uint64) *dice { return &dice{seed: seed, byPurpose: map[string]*rand.Rand{}} }

func (d *dice) of(purpose string) *rand.Rand {
	r := d.byPurpose[purpose]
	if r == nil {
		h := fnv.New64a()
		_, _ = h.Write([]byte(purpose))
		r = rand.New(rand.NewPCG(d.seed, h.Sum64()))
		d.byPurpose[purpose] = r
	}
	return r
}

// chance is true with a probability.
func (d *dice) chance(purpose string, p float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of(purpose).Float64() < p
}

// n is a number from 0 to below n.
func (d *dice) n(purpose string, n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.of(purpose).IntN(n)
}

// span is a length of time.
func (d *dice) span(purpose string, from, to time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return from + time.Duration(d.of(purpose).Int64N(int64(to-from)+1))
}

// one picks one of several.
func one[T any](d *dice, purpose string, of ...T) T { return of[d.n(purpose, len(of))] }
