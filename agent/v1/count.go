package v1

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxCount is the largest number of hosts that a count may be.
const MaxCount = 10_000

// Count is a number of hosts, or a percentage of some.
type Count struct {
	N       int
	Percent bool
}

// ParseCount reads "0" to "10000", or "0%" to "100%".
func ParseCount(text string) (Count, error) {
	digits, percent := strings.CutSuffix(text, "%")
	most := MaxCount
	if percent {
		most = 100
	}
	n, err := strconv.Atoi(digits)
	// The digits are compared, as Atoi takes "+1" and "01" too.
	if err != nil || n < 0 || n > most || strconv.Itoa(n) != digits {
		return Count{}, fmt.Errorf("%q is not a count; use a number up to %d such as 2, or a percentage such as 10%%", short(text), MaxCount)
	}
	return Count{N: n, Percent: percent}, nil
}

// Of returns how many of total a percentage is, rounded up or down, but at
// least 1 unless the count is 0. A number is itself, be it more than total.
func (c Count) Of(total int, up bool) int {
	if !c.Percent || c.N == 0 {
		return c.N
	}
	share := total * c.N
	if up {
		share += 99
	}
	return max(1, share/100)
}
