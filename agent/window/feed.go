package window

import (
	"cmp"
	"slices"
	"time"
)

// A feed asks its calendars for a stretch of time after the other. A stretch is
// twice as long as the one before while it holds few occurrences, and half as
// long when it holds many.
const (
	// firstLook is how far ahead of an instant the first stretch reaches: mostly
	// it is enough to tell what is next.
	firstLook = 2 * day

	maxStep = 366 * day
	minStep = day
	few     = 128
	many    = 1024
)

// feed yields the occurrences of calendars that end after an instant, by start.
// It holds those of one stretch of time.
type feed struct {
	calendars []Calendar
	site      *time.Location
	started   bool
	// to is up to where the calendars have been asked.
	to   time.Time
	step time.Duration
	// chunk holds the occurrences of the stretch, and order their places in it,
	// by start: places are cheaper to sort.
	chunk []Occurrence
	order []int
	next  int
	// seen counts the occurrences of all stretches so far.
	seen int
}

// newFeed returns a feed whose first stretch has a length.
func newFeed(calendars []Calendar, site *time.Location, from time.Time, step time.Duration) *feed {
	return &feed{
		calendars: calendars, site: site, to: from, step: step,
		chunk: make([]Occurrence, 0, few/2), order: make([]int, 0, few/2),
	}
}

// before returns the next occurrence, if it starts before an instant.
func (f *feed) before(limit time.Time) (Occurrence, bool) {
	for f.next == len(f.order) {
		if len(f.calendars) == 0 || f.started && !f.to.Before(limit) {
			return Occurrence{}, false
		}
		f.fill()
	}
	o := f.chunk[f.order[f.next]]
	return o, o.Start.Before(limit)
}

// drop passes over the occurrence that before returned.
func (f *feed) drop() { f.next++ }

func (f *feed) fill() {
	from := f.to
	f.to = from.Add(f.step)
	f.chunk, f.order, f.next = f.chunk[:0], f.order[:0], 0
	for _, calendar := range f.calendars {
		for o := range calendar.Occurrences(f.site, from, f.to) {
			if !f.started || !o.Start.Before(from) {
				f.order = append(f.order, len(f.chunk))
				f.chunk = append(f.chunk, o)
			}
		}
	}
	slices.SortFunc(f.order, func(i, j int) int {
		a, b := &f.chunk[i], &f.chunk[j]
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End), cmp.Compare(i, j))
	})
	f.started = true
	f.seen += len(f.chunk)
	switch n := len(f.chunk); {
	case n < few:
		f.step = min(2*f.step, maxStep)
	case n > many:
		f.step = max(f.step/2, minStep)
	}
}
