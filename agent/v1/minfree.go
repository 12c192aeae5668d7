package v1

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

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

// ParseMinFree reads how much of a file system must be free: bytes, such as
// "500MB" or "2GiB", or percent, such as "10%". The other one is 0.
func ParseMinFree(text string) (bytes uint64, percent int, err error) {
	if c, err := ParseCount(text); err == nil && c.Percent && c.N > 0 {
		return 0, c.N, nil
	}
	for _, size := range sizes {
		digits, found := strings.CutSuffix(text, size.unit)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 64)
		if err == nil && n > 0 && n <= math.MaxInt64/size.bytes && digits[0] != '0' {
			return n * size.bytes, 0, nil
		}
		break
	}
	return 0, 0, fmt.Errorf("%q is not an amount of free space; use a whole number with KB, MB, GB, TB, KiB, MiB, GiB or TiB such as 2GiB, or a percentage such as 10%%", short(text))
}
