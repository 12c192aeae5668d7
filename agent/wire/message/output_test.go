package message

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestCleanOutput checks what of a script's output reaches a terminal, and that the end
// of it is what is kept.
func TestCleanOutput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ printed, want string }{
		"lines":           {"one\n\ttwo\n", "one\n\ttwo\n"},
		"of Windows":      {"one\r\ntwo", "one\ntwo"},
		"a progress bar":  {"10%\r20%\r", "10%\n20%\n"},
		"escapes":         {"\x1b[31mred\x1b[0m\a\x00", "[31mred[0m"},
		"no UTF-8":        {"a\xffb", "a\uFFFDb"},
		"right to left":   {"a\u202eb", "ab"},
		"nothing":         {"", ""},
		"a C1 control":    {"a\u009bb", "ab"},
		"letters of many": {"Grüße, 世界", "Grüße, 世界"},
	} {
		if got := string(CleanOutput([]byte(c.printed))); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	// Three bytes for each of MaxOutput.
	long := string(CleanOutput([]byte(strings.Repeat("\xff ", MaxOutput/2) + "the end")))
	if len(long) > MaxOutput || !utf8.ValidString(long) || !strings.HasSuffix(long, "the end") {
		t.Errorf("of a long output %d bytes are kept, ending in %q", len(long), long[len(long)-10:])
	}
	if !IsOutputAction("upgrade") || IsOutputAction("versions") || IsOutputAction("") {
		t.Error("the actions are others")
	}
}
