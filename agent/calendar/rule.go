package calendar

import (
	"cmp"
	"slices"
	"time"
)

type frequency int

const (
	daily frequency = iota
	weekly
	monthly
	yearly
)

// rule is a recurrence (RFC 5545 3.3.10). It asks of each date whether it is one
// of its own, so that it can be asked about any date at once. The parts of a
// rule that add dates and those that limit them are then alike; what DTSTART
// implies stands in them already.
type rule struct {
	frequency frequency
	interval  int
	count     int
	// until is the last wall-clock time that may be a start; zero means none.
	until     time.Time
	weekStart time.Weekday

	months              uint16 // bit 1 << time.Month
	monthDays, yearDays []int
	weeks               []int
	days                []weekday
	positions           []int
	hours, minutes      []int

	// start is the event's own, and began the number of the first day of its
	// week.
	start time.Time
	began int
	// times are the times of day of the starts, ascending.
	times []time.Duration
}

// weekday is a day of the week or, with a number, the nth of a month or year,
// from its end if negative.
type weekday struct {
	nth int
	day time.Weekday
}

// starts yields the starts from first to last, in order, without the event's
// own start unless the rule has it too. It returns false if yield did.
func (r *rule) starts(first, last time.Time, yield func(time.Time) bool) bool {
	if first.Before(r.start) {
		first = r.start
	}
	if !r.until.IsZero() && r.until.Before(last) {
		last = r.until
	}
	if last.Before(first) {
		return true
	}
	inside := func(wall time.Time) bool { return wall.Before(first) || wall.After(last) || yield(wall) }
	if len(r.positions) > 0 {
		return r.chosen(first, last, inside)
	}
	return r.every(dayOf(first), dayOf(last), inside)
}

// every yields what the rule yields but for its positions, from one day to
// another.
func (r *rule) every(first, last int, yield func(time.Time) bool) bool {
	for d := dateOf(first); d.number <= last; {
		if next, skip := r.skip(d); skip {
			d = dateOf(next)
			continue
		}
		if r.has(d) {
			midnight := d.midnight()
			for _, t := range r.times {
				if !yield(midnight.Add(t)) {
					return false
				}
			}
		}
		d = d.next()
	}
	return true
}

// chosen yields those of the starts in each period that have a position which
// the rule names (BYSETPOS).
func (r *rule) chosen(first, last time.Time, yield func(time.Time) bool) bool {
	for begin := r.period(first); !begin.After(last); {
		end := r.periodAfter(begin)
		var all []time.Time
		r.every(dayOf(begin), dayOf(end)-1, func(wall time.Time) bool {
			all = append(all, wall)
			return true
		})
		for i, wall := range all {
			chosen := slices.Contains(r.positions, i+1) || slices.Contains(r.positions, i-len(all))
			if chosen && !yield(wall) {
				return false
			}
		}
		begin = end
	}
	return true
}

// period returns the first date of the period around a wall-clock time.
func (r *rule) period(wall time.Time) time.Time {
	year, month, date := wall.Date()
	switch r.frequency {
	case yearly:
		return time.Date(year, time.January, 1, 0, 0, 0, 0, time.UTC)
	case monthly:
		return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	case weekly:
		return time.Date(year, month, date-r.sinceWeekStart(wall.Weekday()), 0, 0, 0, 0, time.UTC)
	default:
		return midnight(wall)
	}
}

func (r *rule) periodAfter(begin time.Time) time.Time {
	switch r.frequency {
	case yearly:
		return begin.AddDate(1, 0, 0)
	case monthly:
		return begin.AddDate(0, 1, 0)
	case weekly:
		return begin.AddDate(0, 0, 7)
	default:
		return begin.Add(day)
	}
}

func (r *rule) sinceWeekStart(w time.Weekday) int { return int(w-r.weekStart+7) % 7 }

// atMost is about how many times the rule happens at most in a number of days.
func (r *rule) atMost(days int) int {
	dates := days
	switch r.frequency {
	case daily:
		dates = days/r.interval + 1
	case weekly:
		dates = len(r.days) * (days/(7*r.interval) + 2)
	case monthly, yearly:
		if dense := slices.ContainsFunc(r.days, func(d weekday) bool { return d.nth == 0 }); !dense && len(r.weeks) == 0 {
			dates = (len(r.monthDays) + len(r.yearDays) + len(r.days)) * (days/28 + 2)
		}
	}
	return min(days, cmp.Or(dates, days)) * len(r.times)
}
