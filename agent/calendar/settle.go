package calendar

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// needless are the parts that RFC 5545 3.3.10 forbids with a frequency.
var needless = map[frequency][]string{
	daily:   {"BYWEEKNO", "BYYEARDAY"},
	weekly:  {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"},
	monthly: {"BYWEEKNO", "BYYEARDAY"},
}

var frequencyNames = map[frequency]string{daily: "DAILY", weekly: "WEEKLY", monthly: "MONTHLY", yearly: "YEARLY"}

// check finds parts that do not go together.
func (r *rule) check(given map[string]string, start stamp) error {
	has := func(name string) bool { return given[name] != "" }
	for _, name := range needless[r.frequency] {
		if has(name) {
			return fmt.Errorf("has %s, which does not go with FREQ=%s; use FREQ=YEARLY or leave it out", name, frequencyNames[r.frequency])
		}
	}
	numbered := slices.ContainsFunc(r.days, func(d weekday) bool { return d.nth != 0 })
	others := []string{"BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYDAY", "BYHOUR", "BYMINUTE"}
	switch {
	case has("COUNT") && has("UNTIL"):
		return errors.New("has both COUNT and UNTIL; use one of them")
	case numbered && (r.frequency < monthly || has("BYWEEKNO")):
		return errors.New("numbers a day where there is none to count; number days with FREQ=MONTHLY, or YEARLY without BYWEEKNO")
	case has("BYSETPOS") && !slices.ContainsFunc(others, has):
		return errors.New("has BYSETPOS with nothing to choose from; add a part such as BYDAY")
	case start.date && (has("BYHOUR") || has("BYMINUTE")):
		return errors.New("has a time of day, but the event lasts all day; leave out BYHOUR and BYMINUTE")
	case max(len(r.hours), 1)*max(len(r.minutes), 1) > maxTimes:
		return fmt.Errorf("happens %d times a day; use at most %d", len(r.hours)*max(len(r.minutes), 1), maxTimes)
	}
	return nil
}

// imply puts into the rule what the event's start implies.
func (r *rule) imply() {
	_, month, date := r.start.Date()
	dated := len(r.monthDays)+len(r.yearDays)+len(r.days)+len(r.weeks) > 0
	switch {
	case r.frequency == weekly && len(r.days) == 0, r.frequency == yearly && len(r.weeks) > 0 && len(r.days) == 0:
		r.days = []weekday{{day: r.start.Weekday()}}
	case r.frequency == monthly && !dated:
		r.monthDays = []int{date}
	case r.frequency == yearly && !dated:
		r.monthDays = []int{date}
		if r.months == everyMonth {
			r.months = 1 << month
		}
	}
	r.began = dayOf(r.start) - r.sinceWeekStart(r.start.Weekday())
	if len(r.hours) == 0 {
		r.hours = []int{r.start.Hour()}
	}
	if len(r.minutes) == 0 {
		r.minutes = []int{r.start.Minute()}
	}
	for _, hour := range r.hours {
		for _, minute := range r.minutes {
			r.times = append(r.times, time.Duration(hour)*time.Hour+time.Duration(minute)*time.Minute+
				time.Duration(r.start.Second())*time.Second)
		}
	}
}

// reach is how long after its start a rule must have happened again, and how
// far a count is counted. 29 February of every seventh year that is on a
// weekday is more seldom, and nobody's maintenance.
const reach = 60 * 366 * day

// settle turns a count into the start that is the last, since a count can be
// told only from the beginning; the event's own start is the first, whether the
// rule has it or not (RFC 5545 3.8.5.3). A rule that never happens is an error.
func (r *rule) settle(text string) error {
	if r.count == 1 {
		r.until = r.start
		return nil
	}
	counted := 1
	last := r.start
	r.starts(r.start.Add(1), r.start.Add(reach), func(wall time.Time) bool {
		counted++
		last = wall
		return counted < r.count
	})
	if counted == 1 && (r.until.IsZero() || r.until.Sub(r.start) > reach) {
		return fmt.Errorf("%s never happens in the 60 years after its start; check the dates that it names", quote(text))
	}
	if r.count > 0 {
		r.until = last
	}
	return nil
}
