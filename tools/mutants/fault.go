package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// fault is one deliberate fault: it makes one function of the product wrong, and each of its
// suites must fail for it.
//
// It says nothing of what the function looks like today: it replaces all that it does, or leaves
// out a call of a library. So it survives each rewrite and each renaming but that of the
// function itself.
type fault struct {
	name string
	// in names the function as go doc does, after the package's folder:
	// "agent/run.State.fold", "agent/controller.hadRun". Which file holds it does
	// not matter.
	in string
	// body is what the function does in place of what it did. $0 is its receiver, $1 its first parameter, and
	// zero1 the zero value of its first result.
	body string
	// without is a function of a library whose call, an argument of another call, is left
	// out. It is given in place of body.
	without string
	by      []suite
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
	return append(more, suite{pkg: "agent/testing/sim", names: "TestSimulation", flags: []string{"-sim.seeds=2000", "-sim.failures=1"}})
}

// scripts and invariants are the tests of package run. The random cases are the same each
// time. A case that fails is not kept, because rapid would replay it without the fault.
var (
	scripts    = suite{pkg: "agent/run", names: "TestScripts"}
	invariants = suite{pkg: "agent/run", names: "TestInvariants", flags: randomCases}
	// sideBySide and independent play the runs of several environments.
	sideBySide  = suite{pkg: "agent/run", names: "TestInvariantsSideBySide", flags: randomCases}
	independent = suite{pkg: "agent/run", names: "TestEnvironmentsAreIndependent", flags: randomCases}

	// rollbacks plays rollbacks of runs.
	rollbacks = suite{pkg: "agent/run", names: "TestInvariantsOfRollbacks", flags: randomCases}
	// overRuns plays runs that go on where others ended.
	overRuns = suite{pkg: "agent/run", names: "TestInvariantsOverRuns", flags: []string{"-rapid.seed=1", "-rapid.checks=300", "-rapid.nofailfile", "-rapid.shrinktime=1s"}}

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
	fn, err := s.find(f.in)
	if err != nil {
		return "", nil, fmt.Errorf("fault %s: %w", f.name, err)
	}
	// What goes stays in the file where it is never executed, so that no import is unused.
	text, begin := fn.file.body, fn.body.from+len("{")
	gone, first := span{begin, begin}, ""
	if f.body != "" {
		first, err = fn.fill(f.body)
		first = " if true { " + first + " }; "
	} else if gone, err = fn.argument(f.without); err == nil {
		call := strings.Trim(string(text[gone.from:gone.to]), ", \t\n")
		first = " if false { _ = " + call + " }; "
	}
	if err != nil {
		return "", nil, fmt.Errorf("fault %s: %s (%s:%d): %w", f.name, f.in, fn.file.path, fn.line, err)
	}
	return fn.file.path, slices.Concat(text[:begin], []byte(first), text[begin:gone.from], text[gone.to:]), nil
}

var placeholder = regexp.MustCompile(`\$\d|\bzero\d`)

// fill replaces the placeholders in the body of a fault by names and types of the function.
func (fn function) fill(body string) (string, error) {
	var wrong error
	filled := placeholder.ReplaceAllStringFunc(body, func(p string) string {
		n, _ := strconv.Atoi(p[len(p)-1:]) // It is a digit.
		switch {
		case p[0] == '$' && n < len(fn.names) && fn.names[n] != "" && fn.names[n] != "_":
			return fn.names[n]
		case p[0] == 'z' && n > 0 && n <= len(fn.results):
			return "*new(" + fn.results[n-1] + ")"
		}
		wrong = fmt.Errorf("it has no %s", p)
		return p
	})
	return filled, wrong
}
