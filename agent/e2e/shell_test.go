package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestShellScripts checks the scripts of the build and of the packages with shellcheck, where that is.
func TestShellScripts(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("THE SHELL SCRIPTS ARE NOT CHECKED: there is no shellcheck on this machine; install it (Debian: apt-get install shellcheck)")
	}
	var scripts []string
	for _, folder := range []string{"tools", "packaging"} {
		found, err := filepath.Glob(filepath.Join("../..", folder, "*.sh"))
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no scripts in %s: %v", folder, err)
		}
		scripts = append(scripts, found...)
	}
	if _, err := os.Stat("../../.ci/run"); err == nil {
		scripts = append(scripts, "../../.ci/run")
	}
	out, err := exec.CommandContext(t.Context(), program, append([]string{"--severity=warning", "--format=gcc"}, scripts...)...).CombinedOutput() //nolint:gosec // a checker
	if err != nil {
		t.Errorf("shellcheck of %s: %v\n%s", strings.Join(scripts, " "), err, out)
	}
}
