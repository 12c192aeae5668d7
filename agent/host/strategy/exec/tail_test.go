package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/script"
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
		"text":                  {"Unpacking kernel", progress{percent: -1, message: "Unpacking kernel"}},
		"progress":              {`{"progress": 40, "message": "half"}`, progress{percent: 40, message: "half"}},
		"progress after blanks": {` {"progress": 0}`, progress{percent: 0, message: ""}},
		"all of it":             {`{"progress": 100}`, progress{percent: 100, message: ""}},
		"a fraction":            {`{"progress": 33.9}`, progress{percent: 33, message: ""}},
		"a message alone":       {`{"message": "a\u0007b"}`, progress{percent: -1, message: "ab"}},
		"an empty object":       {`{}`, progress{percent: -1, message: ""}},
		"too much":              {`{"progress": 101}`, progress{percent: -1, message: `{"progress": 101} (no progress: "progress" is 101; use 0 to 100)`}},
		"negative":              {`{"progress": -1}`, progress{percent: -1, message: `{"progress": -1} (no progress: "progress" is -1; use 0 to 100)`}},
		"a string":              {`{"progress": "5"}`, progress{percent: -1, message: `{"progress": "5"} (no progress: "progress" is "5"; use 0 to 100)`}},
		"null":                  {`{"message": null}`, progress{percent: -1, message: `{"message": null} (no progress: "message" is null; use a string)`}},
		"a key in capitals":     {`{"Progress": 5}`, progress{percent: -1, message: `{"Progress": 5} (no progress: unknown key "Progress"; use "progress", "message" and "class")`}},
		"a class":               {`{"class": "space"}`, progress{percent: -1, class: "space"}},
		"a class and why":       {`{"class": "lock", "message": "held"}`, progress{percent: -1, message: "held", class: "lock"}},
		"an unknown class":      {`{"class": "full"}`, progress{percent: -1, message: `{"class": "full"} (no class: "full" is not a class of failures; use one of transient, artifact, space, lock, repository, install, boot, verify)`}},
		"a class of no kind":    {`{"class": 5}`, progress{percent: -1, message: `{"class": 5} (no class: "class" is 5; use a string)`}},
		"cut off":               {`{"progress": 5`, progress{percent: -1, message: `{"progress": 5`}},
		"two objects":           {`{"progress":5}{}`, progress{percent: -1, message: `{"progress":5}{}`}},
		"an array":              {`[5]`, progress{percent: -1, message: `[5]`}},
		"colours":               {"\x1b[1;31mred\x1b[0m alert", progress{percent: -1, message: "red alert"}},
		"a bar redrawn":         {"10%\r55%\r100%\r", progress{percent: -1, message: "100%"}},
		"tabs and bells":        {"a\tb\a\x7fc", progress{percent: -1, message: "a bc"}},
		"not UTF-8":             {"a\xff\xfeb", progress{percent: -1, message: "a\uFFFDb"}},
		"text turned around":    {"a\u202eb", progress{percent: -1, message: "ab"}},
		"too long":              {long, progress{percent: -1, message: long[:996] + "..."}},
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
