package calendar

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
)

// The limits of a rule.
const (
	maxRule     = 1000 // bytes
	maxInterval = 1000
	maxCount    = 10_000
	// maxTimes is the largest number of starts on one day.
	maxTimes = 48
)

const everyMonth = 1<<13 - 2

var frequencies = map[string]frequency{"DAILY": daily, "WEEKLY": weekly, "MONTHLY": monthly, "YEARLY": yearly}

// tooFine are the frequencies of RFC 5545 that a maintenance calendar refuses.
var tooFine = []string{"SECONDLY", "MINUTELY", "HOURLY"}

// parts maps each part of a rule to its parser. parseRule parses UNTIL after the
// others, because it needs the event's start.
var parts = map[string]func(*rule, string) error{
	"FREQ":       (*rule).readFrequency,
	"INTERVAL":   func(r *rule, v string) (err error) { r.interval, err = number(v, 1, maxInterval); return },
	"COUNT":      func(r *rule, v string) (err error) { r.count, err = number(v, 1, maxCount); return },
	"WKST":       func(r *rule, v string) (err error) { r.weekStart, err = readWeekday(v); return },
	"BYMONTH":    (*rule).readMonths,
	"BYMONTHDAY": func(r *rule, v string) (err error) { r.monthDays, err = numbers(v, -31, 31); return },
	"BYYEARDAY":  func(r *rule, v string) (err error) { r.yearDays, err = numbers(v, -366, 366); return },
	"BYWEEKNO":   func(r *rule, v string) (err error) { r.weeks, err = numbers(v, -53, 53); return },
	"BYSETPOS":   func(r *rule, v string) (err error) { r.positions, err = numbers(v, -366, 366); return },
	"BYDAY":      (*rule).readDays,
	"BYHOUR":     func(r *rule, v string) (err error) { r.hours, err = times(v, 23); return },
	"BYMINUTE":   func(r *rule, v string) (err error) { r.minutes, err = times(v, 59); return },
	"BYSECOND":   (*rule).readSecond,
	"UNTIL":      func(*rule, string) error { return nil },
}

// parseRule parses the recurrence rule of an event with a given start.
func parseRule(text string, start dateTime) (*rule, error) {
	r := &rule{interval: 1, weekStart: time.Monday, months: everyMonth, start: start.wall}
	if len(text) > maxRule {
		return nil, fmt.Errorf("%s is too long for a rule; use at most %d bytes", quote(text), maxRule)
	}
	given, err := splitRule(text)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := parts[name](r, given[name]); err != nil {
			return nil, fmt.Errorf("%s of %s %w", name+"="+shorten(given[name]), quote(text), err)
		}
	}
	if err := r.check(given, start); err != nil {
		return nil, fmt.Errorf("%s %w", quote(text), err)
	}
	if until, ok := given["UNTIL"]; ok {
		if r.until, err = untilOf(until, start); err != nil {
			return nil, fmt.Errorf("UNTIL=%s of %s %w", shorten(until), quote(text), err)
		}
	}
	r.imply()
	return r, r.resolveCount(text)
}

// splitRule splits a rule into its parts. Order and case do not matter.
func splitRule(text string) (map[string]string, error) {
	const form = "use parts such as FREQ=YEARLY;BYMONTH=12"
	given := map[string]string{}
	for part := range strings.SplitSeq(strings.ToUpper(text), ";") {
		name, value, ok := strings.Cut(part, "=")
		if _, twice := given[name]; twice {
			return nil, fmt.Errorf("%s has %s twice; give each part once", quote(text), shorten(name))
		}
		if !ok || value == "" {
			return nil, fmt.Errorf("%s is not a recurrence rule; %s", quote(text), form)
		}
		if _, known := parts[name]; !known {
			if closest, ok := window.Closest(name, slices.Sorted(maps.Keys(parts))); ok {
				return nil, fmt.Errorf("%s has the part %s, which is not known; did you mean %s?", quote(text), shorten(name), closest)
			}
			return nil, fmt.Errorf("%s has the part %s, which is not known; %s", quote(text), shorten(name), form)
		}
		given[name] = value
	}
	if given["FREQ"] == "" {
		return nil, fmt.Errorf("%s has no FREQ; add FREQ=DAILY, WEEKLY, MONTHLY or YEARLY", quote(text))
	}
	return given, nil
}

func (r *rule) readFrequency(text string) error {
	const form = "use DAILY, WEEKLY, MONTHLY or YEARLY"
	var ok bool
	if r.frequency, ok = frequencies[text]; ok {
		return nil
	}
	if slices.Contains(tooFine, text) {
		return errors.New("is finer than a maintenance calendar goes; " + form)
	}
	if closest, ok := window.Closest(text, slices.Sorted(maps.Keys(frequencies))); ok {
		return fmt.Errorf("is not a frequency; did you mean %s?", closest)
	}
	return errors.New("is not a frequency; " + form)
}

