package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// busyRun runs the command busy on a folder.
func busyRun(t *testing.T, dir string, args ...string) (status int, out, errs string) {
	t.Helper()
	var printed, said strings.Builder
	status = Run(t.Context(), "1.0", append([]string{"busy", "--busy-dir", dir}, args...), strings.NewReader("typed"), &printed, &said)
	return status, printed.String(), said.String()
}

// TestBusy checks that a lease is there while a command runs and not after it, that the
// command has the streams and gives its exit code, and how a lease is made and ended by
// hand.
func TestBusy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "busy")
	if _, out, _ := busyRun(t, dir, "--list"); out != "This host is not busy.\n" {
		t.Errorf("a host without the folder: %q", out)
	}
	status, out, _ := busyRun(t, dir, "--for", "30m", "--reason", "backup", "--", "sh", "-c", "cat; cat "+dir+"/*; exit 7")
	if status != 7 || !strings.HasPrefix(out, `typed{"format":1,"reason":"backup","since":"`) || !strings.Contains(out, `"pid":`) {
		t.Errorf("exit status %d with %q", status, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("after the command there are %v, %v", left, err)
	}
	if status, out, _ = busyRun(t, dir, "true"); status != exitOK || out != "" {
		t.Errorf("a command that succeeds: exit status %d with %q", status, out)
	}
	if status, _, _ = busyRun(t, dir, "--", "sh", "-c", "kill -9 $$"); status != 128+9 {
		t.Errorf("a command that is killed: exit status %d", status)
	}
	if status, _, _ = busyRun(t, dir, "--", "sh", "-c", `trap 'exit 5' USR1; kill -USR1 $PPID; while :; do sleep 0.01; done`); status != 5 {
		t.Errorf("a command to which a signal is passed on: exit status %d", status)
	}
	status, out, _ = busyRun(t, dir, "--reason", "a person works here")
	name := strings.TrimSpace(out)
	if status != exitOK || !strings.HasPrefix(name, "a-person-works-here-") {
		t.Fatalf("exit status %d with %q", status, out)
	}
	if _, out, _ := busyRun(t, dir, "--list"); !strings.Contains(out, name) || !strings.Contains(out, "a person works here") {
		t.Errorf("the list is %q", out)
	}
	if status, _, errs := busyRun(t, dir, "--end", name); status != exitOK {
		t.Errorf("the end: %s", errs)
	}
	for want, args := range map[string][]string{
		"reason: it is missing":           nil,
		"use a time above 0s":             {"--for", "0s", "true"},
		"take no command":                 {"--list", "true"},
		"can't be used together":          {"--list", "--end", "x"},
		"there is no busy lease x":        {"--end", "x"},
		"executable file not found":       {"no-such-command"},
		`"../x" is no name`:               {"--end", "../x"},
		"cannot make the folder of the b": {"--busy-dir", "/dev/null/x", "true"},
	} {
		if status, out, errs := busyRun(t, dir, args...); status == exitOK || !strings.Contains(errs, want) {
			t.Errorf("%v: exit status %d with %q and %q", args, status, out, errs)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("in the end there are %v, %v", left, err)
	}
}
