package window

import (
	"strconv"
	"strings"
)

// maxGuess bounds the length of a text for which a closest word is sought, in
// bytes: nobody misspells longer names, and the search stays cheap.
const maxGuess = 64

// Closest returns the candidate that a person most likely meant by text, if
// there is one: one that text is short for, or one that differs from it in no
// more than a third of its letters. Case does not count.
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

// distance counts the letters to add, drop or change to make b out of a
// (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// quote puts a value into an error, cut where it would drown the message.
func quote(text string) string {
	const limit = 80
	if len(text) <= limit {
		return strconv.Quote(text)
	}
	return strconv.Quote(strings.ToValidUTF8(text[:limit], "")) + "..."
}
