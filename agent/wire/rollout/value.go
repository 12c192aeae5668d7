package rollout

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// readable is a text that means a value. It keeps its spelling, right or wrong,
// so that a person gets back what they wrote and is told what is wrong with it.
type readable interface{ unreadable() error }

// Span is a length of time such as "90m" or "1d4h". The empty one is
// absent.
type Span string

// SpanOf returns the canonical spelling of a length of time.
func SpanOf(d time.Duration) Span { return Span(window.FormatDuration(d)) }

// Duration returns the length; 0 if there is none, or none that can be read.
func (s Span) Duration() time.Duration {
	if s == "" {
		return 0
	}
	d, err := window.ParseDuration(string(s))
	if err != nil {
		return 0
	}
	return d
}

func (s Span) unreadable() error {
	if s == "" {
		return nil
	}
	_, err := window.ParseDuration(string(s))
	return err
}

func (s Span) canonical() Span {
	if s == "" || s.unreadable() != nil {
		return s
	}
	return SpanOf(s.Duration())
}

// Count is a number of hosts such as "2", or a percentage of some such as
// "10%". The empty one is absent.
type Count string

// maxCount is the largest number of hosts that a count may be.
const maxCount = 10_000

// Rounding says what becomes of a part of a host.
type Rounding int

// The ways to round a percentage of hosts.
const (
	Down Rounding = iota
	Up
)

// Of returns how many of total a percentage is, but at least 1 unless it is 0%.
// A number is itself, be it more than total; one that cannot be read is 0.
func (c Count) Of(total int, rounding Rounding) int {
	n, percent, err := c.parse()
	if err != nil || !percent || n == 0 {
		return n
	}
	share := total * n
	if rounding == Up {
		share += 99
	}
	return max(1, share/100)
}

// parse reads "0" to "10000", or "0%" to "100%".
func (c Count) parse() (n int, percent bool, err error) {
	digits, percent := strings.CutSuffix(string(c), "%")
	most := maxCount
	if percent {
		most = 100
	}
	n, err = strconv.Atoi(digits)
	// The digits are compared, as Atoi takes "+1" and "01" too.
	if err != nil || n < 0 || n > most || strconv.Itoa(n) != digits {
		return 0, false, fmt.Errorf("%q is not a count; use a number up to %d such as 2, or a percentage such as 10%%", document.Clip(string(c)), maxCount)
	}
	return n, percent, nil
}

func (c Count) unreadable() error {
	if c == "" {
		return nil
	}
	_, _, err := c.parse()
	return err
}

// Number is a number such as "0.8" or "-3". The empty one is absent.
type Number string

// Value returns the number; nil if there is none, or none that can be read.
func (n Number) Value() *float64 {
	if n == "" || n.unreadable() != nil {
		return nil
	}
	value, _ := strconv.ParseFloat(string(n), 64)
	return &value
}

func (n Number) unreadable() error {
	if n == "" {
		return nil
	}
	value, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
		return fmt.Errorf("%q is not a number; use one such as 0.8 or 1e6", document.Clip(string(n)))
	}
	return nil
}

// Free is how much of a file system must be free: bytes such as "500MB" or
// "2GiB", or a percentage such as "10%". The empty one is absent.
type Free string

var sizes = [...]struct {
	unit  string
	bytes uint64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
}

// Least returns the bytes that must be free, or the percentage; the other one
// is 0, and both are when it cannot be read.
func (f Free) Least() (bytes uint64, percent int) {
	bytes, percent, _ = f.parse()
	return bytes, percent
}

func (f Free) parse() (bytes uint64, percent int, err error) {
	if n, share, err := Count(f).parse(); err == nil && share && n > 0 {
		return 0, n, nil
	}
	for _, size := range sizes {
		digits, found := strings.CutSuffix(string(f), size.unit)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err == nil && n > 0 && n <= math.MaxInt64/size.bytes && digits[0] != '0' {
			return n * size.bytes, 0, nil
		}
		break
	}
	return 0, 0, fmt.Errorf("%q is not an amount of free space; use a whole number with KB, MB, GB, TB, KiB, MiB, GiB or TiB such as 2GiB, or a percentage such as 10%%", document.Clip(string(f)))
}

func (f Free) unreadable() error {
	if f == "" {
		return nil
	}
	_, _, err := f.parse()
	return err
}
