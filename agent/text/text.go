// Package text shortens texts. A text that was cut is still valid UTF-8.
package text

import "unicode/utf8"

// Cut returns a text of at most limit bytes as it is, and the beginning of a
// longer one with mark behind it.
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

// Fit is Cut to limit bytes with mark among them.
func Fit(s string, limit int, mark string) string {
	if len(s) <= limit {
		return s
	}
	return Cut(s, limit-len(mark), mark)
}
