package window

import (
	"iter"
	"slices"
	"time"
)

// openings yields the openings of all windows that start before an instant, from
// before or around another one on. It stops when that takes more than so many
// occurrences.
func (p Plan) openings(from, to time.Time, most int) iter.Seq[Opening] {
	return func(yield func(Opening) bool) {
		begin := from.Add(-lookback)
		windows := unions{feed: newFeed(p.opening(), p.Site, begin, lookback+firstLook)}
		freezes := cutter{plan: p}
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

// opening returns all that opens.
func (p Plan) opening() []Calendar {
	all := make([]Calendar, 0, len(p.Windows)+len(p.Allow))
	for i, w := range p.Windows {
		all = append(all, weekly{Window: w, source: Source{Index: i}})
	}
	return append(all, p.Allow...)
}

// cutter finds the freezes in windows, of which each is later than the one
// before.
type cutter struct {
	plan  Plan
	feed  *feed
	taken []Occurrence
}

func (c *cutter) of(window Span) []Occurrence {
	if c.feed == nil {
		c.feed = newFeed(c.plan.Freezes, c.plan.Site, window.Start, window.Length())
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

// pieces yields what freezes, sorted by start, leave of a window.
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
