package window

import "time"

// Span is a stretch of time, in UTC: Start belongs to it, End does not.
type Span struct{ Start, End time.Time }

// Contains reports whether an instant lies in the span.
func (s Span) Contains(at time.Time) bool { return !at.Before(s.Start) && at.Before(s.End) }

// Length is how long the span lasts, in elapsed time.
func (s Span) Length() time.Duration { return s.End.Sub(s.Start) }

func (s Span) overlaps(from, to time.Time) bool { return s.Start.Before(to) && s.End.After(from) }

// Current returns the span that contains an instant, if there is one, when
// there are windows alone: see Plan.Current.
func Current(windows []Window, site *time.Location, at time.Time) (Span, bool) {
	opening, ok := Plan{Windows: windows, Site: site}.Current(at)
	return opening.Span, ok
}

// Next returns the span that contains an instant, or else the first one after
// it, when there are windows alone: see Plan.Next. There is one unless there
// are no windows.
func Next(windows []Window, site *time.Location, at time.Time) (Span, bool) {
	opening, ok := Plan{Windows: windows, Site: site}.Next(at)
	return opening.Span, ok
}
