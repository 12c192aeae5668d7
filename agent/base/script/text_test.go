package script

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCleanIsPrintable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		line := rapid.OneOf(rapid.SliceOf(rapid.Byte()), rapid.Map(rapid.StringN(0, 2000, -1), func(s string) []byte { return []byte(s) }))
		data := line.Draw(rt, "line")
		text := Clean(data)
		unfit := func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }
		if len(text) > MaxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unfit) {
			rt.Fatalf("%q is not fit to be shown", text)
		}
		if Blank(data) != (text == "") {
			rt.Fatalf("blank is %v for %q, shown as %q", Blank(data), data, text)
		}
	})
}
