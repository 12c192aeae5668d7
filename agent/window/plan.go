package window

import (
	"iter"
	"math"
	"time"
)

// Horizon is how far ahead of an instant Next and Frozen look. An event that
// happens more seldom, or later, is not seen from there.
const Horizon = 10 * 366 * day

// maxSeen is how many occurrences Next and Frozen look at: hundreds of freezes a
// day, for ever, shall not keep anybody busy for years of them.
const maxSeen = 100_000

// Plan is all that decides when a run may be under way. The zero value never
// opens.
type Plan struct {
	// Windows recur weekly.
	Windows []Window
	// Allow are the calendars whose events open like windows.
	Allow []Calendar
	// Freezes are the calendars whose events close: a freeze wins over every
	// window and every event that opens.
	Freezes []Calendar
	// Site is the location of site-local windows and events; nil means UTC.
	Site *time.Location
}

// Opening is a span in which a run may be under way.
//
// Its Start is its identity: any two instants of an opening have an opening with
// the same Start, whatever may change about its end. What a freeze leaves of a
// window before and after it are two openings, and so a run may be opened in
// each; Window tells that they belong together.
//
// Windows and events that overlap or touch open one window (AV-20), unless
// together they last for more than 7 days and 2 hours: then each of their
// starts begins a window, so that "every day at 00:00 for 24h" gives one a day
// and not one that never ends.
type Opening struct {
	Span
	// Window is the span as it would be without freezes.
	Window Span
	// Open are the occurrences that the span is made of, by start.
	Open []Occurrence
	// Cuts are the occurrences of freezes in the window, by start.
	Cuts []Occurrence
}

// StartMoved tells that the span would start earlier, had a change of the clock
// not skipped the time at which it was to start.
func (o Opening) StartMoved() bool {
	for _, occurrence := range o.Open {
		if occurrence.StartMoved && occurrence.Start.Equal(o.Start) {
			return true
		}
	}
	return false
}

// EndMoved tells that at the end of the span the clock shows another time than
// its start and its length make believe.
func (o Opening) EndMoved() bool {
	for _, occurrence := range o.Open {
		if occurrence.EndMoved && occurrence.End.Equal(o.End) {
			return true
		}
	}
	return false
}

// Current returns the opening that contains an instant, if there is one.
func (p Plan) Current(at time.Time) (Opening, bool) {
	for o := range p.Ahead(at, at.Add(1), 0) {
		if o.Contains(at) {
			return o, true
		}
	}
	return Opening{}, false
}

// Next returns the opening that contains an instant, or else the first one
// after it, if there is one within the horizon and the next 100,000 occurrences
// of windows, events and freezes. To learn what it would be
// without freezes, ask a plan without them.
func (p Plan) Next(at time.Time) (Opening, bool) {
	for o := range p.openings(at, at.Add(Horizon), maxSeen) {
		if o.overlaps(at, at.Add(Horizon)) {
			return o, true
		}
	}
	return Opening{}, false
}

// Ahead yields the openings that overlap the time between two instants, in their
// order: at most so many, or all if the count is 0. The memory that it takes
// does not depend on how far ahead it looks.
func (p Plan) Ahead(from, to time.Time, count int) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		found := 0
		for o := range p.openings(from, to, math.MaxInt) {
			if !o.overlaps(from, to) {
				continue
			}
			found++
			if !yield(o) || found == count {
				return
			}
		}
	}
}

// Frozen returns the freeze that is on at an instant, if there is one: the one
// that began first. Until is when it ends or, where others overlap or touch it,
// when the last of them does, as far as the horizon and 100,000 freezes.
func (p Plan) Frozen(at time.Time) (freeze Occurrence, until time.Time, ok bool) {
	feed := newFeed(p.Freezes, p.Site, at, minStep)
	o, ok := feed.before(at.Add(1))
	if !ok {
		return Occurrence{}, time.Time{}, false
	}
	freeze, until = o, o.End
	for last := at.Add(Horizon); ok && until.Before(last) && feed.seen <= maxSeen; o, ok = feed.before(until.Add(1)) {
		feed.drop()
		if o.End.After(until) {
			until = o.End
		}
	}
	return freeze, until, true
}
