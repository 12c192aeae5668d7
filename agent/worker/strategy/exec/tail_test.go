package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
)

// TestOwnNoteIsNotWhatTheScriptSaid checks that the note of dropped output never
// counts as a line of the script, whatever the script prints between the truncation
// and the note.
func TestOwnNoteIsNotWhatTheScriptSaid(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ between, want string }{
		"nothing":                       {"", ""},
		"what shows nothing":            {strings.Repeat("\x00", 100), ""},
		"as much of it as a line has":   {strings.Repeat("\x00", script.MaxLine-20), ""},
		"a line that was begun":         {"switching", "switching"},
		"a line":                        {"switching\n", "switching"},
		"a line and what shows nothing": {"switching\n\x00", "switching"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer closeFile(t, log)
			followed := newTail(log, 0, 1<<20, func(int, string) {})
			if _, err := log.WriteString(row.between); err != nil {
				t.Fatal(err)
			}
			followed.note()
			followed.follow()
			followed.finish()
			if followed.last != row.want {
				t.Errorf("it said %q, not %q", followed.last, row.want)
			}
		})
	}
}

func TestParseLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 600)
	for name, row := range map[string]struct {
		line string
		want progress
	}{
		"text":                  {"Unpacking kernel", progress{-1, "Unpacking kernel"}},
		"progress":              {`{"progress": 40, "message": "half"}`, progress{40, "half"}},
		"progress after blanks": {` {"progress": 0}`, progress{0, ""}},
		"all of it":             {`{"progress": 100}`, progress{100, ""}},
		"a fraction":            {`{"progress": 33.9}`, progress{33, ""}},
		"a message alone":       {`{"message": "a\u0007b"}`, progress{-1, "ab"}},
		"an empty object":       {`{}`, progress{-1, ""}},
		"too much":              {`{"progress": 101}`, progress{-1, `{"progress": 101} (no progress: "progress" is 101; use 0 to 100)`}},
		"negative":              {`{"progress": -1}`, progress{-1, `{"progress": -1} (no progress: "progress" is -1; use 0 to 100)`}},
		"a string":              {`{"progress": "5"}`, progress{-1, `{"progress": "5"} (no progress: "progress" is "5"; use 0 to 100)`}},
		"null":                  {`{"message": null}`, progress{-1, `{"message": null} (no progress: "message" is null; use a string)`}},
		"a key in capitals":     {`{"Progress": 5}`, progress{-1, `{"Progress": 5} (no progress: unknown key "Progress"; use "progress" and "message")`}},
		"cut off":               {`{"progress": 5`, progress{-1, `{"progress": 5`}},
		"two objects":           {`{"progress":5}{}`, progress{-1, `{"progress":5}{}`}},
		"an array":              {`[5]`, progress{-1, `[5]`}},
		"colours":               {"\x1b[1;31mred\x1b[0m alert", progress{-1, "red alert"}},
		"a bar redrawn":         {"10%\r55%\r100%\r", progress{-1, "100%"}},
		"tabs and bells":        {"a\tb\a\x7fc", progress{-1, "a bc"}},
		"not UTF-8":             {"a\xff\xfeb", progress{-1, "a\uFFFDb"}},
		"text turned around":    {"a\u202eb", progress{-1, "ab"}},
		"too long":              {long, progress{-1, long[:996] + "..."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parseLine([]byte(row.line)); got != row.want {
				t.Fatalf("got %v, want %v", got, row.want)
			}
		})
	}
}

// checkShown checks that a text can be shown to people.
func checkShown(fail func(string, ...any), text string) {
	unfit := func(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }
	if len(text) > script.MaxText || !utf8.ValidString(text) || strings.ContainsFunc(text, unfit) {
		fail("%q is not fit to be shown", text)
	}
}

func FuzzParseLine(f *testing.F) {
	f.Add([]byte(`{"progress": 40, "message": "half"}`))
	f.Add([]byte("\x1b[31m\r\xff{"))
	f.Fuzz(func(t *testing.T, line []byte) {
		p := parseLine(line)
		if p.percent < -1 || p.percent > 100 {
			t.Fatalf("%d percent", p.percent)
		}
		checkShown(t.Fatalf, p.message)
	})
}
