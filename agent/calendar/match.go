package calendar

import (
	"slices"
	"time"
)

// date is a date taken apart.
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

// skip returns the number of the next day worth a look, if that is not this one:
// the periods between two intervals and the months that the rule does not name
// pass at once.
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

// has reports whether a date is one of the rule's, in a month and period that
// skip lets pass.
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

// fromEitherEnd reports whether a list names a number, counted from the front
// or, negative, from the end.
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

// hasWeek reports whether the rule names the week of a date. Week 1 is the first
// with at least four days in its year.
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

// firstWeek returns the number of the first day of week 1 of a year: of the week
// that has 4 January in it.
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
