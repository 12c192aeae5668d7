package calendar

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// isoDuration is RFC 5545 3.3.6 without a minus, and with so few digits that the
// sum fits a time.Duration.
var isoDuration = regexp.MustCompile(`^\+?P(?:(\d{1,4})W|(?:(\d{1,4})D)?(?:T(?:(\d{1,5})H)?(?:(\d{1,7})M)?(?:(\d{1,9})S)?)?)$`)

// parseISO reads iCalendar's DURATION, such as PT4H. A day is 24 hours, as
// everywhere here (AV-21).
func parseISO(text string) (time.Duration, error) {
	match := isoDuration.FindStringSubmatch(text)
	var length time.Duration
	for i, unit := range []time.Duration{7 * day, day, time.Hour, time.Minute, time.Second} {
		if match != nil && match[i+1] != "" {
			n, err := strconv.Atoi(match[i+1])
			if err != nil {
				return 0, err
			}
			length += time.Duration(n) * unit
		}
	}
	if length <= 0 {
		return 0, fmt.Errorf("%s is not a length of time; use one such as PT4H or P1DT12H", quote(text))
	}
	return length, nil
}
