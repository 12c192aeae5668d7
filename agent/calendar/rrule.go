package calendar

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// The limits of a rule.
const (
	maxRule     = 1000 // bytes
	maxInterval = 1000
	maxCount    = 10_000
	// maxTimes is how many times a day a rule may happen.
	maxTimes = 48
)

const everyMonth = 1<<13 - 2

var frequencies = map[string]frequency{"DAILY": daily, "WEEKLY": weekly, "MONTHLY": monthly, "YEARLY": yearly}

// tooFine are the frequencies of RFC 5545 that are not for maintenance.
var tooFine = []string{"SECONDLY", "MINUTELY", "HOURLY"}

// parts maps each part of a rule to what reads it. UNTIL is read after the
// others, since it needs the event's start.
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
	"BYSECOND": func(*rule, string) error {
		return errors.New("is finer than a maintenance calendar goes; leave it out")
	},
	"UNTIL": func(*rule, string) error { return nil },
}

// parseRule reads a recurrence rule of an event that starts at a stamp.
func parseRule(text string, start stamp) (*rule, error) {
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
	return r, r.settle(text)
}

// splitRule takes the parts of a rule apart. Their order and case do not count.
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

// times reads numbers from 0.
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

// numbers reads numbers that are not 0.
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
