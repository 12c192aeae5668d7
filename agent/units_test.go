package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestUnits checks that the units start their program again for as long as it
// takes: one whose disk is full or read-only ends within milliseconds of its
// start, and systemd, left to its defaults, gives a unit up after five such ends.
func TestUnits(t *testing.T) {
	t.Parallel()
	units, err := filepath.Glob("../examples/systemd/*.service")
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
