package script

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText bounds a line that is shown to people, in bytes.
const MaxText = 1000

// escape is a terminal's control sequence (ECMA-48 5.4), such as a colour.
var escape = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// Clean makes printed bytes fit to be shown: valid UTF-8 of printable
// characters, of what a terminal would show at last, at most MaxText bytes.
func Clean(line []byte) string {
	text := strings.ToValidUTF8(string(escape.ReplaceAll(line, nil)), "\uFFFD")
	for _, part := range slices.Backward(strings.Split(text, "\r")) {
		if shown := printable(part); shown != "" {
			return Shortened(shown, MaxText)
		}
	}
	return ""
}

func printable(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		default:
			return -1
		}
	}, text))
}

// Shortened cuts text to a number of bytes, between two characters.
func Shortened(text string, limit int) string {
	const mark = "..."
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// Blank reports whether a line shows nothing. It is asked of every line, also
// of a hundred megabytes of them.
func Blank(line []byte) bool {
	if bytes.IndexByte(line, '\x1b') < 0 && bytes.ContainsFunc(line[:min(len(line), 100)], func(r rune) bool { return r > ' ' && r < 0x7f }) {
		return false
	}
	return Clean(line) == ""
}
