package window

import (
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// maxGuess is the length in bytes up to which Closest compares a text. It keeps
// the comparison cheap; no name that we suggest is longer.
const maxGuess = 64

// Closest returns the candidate that a person most likely meant by text: a
// candidate that begins with text, or that differs from text in at most a third
// of its letters. Case does not count.
func Closest(text string, candidates []string) (string, bool) {
	if text == "" || len(text) > maxGuess {
		return "", false
	}
	text = strings.ToLower(text)
	best, least := "", 1+max(1, len(text)/3)
	for _, candidate := range candidates {
		lower := strings.ToLower(candidate)
		d := distance(text, lower)
		if len(text) > 1 && strings.HasPrefix(lower, text) {
			d = 1
		}
		if d < least {
			best, least = candidate, d
		}
	}
	return best, best != ""
}

// distance is the number of letters to add, drop or change, or of neighbours to swap,
// that turn a into b.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// quote quotes a value for an error and truncates a long one.
func quote(value string) string {
	short := text.Cut(value, 80, "")
	if short == value {
		return strconv.Quote(value)
	}
	return strconv.Quote(short) + "..."
}
