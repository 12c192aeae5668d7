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

// rule is a recurrence (RFC 5545 3.3.10). It tests each date by itself, so it
// can begin at any date. A part that expands the recurrence and a part that
// limits it are then the same test. imply has added the parts that DTSTART
// implies.
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
	onTheMinute         bool // BYSECOND=0

	// start is the event's start, and began the number of the first day of the
	// week of start.
	start time.Time
	began int
	// times are the times of day of the starts, ascending.
	times []time.Duration
}

// weekday is a day of the week or, if nth is not 0, the nth such day of a month
// or year, counted from the end if negative.
type weekday struct {
	nth int
	day time.Weekday
}

// starts yields the starts of the rule from first to last, in order. The event's
// start is among them only if the rule yields it too. It returns false if yield
// did.
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

// every yields the starts of the rule without BYSETPOS, from one day to another.
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

// chosen yields the starts that BYSETPOS selects in each period.
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

// atMost estimates, from above, how many starts the rule has in a number of days.
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

// date is a date with its parts.
type date struct {
	// number counts the days since 1970.
	number  int
	year    int
	month   time.Month
	day     int
	weekday time.Weekday
}

// dayOf returns the number of the day of a wall-clock time.
func dayOf(wall time.Time) int {
	seconds := wall.Unix()
	number := seconds / 86400
	if seconds%86400 < 0 {
		number--
	}
	return int(number)
}

func dateOf(number int) date {
	d := date{number: number}
	midnight := d.midnight()
	d.year, d.month, d.day = midnight.Date()
	d.weekday = midnight.Weekday()
	return d
}

func (d date) midnight() time.Time { return time.Unix(int64(d.number)*86400, 0).UTC() }

// next returns the next date. Most are in the same month.
func (d date) next() date {
	if d.day >= 28 {
		return dateOf(d.number + 1)
	}
	d.number++
	d.day++
	d.weekday = (d.weekday + 1) % 7
	return d
}

func (d date) yearDay() int { return d.midnight().YearDay() }

// skip returns the next day that has may accept, if d lies in a period between
// two intervals or in a month that the rule does not name.
func (r *rule) skip(d date) (int, bool) {
	year, month := d.year, d.month
	switch {
	case r.frequency == yearly && (d.year-r.start.Year())%r.interval != 0:
		year, month = d.year+1, time.January
	case r.frequency == monthly && r.interval > 1 && r.monthsSince(d)%r.interval != 0, r.months&(1<<d.month) == 0:
		month++
	default:
		return 0, false
	}
	return dayOf(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)), true
}

func (r *rule) monthsSince(d date) int {
	year, month, _ := r.start.Date()
	return (d.year-year)*12 + int(d.month-month)
}

// has reports whether a date is a date of the rule. The date must lie in a month
// and period that skip does not skip.
func (r *rule) has(d date) bool {
	switch {
	case len(r.days) > 0 && !r.hasDay(d),
		r.frequency == daily && (d.number-dayOf(r.start))%r.interval != 0,
		r.frequency == weekly && (d.number-r.began)/7%r.interval != 0,
		len(r.monthDays) > 0 && !fromEitherEnd(r.monthDays, d.day, monthLength(d.year, d.month)),
		len(r.yearDays) > 0 && !fromEitherEnd(r.yearDays, d.yearDay(), yearLength(d.year)):
		return false
	}
	return len(r.weeks) == 0 || r.hasWeek(d)
}

// fromEitherEnd reports whether a list contains n, counted from 1 at the front
// or from -1 at the end.
func fromEitherEnd(list []int, n, length int) bool {
	return slices.Contains(list, n) || slices.Contains(list, n-length-1)
}

func (r *rule) hasDay(d date) bool {
	for _, w := range r.days {
		if w.day != d.weekday {
			continue
		}
		if w.nth == 0 {
			return true
		}
		n, length := d.day, monthLength(d.year, d.month)
		if r.frequency == yearly && r.months == everyMonth {
			n, length = d.yearDay(), yearLength(d.year)
		}
		if w.nth == (n-1)/7+1 || w.nth == -((length-n)/7+1) {
			return true
		}
	}
	return false
}

// hasWeek reports whether BYWEEKNO names the week of a date. Week 1 is the first
// week with at least four days in the year.
func (r *rule) hasWeek(d date) bool {
	year := d.year
	switch {
	case d.number < r.firstWeek(year):
		year--
	case d.number >= r.firstWeek(year+1):
		year++
	}
	begin, end := r.firstWeek(year), r.firstWeek(year+1)
	return fromEitherEnd(r.weeks, (d.number-begin)/7+1, (end-begin)/7)
}

// firstWeek returns the number of the first day of week 1 of a year, which is
// the week of 4 January.
func (r *rule) firstWeek(year int) int {
	fourth := time.Date(year, time.January, 4, 0, 0, 0, 0, time.UTC)
	return dayOf(fourth) - r.sinceWeekStart(fourth.Weekday())
}

func monthLength(year int, month time.Month) int {
	switch month {
	case time.February:
		return yearLength(year) - 337
	case time.April, time.June, time.September, time.November:
		return 30
	}
	return 31
}

func yearLength(year int) int {
	if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 366
	}
	return 365
}
