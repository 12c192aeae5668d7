package window

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

// longest is the longest union of occurrences that counts as one window: the
// longest window, and two hours for the changes of the clock. A longer union is
// divided at each start in it.
const longest = MaxDuration + 2*time.Hour

// lookback is how long before an instant occurrences are collected. A shorter
// time would not tell whether the union around the instant exceeds longest.
const lookback = longest

// openings yields the openings that start before to: those of each window that
// ends after from. It stops after examining most occurrences.
func (s Schedule) openings(from, to time.Time, most int) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		begin := from.Add(-lookback)
		windows := unions{feed: newFeed(s.opening(), s.Site, begin, lookback+firstLook)}
		freezes := cutter{schedule: s}
		for {
			window, open, ok := windows.next(to)
			if !ok {
				return
			}
			if !window.End.After(from) {
				continue
			}
			cuts := freezes.of(window)
			if windows.feed.seen+freezes.feed.seen > most {
				return
			}
			for piece := range pieces(window, cuts) {
				if !yield(Opening{Span: piece, Window: window, Open: within(open, piece), Cuts: cuts}) {
					return
				}
			}
		}
	}
}

// opening returns the calendars that open: each window as one, and Allow.
func (s Schedule) opening() []Calendar {
	all := make([]Calendar, 0, len(s.Windows)+len(s.Allow))
	for i, w := range s.Windows {
		all = append(all, weekly{Window: w, origin: Origin{Index: i}})
	}
	return append(all, s.Allow...)
}

// unions joins the occurrences of a feed to windows, by start.
type unions struct {
	feed *feed
	// union is the span of the occurrences taken so far.
	union Span
	// taken are the occurrences of the next window, by start.
	taken []Occurrence
	// dividing is set while the union is longer than longest; the next part of
	// it begins at cursor.
	dividing bool
	cursor   time.Time
}

// next returns the next window and its occurrences, if the window starts before
// the limit.
func (u *unions) next(limit time.Time) (Span, []Occurrence, bool) {
	if !u.dividing && !u.begin(limit) {
		return Span{}, nil, false
	}
	if !u.dividing {
		return u.union, u.taken, true
	}
	if !u.cursor.Before(limit) {
		return Span{}, nil, false
	}
	part, open := u.part()
	return part, open, true
}

// begin takes occurrences that overlap or touch, until there is a gap or the
// union is longer than longest.
func (u *unions) begin(limit time.Time) bool {
	first, ok := u.feed.before(limit)
	u.union, u.taken = Span{Start: first.Start, End: first.Start}, nil
	for ok && !u.dividing && u.take() {
		u.dividing = u.union.Length() > longest
	}
	u.cursor = u.union.Start
	return ok
}

// take takes the next occurrence, if it overlaps or touches the union.
func (u *unions) take() bool {
	o, ok := u.feed.before(u.union.End.Add(1))
	if !ok {
		return false
	}
	u.feed.drop()
	u.taken = append(u.taken, o)
	if o.End.After(u.union.End) {
		u.union.End = o.End
	}
	return true
}

// part returns the part of the union from the cursor to the next start, or to
// the end of the union.
func (u *unions) part() (Span, []Occurrence) {
	end, found := u.startAfter(u.cursor)
	if !found {
		end, u.dividing = u.union.End, false
	}
	part := Span{Start: u.cursor, End: end}
	open := within(u.taken, part)
	u.cursor = end
	u.taken = slices.DeleteFunc(u.taken, func(o Occurrence) bool { return !o.End.After(end) })
	return part, open
}

func (u *unions) startAfter(at time.Time) (time.Time, bool) {
	for _, o := range u.taken {
		if o.Start.After(at) {
			return o.Start, true
		}
	}
	for u.take() {
		if o := u.taken[len(u.taken)-1]; o.Start.After(at) {
			return o.Start, true
		}
	}
	return time.Time{}, false
}

// within returns the occurrences that overlap a span.
func within(all []Occurrence, s Span) []Occurrence {
	var some []Occurrence
	for _, o := range all {
		if o.overlaps(s.Start, s.End) {
			some = append(some, o)
		}
	}
	return some
}

// cutter finds the freezes in windows. Each window must start after the window
// before.
type cutter struct {
	schedule Schedule
	feed     *feed
	taken    []Occurrence
}

func (c *cutter) of(window Span) []Occurrence {
	if c.feed == nil {
		c.feed = newFeed(c.schedule.Freezes, c.schedule.Site, window.Start, window.Length())
	}
	for {
		o, ok := c.feed.before(window.End)
		if !ok {
			break
		}
		c.feed.drop()
		c.taken = append(c.taken, o)
	}
	c.taken = slices.DeleteFunc(c.taken, func(o Occurrence) bool { return !o.End.After(window.Start) })
	return slices.Clone(c.taken)
}

// pieces yields the parts of a window that freezes, sorted by start, leave open.
func pieces(window Span, freezes []Occurrence) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		rest := window
		for _, f := range freezes {
			if f.Start.After(rest.Start) && !yield(Span{Start: rest.Start, End: f.Start}) {
				return
			}
			if f.End.After(rest.Start) {
				rest.Start = f.End
			}
			if !rest.End.After(rest.Start) {
				return
			}
		}
		yield(rest)
	}
}

// A feed reads its calendars in steps of time. The step doubles after a chunk of
// fewer than few occurrences and halves after a chunk of more than many.
const (
	// firstLook is how far ahead of an instant the first step reaches. Mostly
	// the next opening lies within it.
	firstLook = 2 * day

	maxStep = 366 * day
	minStep = day
	few     = 128
	many    = 1024
)

// feed yields the occurrences of several calendars that end after an instant, by
// start. It holds one chunk, the occurrences of one step.
type feed struct {
	calendars []Calendar
	site      *time.Location
	started   bool
	// to is the end of the time read so far.
	to   time.Time
	step time.Duration
	// order holds indexes into chunk, by start: sorting indexes is cheaper than
	// sorting occurrences.
	chunk []Occurrence
	order []int
	next  int
	// seen counts the occurrences of all chunks so far.
	seen int
}

// newFeed returns a feed whose first step has a given length.
func newFeed(calendars []Calendar, site *time.Location, from time.Time, step time.Duration) *feed {
	return &feed{
		calendars: calendars, site: site, to: from, step: step,
		chunk: make([]Occurrence, 0, few/2), order: make([]int, 0, few/2),
	}
}

// before returns the next occurrence, if it starts before the limit.
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

// drop removes the occurrence that before returned.
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
