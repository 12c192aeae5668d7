// Package text truncates texts. A truncated text is still valid UTF-8.
package text

import "unicode/utf8"

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
