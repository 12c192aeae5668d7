package window

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"
)

// Days is a set of weekdays; the bit of a day is 1 << time.Weekday.
type Days uint8

// week lists the days in the order in which they are written.
var week = [7]time.Weekday{
	time.Monday, time.Tuesday, time.Wednesday, time.Thursday,
	time.Friday, time.Saturday, time.Sunday,
}

const daysHint = "use Monday to Sunday, separated by commas"

// ParseDays reads English day names separated by commas, in any order and case
// and with any blanks (AV-16). No day, a day given twice and a misspelt day are
// errors; the error tells of all of them at once.
func ParseDays(text string) (Days, error) {
	if strings.TrimSpace(text) == "" {
		return 0, fmt.Errorf("%s names no day; %s", quote(text), daysHint)
	}
	if len(text) > maxDaysText {
		return 0, fmt.Errorf("%s is too long to be a list of days; %s", quote(text), daysHint)
	}
	var days Days
	var wrong []string
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		d, err := parseDay(name)
		switch {
		case err != nil:
			wrong = append(wrong, err.Error())
		case days.Has(d):
			wrong = append(wrong, fmt.Sprintf("%s is there twice; name each day once", quote(name)))
		default:
			days |= 1 << d
		}
	}
	if len(wrong) > 0 {
		return 0, errors.New(strings.Join(wrong, ", and "))
	}
	return days, nil
}

// maxDaysText leaves ample room for seven names and blanks, and bounds the
// length of an error.
const maxDaysText = 200

func parseDay(name string) (time.Weekday, error) {
	names := make([]string, 0, len(week))
	for _, d := range week {
		if strings.EqualFold(name, d.String()) {
			return d, nil
		}
		names = append(names, d.String())
	}
	if closest, ok := Closest(name, names); ok {
		return 0, fmt.Errorf("%s is not a day; did you mean %s?", quote(name), closest)
	}
	return 0, fmt.Errorf("%s is not a day; %s", quote(name), daysHint)
}

// String returns the canonical form, such as "Friday, Saturday": Monday first.
func (d Days) String() string { return strings.Join(d.Names(), ", ") }

// Names returns the names of the days, Monday first.
func (d Days) Names() []string {
	names := make([]string, 0, bits.OnesCount8(uint8(d)))
	for _, w := range week {
		if d.Has(w) {
			names = append(names, w.String())
		}
	}
	return names
}

// Has reports whether the set holds a weekday.
func (d Days) Has(w time.Weekday) bool { return d&(1<<w) != 0 }