// readSecond accepts the second at which a minute begins, which some programs
// write out.
func (r *rule) readSecond(text string) error {
	if text != "0" {
		return errors.New("is finer than a maintenance calendar goes; leave it out")
	}
	r.onTheMinute = true
	return nil
}

func (r *rule) readMonths(text string) error {
	list, err := numbers(text, 1, 12)
	r.months = 0
	for _, month := range list {
		r.months |= 1 << month
	}
	return err
}

func (r *rule) readDays(text string) error {
	for item := range strings.SplitSeq(text, ",") {
		name := strings.TrimLeft(item, "+-0123456789")
		w := weekday{}
		var err error
		if nth := strings.TrimSuffix(item, name); nth != "" {
			if w.nth, err = number(nth, -53, 53); err == nil && w.nth == 0 {
				err = errors.New("has a day number 0; count from 1, or from the end from -1")
			}
		}
		if err != nil {
			return err
		}
		if w.day, err = readWeekday(name); err != nil {
			return err
		}
		r.days = append(r.days, w)
	}
	return nil
}

var weekdays = map[string]time.Weekday{
	"SU": time.Sunday, "MO": time.Monday, "TU": time.Tuesday, "WE": time.Wednesday,
	"TH": time.Thursday, "FR": time.Friday, "SA": time.Saturday,
}

func readWeekday(text string) (time.Weekday, error) {
	if w, ok := weekdays[text]; ok {
		return w, nil
	}
	return 0, fmt.Errorf("has %s, which is not a day; use MO, TU, WE, TH, FR, SA or SU", quote(text))
}

// times parses numbers from 0 up.
func times(text string, most int) ([]int, error) {
	var list []int
	for item := range strings.SplitSeq(text, ",") {
		n, err := number(item, 0, most)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// numbers parses numbers other than 0.
func numbers(text string, least, most int) ([]int, error) {
	var list []int
	for item := range strings.SplitSeq(text, ",") {
		n, err := number(item, least, most)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, errors.New("has a 0; count from 1, or from the end from -1")
		}
		list = append(list, n)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

func number(text string, least, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("has %s, which is not a number; use %d to %d", quote(text), least, most)
	}
	if n < least || n > most {
		return 0, fmt.Errorf("has %d, which is out of range; use %d to %d", n, least, most)
	}
	return n, nil
}

// forbidden are the parts that RFC 5545 3.3.10 forbids with a frequency.
var forbidden = map[frequency][]string{
	daily:   {"BYWEEKNO", "BYYEARDAY"},
	weekly:  {"BYWEEKNO", "BYYEARDAY", "BYMONTHDAY"},
	monthly: {"BYWEEKNO", "BYYEARDAY"},
}

var frequencyNames = map[frequency]string{daily: "DAILY", weekly: "WEEKLY", monthly: "MONTHLY", yearly: "YEARLY"}

// check finds parts that do not fit together.
func (r *rule) check(given map[string]string, start dateTime) error {
	has := func(name string) bool { return given[name] != "" }
	for _, name := range forbidden[r.frequency] {
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
	case start.date && (has("BYHOUR") || has("BYMINUTE") || has("BYSECOND")):
		return errors.New("has a time of day, but the event lasts all day; leave out BYHOUR, BYMINUTE and BYSECOND")
	case max(len(r.hours), 1)*max(len(r.minutes), 1) > maxTimes:
		return fmt.Errorf("happens %d times a day; use at most %d", len(r.hours)*max(len(r.minutes), 1), maxTimes)
	}
	return nil
}

// imply adds the parts that the event's start implies.
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
	second := time.Duration(r.start.Second()) * time.Second
	if r.onTheMinute {
		second = 0
	}
	for _, hour := range r.hours {
		for _, minute := range r.minutes {
			r.times = append(r.times, time.Duration(hour)*time.Hour+time.Duration(minute)*time.Minute+second)
		}
	}
}

// reach is how long after its start a rule must have its second start, and how
// far resolveCount counts. Only rules that no maintenance needs are rarer, such
// as 29 February of every seventh year if it is on a given weekday.
const reach = 60 * 366 * day

// resolveCount turns COUNT into UNTIL, because starts can be counted only from
// the first one. The event's start is the first, whether the rule yields it or
// not (RFC 5545 3.8.5.3). A rule that never yields a start is an error.
func (r *rule) resolveCount(text string) error {
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
