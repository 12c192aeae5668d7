package run

import (
	"container/heap"
	"iter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
)

// Turns decides which environment is asked next for its next decision. An environment that waits
// is not asked again before its time has come or somebody has woken it: it stands for the
// controller, whose environments also go by the clock of the site.
//
// The run that let a host leave service longest ago, or was opened then, comes first. This
// follows from the log alone, so it is the same after any crash.
type Turns struct {
	// awake are the environments to ask, as a heap: the one whose turn it is comes first.
	awake queueOfTurns
	// asleep are the environments that wait for nothing but a time; zero for none. None of
	// these times is before soonest.
	asleep  map[*Environment]time.Time
	soonest time.Time
}

// Wake has environments asked again: a record has touched them (Ledger.Touched), or what the
// controller sees of them besides the log has changed.
func (t *Turns) Wake(environments ...*Environment) {
	for _, e := range environments {
		delete(t.asleep, e)
		t.awake.enter(e)
	}
}

// Until is when an environment has to be asked again that waits; zero for none.
func (t *Turns) Until() time.Time {
	if len(t.asleep) == 0 {
		return time.Time{}
	}
	return t.soonest
}

// Next asks each environment that is awake, or whose time has come, for its next decision. One
// that waits sleeps from then on; any other stays awake until it waits, so that a decision that
// could not be carried out is not forgotten. After a decision that was appended, the caller folds
// the record and begins anew.
func (t *Turns) Next(now time.Time, see func(*Environment) Seen) iter.Seq2[*Environment, Decision] {
	return func(yield func(*Environment, Decision) bool) {
		t.wakeDue(now)
		var busy []*Environment
		defer func() { t.Wake(busy...) }()
		for len(t.awake.heap) > 0 {
			e := t.awake.first()
			decision := e.Next(now, see(e))
			if decision.Act == Wait {
				t.sleep(e, decision.Until)
			} else {
				busy = append(busy, e)
			}
			if !yield(e, decision) {
				return
			}
		}
	}
}

func (t *Turns) sleep(e *Environment, until time.Time) {
	if t.asleep == nil {
		t.asleep = map[*Environment]time.Time{}
	}
	t.asleep[e] = until
	t.soonest = times.Sooner(t.soonest, until)
}

// wakeDue wakes the environments whose time has come.
func (t *Turns) wakeDue(now time.Time) {
	if t.soonest.IsZero() || now.Before(t.soonest) {
		return
	}
	t.soonest = time.Time{}
	for e, until := range t.asleep {
		if !until.IsZero() && !now.Before(until) {
			t.Wake(e)
			continue
		}
		t.soonest = times.Sooner(t.soonest, until)
	}
}

// queueOfTurns is a heap of environments by their turns, each once. Those without a run under
// way come first, and those with the same turn by name.
type queueOfTurns struct {
	heap []turn
	// places are where each environment stands in the heap.
	places map[*Environment]int
}

// turn is an environment and its turn when it entered.
type turn struct {
	*Environment
	at uint64
}

// enter has an environment stand where its turn is now.
func (q *queueOfTurns) enter(e *Environment) {
	if q.places == nil {
		q.places = map[*Environment]int{}
	}
	if i, waits := q.places[e]; waits {
		q.heap[i].at = e.Turn()
		heap.Fix(q, i)
		return
	}
	heap.Push(q, turn{e, e.Turn()})
}

// first takes out the environment whose turn it is.
func (q *queueOfTurns) first() *Environment {
	e, _ := heap.Pop(q).(turn)
	return e.Environment
}

// Len implements heap.Interface, as the following methods do.
func (q *queueOfTurns) Len() int { return len(q.heap) }

// Less puts the earliest turn first.
func (q *queueOfTurns) Less(i, j int) bool {
	a, b := q.heap[i], q.heap[j]
	return a.at < b.at || a.at == b.at && a.Name < b.Name
}

// Swap keeps the places.
func (q *queueOfTurns) Swap(i, j int) {
	q.heap[i], q.heap[j] = q.heap[j], q.heap[i]
	q.places[q.heap[i].Environment], q.places[q.heap[j].Environment] = i, j
}

// Push appends an environment.
func (q *queueOfTurns) Push(x any) {
	t, _ := x.(turn)
	q.places[t.Environment] = len(q.heap)
	q.heap = append(q.heap, t)
}

// Pop takes the last one.
func (q *queueOfTurns) Pop() any {
	last := q.heap[len(q.heap)-1]
	q.heap = q.heap[:len(q.heap)-1]
	delete(q.places, last.Environment)
	return last
}
