package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// rng is the randomness of a seed. It has one generator for each purpose: what
// one part of the simulation draws does not depend on when another part draws.
type rng struct {
	seed      uint64
	mu        sync.Mutex
	byPurpose map[string]*rand.Rand
}

func newRNG(seed uint64) *rng { return &rng{seed: seed, byPurpose: map[string]*rand.Rand{}} }

func (r *rng) of(purpose string) *rand.Rand {
	source := r.byPurpose[purpose]
	if source == nil {
		h := fnv.New64a()
		_, _ = h.Write([]byte(purpose))
		source = rand.New(rand.NewPCG(r.seed, h.Sum64()))
		r.byPurpose[strings.Clone(purpose)] = source // A purpose that is put together stays on the stack.
	}
	return source
}

// chance is true with a probability.
func (r *rng) chance(purpose string, p float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(purpose).Float64() < p
}

// n is a number from 0 to below n.
func (r *rng) n(purpose string, n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of(purpose).IntN(n)
}

// span is a length of time.
func (r *rng) span(purpose string, from, to time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return from + time.Duration(r.of(purpose).Int64N(int64(to-from)+1))
}

// one picks one of several values.
func one[T any](r *rng, purpose string, of ...T) T { return of[r.n(purpose, len(of))] }
