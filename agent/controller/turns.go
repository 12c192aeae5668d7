package controller

import (
	"iter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
)

// turn says when an environment is to be asked again for its next decision. One that waits sleeps
// until something has changed of it, or until its time has come: with many environments most
// records change nothing for most of them.
type turn struct {
	// awake tells that something may have changed since it was asked last.
	awake bool
	// dueAt is when it is to be asked again at the latest, by the clock of the site; ahead is how
	// far the clock of the runs was ahead of that then.
	dueAt time.Time
	ahead time.Duration
	// turnsAt is when time alone changes what is shown of it; zero when it does not, or when that was
	// not found out yet. timed tells that it was found out since it woke.
	turnsAt time.Time
	timed   bool
	// at is its turn (run.Environment.Turn).
	at uint64
}

// due is when the environment is to be asked again if the clock of the runs is ahead of that of
// the site by so much.
func (t *turn) due(ahead time.Duration) time.Time {
	at := times.Sooner(t.dueAt, t.turnsAt)
	if at.IsZero() || ahead <= t.ahead {
		return at
	}
	return at.Add(t.ahead - ahead)
}

// rouse has the environment asked again: something may have changed.
func (t *turn) rouse() { t.awake, t.timed, t.turnsAt = true, false, time.Time{} }

// sleep has the environment asked again at a time at the latest; zero for when something changes.
func (t *turn) sleep(until time.Time, ahead time.Duration) {
	t.awake, t.dueAt, t.ahead = false, until, ahead
}

// wakeAll has all environments asked again: something has changed that may concern any of them.
func (s *state) wakeAll() {
	for _, env := range s.inOrder {
		env.rouse()
	}
}

// wake has the environments asked again that a host belongs to, or whose run counts it.
func (s *state) wake(host string) {
	if known := s.hosts.known[host]; known != nil {
		s.environment(known.Environment).rouse()
	}
	s.lastOf(host).rouse()
}

// awake returns the environments that are to be asked now.
func (s *state) awake(now time.Time) []*environment {
	// Of a machine that was suspended, and of a clock that was set, no event tells.
	if len(s.environments) == 1 || now.Sub(s.wokenAt).Abs() >= longestSleep {
		s.wokenAt = now
		s.wakeAll()
	}
	ahead := s.clock.ahead(now)
	awake := make([]*environment, 0, len(s.inOrder))
	for _, env := range s.inOrder {
		if at := env.due(ahead); !at.IsZero() && !now.Before(at) {
			env.rouse()
		}
		if env.awake {
			awake = append(awake, env)
		}
	}
	return awake
}

// inTurn returns environments in the order of their turns (run.Environment.Turn), those with the same
// turn by name. Most often the first one takes a step, and no other is asked before its record: so the
// next one is looked for only when it is wanted. It puts the slice into another order.
func inTurn(awake []*environment) iter.Seq[*environment] {
	return func(yield func(*environment) bool) {
		left := awake // A heap: when all are asked, each is found without a look at all others.
		for n := len(left)/2 - 1; n >= 0; n-- {
			sink(left, n)
		}
		for len(left) > 0 {
			last := len(left) - 1
			left[0], left[last] = left[last], left[0]
			first := left[last]
			left = left[:last]
			sink(left, 0)
			if !yield(first) {
				return
			}
		}
	}
}

// sink moves an entry of a heap down to where it belongs.
func sink(heap []*environment, n int) {
	for {
		first := n
		for child := 2*n + 1; child <= 2*n+2 && child < len(heap); child++ {
			if heap[child].isBefore(heap[first]) {
				first = child
			}
		}
		if first == n {
			return
		}
		heap[n], heap[first] = heap[first], heap[n]
		n = first
	}
}

// isBefore reports whether an environment has its turn before another one.
func (e *environment) isBefore(other *environment) bool {
	return e.at < other.at || e.at == other.at && e.name < other.name
}

// nextDue is when the next environment that sleeps is to be asked again, or time alone changes
// what is shown of one.
func (s *state) nextDue(now time.Time) (at time.Time) {
	ahead := s.clock.ahead(now)
	for _, env := range s.inOrder {
		if env.awake { // What it waits for comes with a record, or after the pause.
			at = times.Sooner(at, env.turnsAt)
		} else {
			at = times.Sooner(at, env.due(ahead))
		}
	}
	return at
}
