package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestStartMakesNoTables checks that no package of the program makes a large table, or compiles
// a large pattern, before it is needed: each command pays for it, and a worker starts a process
// for each action.
func TestStartMakesNoTables(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "--version") //nolint:gosec // this test
	cmd.Env = append(os.Environ(), asProgram+"=1", "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	packages := 0
	for line := range strings.Lines(string(out)) {
		var name string
		var at, took float64
		var bytes int
		if _, err := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes", &name, &at, &took, &bytes); err != nil {
			continue
		}
		name, ours := strings.CutPrefix(name, "github.com/osupgrade/terraform-provider-osupgrade/agent/")
		if !ours || strings.HasPrefix(name, "testing/") {
			continue
		}
		packages++
		if bytes > most {
			t.Errorf("package %s makes %d bytes at each start; make them when they are needed (sync.OnceValue, text.Pattern)", name, bytes)
		}
	}
	if packages < 10 {
		t.Errorf("the start of %d packages is told:\n%s", packages, out)
	}
}
