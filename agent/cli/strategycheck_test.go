package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStrategyCheck checks that a check of good scripts passes, that one of bad scripts
// ends with 1 and says what to mend, and what is said of wrong flags.
func TestStrategyCheck(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	scripts := filepath.Join(root, "scripts")
	if err := os.CopyFS(scripts, os.DirFS("../../examples/exec")); err != nil {
		t.Fatal(err)
	}
	settings := fmt.Sprintf("root=%[1]s/appliance\nrepository=%[1]s/repository\nbefore_switch=\nafter_switch=\n", root)
	if err := os.WriteFile(filepath.Join(scripts, "settings"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	reset := fmt.Sprintf("rm -rf %[1]s/appliance %[1]s/repository && %[1]s/scripts/setup", root)
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", reset).CombinedOutput(); err != nil { //nolint:gosec // the test's own
		t.Fatal(err, string(out))
	}
	for _, row := range []struct {
		name  string
		flags []string
		code  int
		want  string
	}{
		{"neither", nil, exitUsage, "scripts: give the folder of the scripts with --scripts, or a built-in strategy"},
		{"not told that it may break", []string{"--scripts", scripts}, exitUsage, "yes: the check really upgrades this machine"},
		{"no such strategy", []string{"--strategy", "magic", "--yes"}, exitUsage, `"magic" is not a strategy`},
		{"no time", []string{"--scripts", scripts, "--yes", "--limit", "0s"}, exitUsage, "limit: 0s is invalid"},
		{"good", []string{"--scripts", scripts, "--yes"}, exitOK, "The strategy passes."},
		{"a reset that fails", []string{"--scripts", scripts, "--yes", "--reset", "false"}, exitFailed, `the command "false" failed: exit status 1`},
		{"empty folder", []string{"--scripts", root, "--yes"}, exitFailed, "FAIL  scripts: cannot upgrade by scripts: the script"},
	} {
		var out, errs strings.Builder
		code := Run(t.Context(), "1.0", append([]string{"strategy-check"}, row.flags...), strings.NewReader(""), &out, &errs)
		if code != row.code || !strings.Contains(out.String()+errs.String(), row.want) {
			t.Errorf("%s: exit status %d, not %d:\n%s%s", row.name, code, row.code, out.String(), errs.String())
		}
	}
}
