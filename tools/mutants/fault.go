package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fault is one deliberate fault: in a file, whose path is from the root, a
// text that stands there exactly once is replaced. Each of the suites must
// fail for it.
type fault struct {
	name, file string
	old, new   string
	by         []suite
}

// suite is some of the tests of a package, by a pattern as go test -run takes
// it, with the flags that they need.
type suite struct {
	pkg, tests string
	flags      []string
}

func tests(pkg, names string) []suite {
	return []suite{{pkg: pkg, tests: "^(" + names + ")$"}}
}

// simulated are the tests of a fault that the simulation must find, too.
func simulated(more ...suite) []suite {
	return append(more, suite{pkg: "agent/sim", tests: "^TestSimulation$", flags: []string{"-sim.seeds=300", "-sim.failures=1"}})
}

// scripts and invariants are the tests of package run. The cases are the same
// each time, and one that fails is not kept: it would be played again without
// the fault.
var (
	scripts    = suite{pkg: "agent/run", tests: "^TestScripts$"}
	invariants = suite{pkg: "agent/run", tests: "^TestInvariants$", flags: []string{"-rapid.seed=1", "-rapid.checks=2000", "-rapid.nofailfile", "-rapid.shrinktime=1s"}}
)

// standing checks that each fault can be put in its place, and that no two
// have one name.
func standing(root string, faults []fault) error {
	var all []error
	seen := map[string]bool{}
	for _, f := range faults {
		if seen[f.name] {
			all = append(all, fmt.Errorf("two faults are named %s", f.name))
		}
		seen[f.name] = true
		if _, err := f.apply(root); err != nil {
			all = append(all, err)
		}
	}
	return errors.Join(all...)
}

// apply returns the file's content with the fault in it.
func (f fault) apply(root string) ([]byte, error) {
	body, err := os.ReadFile(filepath.Join(root, f.file))
	if err != nil {
		return nil, fmt.Errorf("fault %s: %w", f.name, err)
	}
	if n := strings.Count(string(body), f.old); n != 1 || f.old == f.new {
		return nil, fmt.Errorf("fault %s no longer applies: its text stands %d times in %s, not once:\n%s", f.name, n, f.file, f.old)
	}
	return []byte(strings.Replace(string(body), f.old, f.new, 1)), nil
}
