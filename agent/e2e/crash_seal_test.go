//go:build linux

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSealIsKilled kills a real command that changes the strongbox of a site, at each labelled
// action, in each way in which no person is asked: the site opens it afterwards, and has the
// authority that it had.
func TestSealIsKilled(t *testing.T) {
	t.Parallel()
	if !long() && os.Getenv("OSUPGRADE_CRASH_MATRIX") == "" {
		t.Skip("the kill matrix takes more than a minute; set OSUPGRADE_CRASH_MATRIX=1, or OSUPGRADE_LONG=1")
	}
	f := newProgram(t)
	f.bin = buildCrashing(t)
	j := newJudge(t)
	t.Cleanup(j.close)
	data, other := f.path("site"), f.path("other")
	f.command("init", "--data", data, "--name", "localhost")
	if err := os.WriteFile(other, []byte(strings.Repeat("k", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	seal := func(args ...string) error {
		cmd := exec.CommandContext(t.Context(), f.bin, append([]string{"seal"}, append(args, "--data", data)...)...) //nolint:gosec // our own binary
		cmd.Env = append(os.Environ(), "OSUPGRADE_CRASH="+j.address())
		return cmd.Run()
	}
	killed := map[string]bool{}
	for _, way := range [][]string{{"rotate"}, {"key-file"}, {"key-file", "--file", other}, {"rotate"}, {"key-file", "--file", f.path("new")}, {"key-file"}} {
		for _, label := range []string{"before key link", "after key link", "before key file", "after key file", "before strongbox", "after strongbox", "before old keys", "after old keys"} {
			j.reset(&victim{process: "seal", label: "worker " + label, visit: 1}) // The judge calls so what is no site.
			err := seal(way...)
			hit := j.killed("seal")
			if (err != nil) != hit {
				t.Errorf("seal %s, killed %s: %t, %v", strings.Join(way, " "), label, hit, err)
			}
			killed[label] = killed[label] || hit
			if out := f.command("init", "--data", data, "--name", "localhost"); strings.Contains(out, "Made the authority") {
				t.Fatalf("killed %s, the authority is made anew: %s", label, out)
			}
			if keys, err := filepath.Glob(filepath.Join(data, "credentials", "strongbox-*.key")); err != nil || len(keys) > 1 {
				t.Errorf("seal %s, killed %s: the key files are %v, %v", strings.Join(way, " "), label, keys, err)
			}
			if _, err := os.Stat(f.path("new")); err == nil && slices.Contains(way, f.path("new")) && !strings.Contains(read(t, filepath.Join(data, "credentials", "strongbox.json")), f.path("new")) {
				t.Errorf("seal %s, killed %s: the new key file is left, and opens nothing", strings.Join(way, " "), label)
			}
		}
		j.reset()
		if err := seal(way...); err != nil {
			t.Fatalf("seal %s: %v", strings.Join(way, " "), err)
		}
	}
	for label, hit := range killed {
		if !hit {
			t.Errorf("no command was killed %s", label)
		}
	}
}
