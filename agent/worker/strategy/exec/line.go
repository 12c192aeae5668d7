package exec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxText bounds a line that is shown to people, in bytes.
const maxText = 1000

// escape is a terminal's control sequence (ECMA-48 5.4), such as a colour.
var escape = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]`)

// progress is what one line of output tells; percent is negative and message
// empty where it tells nothing of the kind.
type progress struct {
	percent int
	message string
}

// parseLine reads one line: a progress object, or text. An object that is
// almost one is text with a note of what is wrong.
func parseLine(line []byte) progress {
	object := map[string]json.RawMessage{}
	if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")) || json.Unmarshal(line, &object) != nil {
		return progress{-1, clean(line)}
	}
	p, err := readProgress(object)
	if err != nil {
		return progress{-1, bounded(fmt.Sprintf("%s (%s)", shortened(clean(line), maxText/2), err))}
	}
	return p
}

func readProgress(object map[string]json.RawMessage) (progress, error) {
	p := progress{percent: -1}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		switch key {
		case "progress":
			var percent *float64
			if json.Unmarshal(value, &percent) != nil || percent == nil || *percent < 0 || *percent > 100 {
				return p, fmt.Errorf("no progress: \"progress\" is %s; use 0 to 100", shortened(clean(value), 50))
			}
			p.percent = int(*percent)
		case "message":
			var message *string
			if json.Unmarshal(value, &message) != nil || message == nil {
				return p, fmt.Errorf("no progress: \"message\" is %s; use a string", shortened(clean(value), 50))
			}
			p.message = clean([]byte(*message))
		default:
			return p, fmt.Errorf("no progress: unknown key %q; use \"progress\" and \"message\"", shortened(clean([]byte(key)), 50))
		}
	}
	return p, nil
}

// clean makes printed bytes fit to be shown: valid UTF-8 of printable
// characters, of what a terminal would show at last, at most maxText bytes.
func clean(line []byte) string {
	text := strings.ToValidUTF8(string(escape.ReplaceAll(line, nil)), "\uFFFD")
	for _, part := range slices.Backward(strings.Split(text, "\r")) {
		if shown := printable(part); shown != "" {
			return bounded(shown)
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

func bounded(text string) string { return shortened(text, maxText) }

// shortened cuts text to a number of bytes, between two characters.
func shortened(text string, limit int) string {
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

// blank reports whether a line shows nothing. It is asked of every line, also
// of a hundred megabytes of them.
func blank(line []byte) bool {
	if bytes.IndexByte(line, '\x1b') < 0 && bytes.ContainsFunc(line[:min(len(line), 100)], func(r rune) bool { return r > ' ' && r < 0x7f }) {
		return false
	}
	return clean(line) == ""
}
