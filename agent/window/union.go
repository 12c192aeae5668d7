package window

import (
	"slices"
	"time"
)

// longest is the length beyond which a union of occurrences is taken for one
// that never breaks: that of the longest window, and two hours for the changes
// of the clock.
const longest = MaxDuration + 2*time.Hour

// lookback is how long before an instant occurrences must be known, to tell
// whether the union around it is longer than the longest.
const lookback = longest

// unions makes windows of the occurrences of a feed, one after the other.
type unions struct {
	feed *feed
	// union is what the occurrences taken so far add up to.
	union Span
	// taken are the occurrences that count for the next window, by start.
	taken []Occurrence
	// breaking tells that the union is too long: its next part begins at cursor.
	breaking bool
	cursor   time.Time
}

// next returns the next window and the occurrences in it, if it starts before
// the limit.
func (u *unions) next(limit time.Time) (Span, []Occurrence, bool) {
	if !u.breaking && !u.begin(limit) {
		return Span{}, nil, false
	}
	if !u.breaking {
		return u.union, u.taken, true
	}
	if !u.cursor.Before(limit) {
		return Span{}, nil, false
	}
	part, open := u.part()
	return part, open, true
}

// begin takes occurrences that overlap or touch, until they break or are too
// long for one window.
func (u *unions) begin(limit time.Time) bool {
	first, ok := u.feed.before(limit)
	u.union, u.taken = Span{Start: first.Start, End: first.Start}, nil
	for ok && !u.breaking && u.take() {
		u.breaking = u.union.Length() > longest
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

// part returns the part of a union between the cursor and the next start, or
// the end.
func (u *unions) part() (Span, []Occurrence) {
	end, found := u.startAfter(u.cursor)
	if !found {
		end, u.breaking = u.union.End, false
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
