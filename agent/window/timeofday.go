package window

import "fmt"

// TimeOfDay is a time on the wall clock, to the minute. The zero value is
// midnight.
type TimeOfDay struct{ minutes int }

// ParseTimeOfDay reads HH:MM, from 00:00 to 23:59, with both digits of each
// (AV-17).
func ParseTimeOfDay(text string) (TimeOfDay, error) {
	if len(text) == len("HH:MM") && text[2] == ':' {
		hour, minute := twoDigits(text[:2]), twoDigits(text[3:])
		if 0 <= hour && hour < 24 && 0 <= minute && minute < 60 {
			return TimeOfDay{minutes: hour*60 + minute}, nil
		}
	}
	return TimeOfDay{}, fmt.Errorf("%s is not a time of day; use HH:MM from 00:00 to 23:59", quote(text))
}

// twoDigits reads two decimal digits; anything else is -1.
func twoDigits(text string) int {
	tens, ones := text[0]-'0', text[1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return int(tens)*10 + int(ones)
}

// String returns the form HH:MM.
func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", t.minutes/60, t.minutes%60) }
