package window

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var units = [4]struct {
	letter byte
	size   time.Duration
}{{'d', day}, {'h', time.Hour}, {'m', time.Minute}, {'s', time.Second}}

// ParseDuration parses a duration such as "4h" or "1d4h18s": days, hours,
// minutes and seconds, each at most once and in this order, with at least one
// of them. A day is 24 hours. A duration beyond the range of
// time.Duration, about 292 years, is an error.
func ParseDuration(text string) (time.Duration, error) {
	var total time.Duration
	rest := text
	for _, unit := range units {
		digits := leadingDigits(rest)
		if digits == 0 || digits == len(rest) || rest[digits] != unit.letter {
			continue
		}
		count, err := strconv.ParseInt(rest[:digits], 10, 64)
		if err != nil || count > int64((math.MaxInt64-total)/unit.size) {
			return 0, &tooLong{text}
		}
		total += time.Duration(count) * unit.size
		rest = rest[digits+1:]
	}
	if text == "" || rest != "" {
		return 0, fmt.Errorf("%s is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s", quote(text))
	}
	return total, nil
}

// tooLong is the error for a duration beyond the range of time.Duration.
type tooLong struct{ text string }

// Error implements error.
func (e *tooLong) Error() string {
	return fmt.Sprintf("%s is too long; use at most %s", quote(e.text), FormatDuration(math.MaxInt64))
}

// ParseDurationWithin parses a duration from least to most. Each error about the
// range names least and most, also for a text beyond the range of time.Duration.
func ParseDurationWithin(text string, least, most time.Duration) (time.Duration, error) {
	d, err := ParseDuration(text)
	_, beyond := errors.AsType[*tooLong](err)
	switch {
	case beyond || d > most:
		return 0, fmt.Errorf("%s is too long; use %s to %s", quote(text), FormatDuration(least), FormatDuration(most))
	case err != nil:
		return 0, err
	case d < least:
		return 0, fmt.Errorf("%s is too short; use %s to %s", quote(text), FormatDuration(least), FormatDuration(most))
	}
	return d, nil
}

func leadingDigits(text string) int {
	n := 0
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return n
}

// FormatDuration returns the canonical form of a duration, such as "1d4h18s". It
// rounds up to seconds, so that waiting as long as the text says is never too
// short. Zero and negative durations are "0s".
func FormatDuration(d time.Duration) string {
	if d <= 0 {
		return "0s"
	}
	if part := d % time.Second; part > 0 && d <= math.MaxInt64-time.Second {
		d += time.Second - part
	}
	var text strings.Builder
	for _, unit := range units {
		if count := d / unit.size; count > 0 {
			text.WriteString(strconv.FormatInt(int64(count), 10))
			text.WriteByte(unit.letter)
			d %= unit.size
		}
	}
	return text.String()
}
