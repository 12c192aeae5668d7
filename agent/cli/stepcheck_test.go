package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStepCheck checks that a check of good scripts passes, that one of bad scripts ends with 1 and says
// what to mend, and what is said of wrong flags.
func TestStepCheck(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	scripts, data := filepath.Join(root, "scripts"), filepath.Join(root, "data")
	if err := os.CopyFS(scripts, os.DirFS("../../examples/steps")); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{data, filepath.Join(root, "backups")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(scripts, "settings"), fmt.Appendf(nil, "data=%s\nbackups=%s/backups\n", data, root), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(flags ...string) []string {
		return append([]string{"--checks", scripts, "--do", "backup"}, flags...)
	}
	for _, row := range []struct {
		name  string
		flags []string
		code  int
		want  string
	}{
		{"no script", []string{"--checks", scripts}, exitUsage, "--do"},
		{"not told that it may be done", with(), exitUsage, "yes: the check really does the step"},
		{"no folder", []string{"--checks", scripts + "/gone", "--do", "backup", "--yes"}, exitUsage, `gone" is not a folder; give the folder of the scripts`},
		{"no name of a script", with("--yes", "--undo", "../undo"), exitUsage, `undo: "../undo" is not the name of a script`},
		{"no name of an output", with("--yes", "--gives", "A-B"), exitUsage, `gives: "A-B" is not the name of an output`},
		{"no host name", with("--yes", "--host", "a b"), exitUsage, `host: "a b" is not a host name`},
		{"no time", with("--yes", "--limit", "0s"), exitUsage, "limit: 0s is invalid"},
		{"an argument of no script", with("--yes", "--undo-arg", "x"), exitUsage, "undo-arg: give --undo"},
		{"good", with("--yes", "--undo", "drop-backup", "--gives", "BACKUP", "--output", "JOIN=a=b", "--state", "ls -R "+root), exitOK, "The step passes."},
		{"a reset that fails", with("--yes", "--gives", "BACKUP", "--reset", "false"), exitFailed, `the command "false" failed: exit status 1`},
		{"a script that is not there", with("--yes", "--undo", "gone"), exitFailed, "FAIL"},
	} {
		var out, errs strings.Builder
		code := Run(t.Context(), "1.0", append([]string{"step-check"}, row.flags...), strings.NewReader(""), &out, &errs)
		if code != row.code || !strings.Contains(out.String()+errs.String(), row.want) {
			t.Errorf("%s: exit status %d, not %d:\n%s%s", row.name, code, row.code, out.String(), errs.String())
		}
	}
}
