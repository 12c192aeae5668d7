package main

import (
	"errors"
	"fmt"
	"strings"
)

// fault is one deliberate fault: it changes one declaration of the product, and
// each of its suites must fail for it.
type fault struct {
	name string
	// in names the declaration as go doc does, after the package's folder:
	// "agent/run.State.fold", "agent/controller.hadRun". Which file holds it does
	// not matter.
	in string
	// old is code that occurs exactly once in the declaration, and new replaces
	// it. White space, line breaks and comments do not matter.
	old, new string
	// body replaces the whole body of a function, in place of old and new: such a
	// fault survives each rewrite of the function.
	body string
	by   []suite
}

// suite is some of the tests of a package, with the flags that they need.
type suite struct {
	// pkg is the package's folder, names are the tests, separated by "|".
	pkg, names string
	flags      []string
}

// pattern selects the tests for go test -run.
func (s suite) pattern() string { return "^(" + s.names + ")$" }

func tests(pkg, names string) []suite { return []suite{{pkg: pkg, names: names}} }

// simulated adds the simulation to the suites of a fault.
func simulated(more ...suite) []suite {
	return append(more, suite{pkg: "agent/sim", names: "TestSimulation", flags: []string{"-sim.seeds=2000", "-sim.failures=1"}})
}

// scripts, invariants and aborts are the tests of package run. The random cases are the
// same each time. A case that fails is not kept, because rapid would replay it
// without the fault.
var (
	scripts    = suite{pkg: "agent/run", names: "TestScripts"}
	invariants = suite{pkg: "agent/run", names: "TestInvariants", flags: randomCases}
	aborts     = suite{pkg: "agent/run", names: "TestInvariantsAfterAbort", flags: randomCases}

	randomCases = []string{"-rapid.seed=1", "-rapid.checks=2000", "-rapid.nofailfile", "-rapid.shrinktime=1s"}
)

// check reports all faults that do not apply to the source or do not compile, all
// tests that do not exist, and all names that two faults have.
func (s *source) check(faults []fault) error {
	c, err := newCompiler(s.root)
	if err != nil {
		return err
	}
	var all []error
	seen := map[string]bool{}
	for _, f := range faults {
		if seen[f.name] {
			all = append(all, fmt.Errorf("two faults are named %s", f.name))
		}
		seen[f.name] = true
		path, body, err := s.apply(f)
		if err == nil {
			err = wrap(f, c.compile(path, body))
		}
		if err != nil {
			all = append(all, err)
		}
		for _, by := range f.by {
			for name := range strings.SplitSeq(by.names, "|") {
				if err := s.hasTest(by.pkg, name); err != nil {
					all = append(all, fmt.Errorf("fault %s: %w", f.name, err))
				}
			}
		}
	}
	return errors.Join(all...)
}

func wrap(f fault, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("fault %s: %s: %w", f.name, f.in, err)
}

// apply returns the path of the file that a fault changes, and its content with
// the fault.
func (s *source) apply(f fault) (path string, body []byte, err error) {
	d, err := s.find(f.in)
	if err != nil {
		return "", nil, fmt.Errorf("fault %s: %w", f.name, err)
	}
	from, to := d.body[0], d.body[1]
	with := "{ " + f.body + " }"
	switch {
	case f.body == "":
		from, to, err = s.occurrence(d, f.old)
		with = f.new
	case from == 0:
		err = errors.New("it has no body")
	}
	if err == nil && string(d.file.body[from:to]) == with {
		err = errors.New("the fault changes nothing")
	}
	if err != nil {
		return "", nil, fmt.Errorf("fault %s: %s (%s:%d): %w", f.name, f.in, d.file.path, d.line, err)
	}
	return d.file.path, []byte(string(d.file.body[:from]) + with + string(d.file.body[to:])), nil
}
