package run

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
)

// Turns decides which environment is asked next for its next step. An environment that waits
// is not asked again before its time has come or somebody has woken it. It is no part of the
// fold: a controller that starts anew asks all.
//
// The run that let a host leave service longest ago, or was opened then, comes first. This
// follows from the log alone, so it is the same after any crash.
type Turns struct {
	awake map[*Environment]bool
	// asleep are the environments that wait for nothing but a time; zero for none. None of
	// these times is before soonest.
	asleep  map[*Environment]time.Time
	soonest time.Time
}

// Wake has environments asked again: a record has touched them (Ledger.Touched), or what the
// controller sees of them besides the log has changed.
func (t *Turns) Wake(environments ...*Environment) {
	if t.awake == nil {
		t.awake, t.asleep = map[*Environment]bool{}, map[*Environment]time.Time{}
	}
	for _, e := range environments {
		t.awake[e] = true
		delete(t.asleep, e)
	}
}

// Until is when an environment has to be asked again that waits; zero for none.
func (t *Turns) Until() time.Time {
	if len(t.asleep) == 0 {
		return time.Time{}
	}
	return t.soonest
}

// Next asks each environment that is awake, or whose time has come, for its next step. One
// that waits sleeps from then on; any other stays awake until it waits, so that a step that
// could not be carried out is not forgotten. After a step that was appended, the caller folds
// the record and begins anew.
func (t *Turns) Next(now time.Time, see func(*Environment) Seen) iter.Seq2[*Environment, Step] {
	return func(yield func(*Environment, Step) bool) {
		t.wakeDue(now)
		for _, e := range t.order() {
			step := e.Next(now, see(e))
			if step.Act == Wait {
				t.sleep(e, step.Until)
			}
			if !yield(e, step) {
				return
			}
		}
	}
}

func (t *Turns) sleep(e *Environment, until time.Time) {
	delete(t.awake, e)
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

// order returns the environments that are awake in the order of their turns: those without a
// run under way come last, by name.
func (t *Turns) order() []*Environment {
	order := make([]*Environment, 0, len(t.awake))
	for e := range t.awake {
		order = append(order, e)
	}
	slices.SortFunc(order, func(a, b *Environment) int {
		return cmp.Or(cmp.Compare(a.turn(), b.turn()), cmp.Compare(a.Name, b.Name))
	})
	return order
}

// noTurn comes after all turns.
const noTurn = ^uint64(0)

// turn is the record by which the run under way had its last turn: it let a host leave
// service, or was opened.
func (e *Environment) turn() uint64 {
	if e.Current() == nil {
		return noTurn
	}
	return cmp.Or(e.newest.TakenSeq, e.newest.OpenedSeq)
}
