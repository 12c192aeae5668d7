package window

import "time"

// Span is a stretch of time, in UTC: Start belongs to it, End does not.
type Span struct{ Start, End time.Time }

// Contains reports whether an instant lies in the span.
func (s Span) Contains(at time.Time) bool { return !at.Before(s.Start) && at.Before(s.End) }

// longest is the length beyond which a union of occurrences is taken for one
// that never breaks: that of the longest window, and two hours for the changes
// of the clock.
const longest = MaxDuration + 2*time.Hour

// Current returns the span that contains an instant, if there is one. Site is
// the location of site-local windows; nil means UTC.
//
// Occurrences that overlap or touch are one span (AV-20), unless together they
// last for more than 7 days and 2 hours: then each of their starts begins a
// span, so that "every day at 00:00 for 24h" gives one span a day and not one
// that never ends. Any two instants of a span have the same span.
func Current(windows []Window, site *time.Location, at time.Time) (Span, bool) {
	return current(occurrences(windows, site, at), at)
}

// Next returns the span that contains an instant, or else the first one after
// it, if there is one: there is unless there are no windows.
func Next(windows []Window, site *time.Location, at time.Time) (Span, bool) {
	spans := occurrences(windows, site, at)
	if span, ok := current(spans, at); ok {
		return span, true
	}
	for _, s := range spans {
		if s.Start.After(at) {
			return Current(windows, site, s.Start)
		}
	}
	return Span{}, false
}

func current(spans []Span, at time.Time) (Span, bool) {
	union, ok := unionAt(spans, at)
	if ok && union.End.Sub(union.Start) > longest {
		union = cut(spans, union, at)
	}
	return union, ok
}

// unionAt merges the spans that overlap or touch, and returns the union that
// contains an instant. The spans are sorted by start.
func unionAt(spans []Span, at time.Time) (Span, bool) {
	var union Span
	for i, s := range spans {
		switch {
		case i == 0 || s.Start.After(union.End):
			if union.Contains(at) {
				return union, true
			}
			union = s
		case s.End.After(union.End):
			union.End = s.End
		}
	}
	return union, union.Contains(at)
}

// cut returns the part of a union around an instant that is between two starts,
// or between the last start and the end. The union may reach beyond the
// horizon; this part cannot, since no occurrence is longer than a week.
func cut(spans []Span, union Span, at time.Time) Span {
	part := union
	for _, s := range spans {
		if s.Start.After(at) {
			if s.Start.Before(part.End) {
				part.End = s.Start
			}
			break
		}
		part.Start = s.Start
	}
	return part
}
