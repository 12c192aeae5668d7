package exec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
)

// TestOwnNoteIsNotWhatTheScriptSaid checks that the note of dropped output is
// never taken for a line of the script, whatever that prints between the cut
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
