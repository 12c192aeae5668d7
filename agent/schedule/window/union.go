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
			window, open, ok := windows.next(from, to)
			if !ok {
				return
			}
			left := freezes.leave(window)
			if windows.feed.seen+freezes.feed.seen > most {
				return
			}
			if len(left) == 0 {
				continue
			}
			cuts := freezes.cutting(window)
			for _, piece := range left {
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
	// taken are the occurrences of the union that end after the last window that
	// next returned, by start.
	taken []Occurrence
	// dividing is set while the union is longer than longest; the next part of
	// it begins at cursor, and taken[later:] start after cursor.
	dividing bool
	cursor   time.Time
	later    int
}

// next returns the next window that ends after from, and its occurrences, if
// the window starts before the limit.
func (u *unions) next(from, limit time.Time) (Span, []Occurrence, bool) {
	for {
		window, ok := u.window(limit)
		switch {
		case !ok:
			return Span{}, nil, false
		case window.End.After(from):
			return window, u.open(window), true
		}
	}
}

// window returns the span of the next window, if it starts before the limit.
func (u *unions) window(limit time.Time) (Span, bool) {
	switch {
	case !u.dividing && !u.begin(limit):
		return Span{}, false
	case !u.dividing:
		return u.union, true
	case !u.cursor.Before(limit):
		return Span{}, false
	}
	return u.part(), true
}

// begin takes occurrences that overlap or touch, until there is a gap or the
// union is longer than longest.
func (u *unions) begin(limit time.Time) bool {
	first, ok := u.feed.before(limit)
	u.union, u.taken, u.later = Span{Start: first.Start, End: first.Start}, nil, 0
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
	u.union.End = latest(u.union.End, o.End)
	return true
}

// part returns the part of the union from the cursor to the next start, or to
// the end of the union.
func (u *unions) part() Span {
	for u.later < len(u.taken) || u.take() {
		if start := u.taken[u.later].Start; start.After(u.cursor) {
			part := Span{Start: u.cursor, End: start}
			u.cursor = start
			return part
		}
		u.later++
	}
	u.dividing = false
	return Span{Start: u.cursor, End: u.union.End}
}

// open returns the occurrences of a window and drops those that end with it.
func (u *unions) open(window Span) []Occurrence {
	if window == u.union {
		return u.taken
	}
	open := within(u.taken, window)
	ended := func(o Occurrence) bool { return !o.End.After(window.End) }
	for _, o := range u.taken[:u.later] {
		if ended(o) {
			u.later--
		}
	}
	u.taken = slices.DeleteFunc(u.taken, ended)
	return open
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
// before. A window that is frozen as a whole costs no more than the freezes
// that begin since the window before, however many are in force.
type cutter struct {
	schedule Schedule
	feed     *feed
	// frozen is the union of the freezes that end after the start of the window.
	frozen []Span
	// taken are the freezes themselves, and some that have ended: they are
	// dropped when there are twice as many as limit.
	taken []Occurrence
	limit int
	// left is what leave returned last.
	left []Span
}

// leave returns the parts of a window that the freezes leave open, until the next
// call.
func (c *cutter) leave(window Span) []Span {
	if c.feed == nil {
		c.feed = newFeed(c.schedule.Freezes, c.schedule.Site, window.Start, window.Length())
	}
	for o, ok := c.feed.before(window.End); ok; o, ok = c.feed.before(window.End) {
		c.feed.drop()
		c.take(o)
	}
	ended := func(s Span) bool { return !s.End.After(window.Start) }
	c.frozen = slices.DeleteFunc(c.frozen, ended)
	if len(c.taken) > 2*c.limit+few {
		c.drop(window.Start)
	}
	c.left = pieces(c.left[:0], window, c.frozen)
	return c.left
}

func (c *cutter) take(o Occurrence) {
	c.taken = append(c.taken, o)
	if last := len(c.frozen) - 1; last >= 0 && !o.Start.After(c.frozen[last].End) {
		c.frozen[last].End = latest(c.frozen[last].End, o.End)
		return
	}
	c.frozen = append(c.frozen, o.Span)
}

// cutting returns the freezes in the window that leave saw last.
func (c *cutter) cutting(window Span) []Occurrence {
	c.drop(window.Start)
	return slices.Clone(c.taken)
}

// drop drops the freezes that ended by an instant.
func (c *cutter) drop(at time.Time) {
	c.taken = slices.DeleteFunc(c.taken, func(o Occurrence) bool { return !o.End.After(at) })
	c.limit = len(c.taken)
}

// pieces appends the parts of a window that disjoint spans, sorted by start,
// leave open.
func pieces(open []Span, window Span, frozen []Span) []Span {
	rest := window
	for _, f := range frozen {
		if f.Start.After(rest.Start) {
			open = append(open, Span{Start: rest.Start, End: f.Start})
		}
		rest.Start = latest(rest.Start, f.End)
		if !rest.End.After(rest.Start) {
			return open
		}
	}
	return append(open, rest)
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// A feed reads its calendars in chunks of time. The span of one doubles after a chunk of
// fewer than few occurrences, or after one that was mostly read for occurrences
// that an earlier chunk has: those of long events. It halves after a chunk of
// more than many.
const (
	// firstLook is how far ahead of an instant the first chunk reaches. Mostly
	// the next opening lies within it.
	firstLook = 2 * day

	maxSpan = 366 * day
	minSpan = day
	few     = 128
	many    = 1024
	// perCalendar is how many occurrences of a daily window the first chunk has at most, with the
	// one that has begun before it.
	perCalendar = 4
)

// feed yields the occurrences of several calendars that end after an instant, by
// start. It holds one chunk, the occurrences of one span.
type feed struct {
	calendars []Calendar
	site      *time.Location
	started   bool
	// to is the end of the time read so far.
	to   time.Time
	span time.Duration
	// order holds indexes into chunk, by start: sorting indexes is cheaper than
	// sorting occurrences.
	chunk []Occurrence
	order []int
	next  int
	// seen counts the occurrences of all chunks so far.
	seen int
}

// newFeed returns a feed whose first chunk has a given length.
func newFeed(calendars []Calendar, site *time.Location, from time.Time, span time.Duration) *feed {
	room := min(perCalendar*len(calendars), few/2)
	return &feed{
		calendars: calendars, site: site, to: from, span: span,
		chunk: make([]Occurrence, 0, room), order: make([]int, 0, room),
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
	f.to = from.Add(f.span)
	f.chunk, f.order, f.next = f.chunk[:0], f.order[:0], 0
	again := 0
	for _, calendar := range f.calendars {
		for o := range calendar.Occurrences(f.site, from, f.to) {
			if !f.started || !o.Start.Before(from) {
				f.order = append(f.order, len(f.chunk))
				f.chunk = append(f.chunk, o)
			} else {
				again++
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
	case n < few, n < again:
		f.span = min(2*f.span, maxSpan)
	case n > many:
		f.span = max(f.span/2, minSpan)
	}
}
