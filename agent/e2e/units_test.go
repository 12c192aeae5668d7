package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestUnits checks that the units start their program again for as long as it
// takes: one whose disk is full or read-only ends within milliseconds of its
// start, and systemd, left to its defaults, gives a unit up after five such ends.
func TestUnits(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("../../examples/systemd/*.service")
	if err != nil || len(units) != 2 {
		t.Fatalf("the units are %v, %v", units, err)
	}
	for _, unit := range units {
		sections := strings.Split(read(t, unit), "\n\n")
		says := func(section, line string) bool {
			return slices.ContainsFunc(sections, func(text string) bool {
				lines := strings.Split(text, "\n")
				return lines[0] == "["+section+"]" && slices.Contains(lines, line)
			})
		}
		if !says("Unit", "StartLimitIntervalSec=0") || !says("Service", "Restart=always") {
			t.Errorf("%s gives its program up", unit)
		}
		if !says("Service", "RestartSec=5s") {
			t.Errorf("%s starts its program again and again without a rest", unit)
		}
		if strings.Contains(unit, "worker") && !says("Service", "KillMode=process") {
			t.Errorf("%s ends scripts half-way", unit)
		}
	}
}

// TestUnitsVerified has systemd itself judge the units, where there is one.
func TestUnitsVerified(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze")
	}
	units, err := filepath.Glob("../../examples/systemd/*.service")
	if err != nil || len(units) == 0 {
		t.Fatal(units, err)
	}
	for _, unit := range units {
		// It wants the program to exist.
		text := regexp.MustCompile(`/usr/local/bin/[a-z-]+`).ReplaceAllString(read(t, unit), os.Args[0])
		path := filepath.Join(t.TempDir(), filepath.Base(unit))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		// Mistakes that systemd ignores at run time are lines of its output.
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", path).CombinedOutput()
		if err != nil || strings.Contains(string(out), filepath.Base(unit)) {
			t.Errorf("%s: %v\n%s", unit, err, out)
		}
	}
}
