// Package text truncates texts, counts things in words, lists names and keeps patterns. A
// truncated text is still valid UTF-8.
package text

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// Count says how many there are of something, such as "1 host" or "2 hosts".
func Count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// List lists names, at most most of them, and says how many more there are, such as
// "h01, h02 and 3 more".
func List(names []string, most int) string { return ListOf(names, len(names), most) }

// ListOf is List for names that are the first of so many.
func ListOf(names []string, all, most int) string {
	named := names[:min(len(names), most)]
	text := strings.Join(named, ", ")
	if more := all - len(named); more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
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

// FitColumns truncates a text to so many characters including mark, for a column of a table or a
// line of a terminal. It returns a shorter text unchanged.
func FitColumns(s string, columns int, mark string) string {
	characters := []rune(s)
	if len(characters) <= columns {
		return s
	}
	return string(characters[:max(columns-utf8.RuneCountInString(mark), 0)]) + mark
}

// Pattern returns a regular expression, which is compiled when it is needed first: each start of
// the program would otherwise compile the patterns of all strategies and formats, and most
// commands need none.
func Pattern(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
