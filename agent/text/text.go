// Package text truncates texts and counts things in words. A truncated text is still
// valid UTF-8.
package text

import (
	"strconv"
	"unicode/utf8"
)

// Count says how many there are of something, such as "1 host" or "2 hosts".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// Cut truncates a text to limit bytes and appends mark. It returns a shorter text
// unchanged.
func Cut(s string, limit int, mark string) string {
	if len(s) <= limit {
		return s
	}
	end := max(limit, 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// Fit is Cut to limit bytes including mark.
func Fit(s string, limit int, mark string) string {
	if len(s) <= limit {
		return s
	}
	return Cut(s, limit-len(mark), mark)
}
