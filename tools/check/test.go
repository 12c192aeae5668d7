package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// test runs go test, prints a line for each package and what the failed tests print, and
// notes which tests were skipped.
func (c *checker) test(ctx context.Context, args ...string) error {
	cmd := c.prepare(ctx, "go", append([]string{"test", "-json", "-timeout=5m"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	r := newReport()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		fmt.Print(r.add(lines.Bytes()))
	}
	c.missing = append(c.missing, r.skipped()...)
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		return fmt.Errorf("go test: %w; see above", err)
	}
	return nil
}

// report reads the events of go test.
type report struct {
	// printed is what each package and each of its tests has printed.
	printed map[[2]string]string
	// reasons are the skipped tests by their packages and what they said.
	reasons map[[2]string][]string
}

func newReport() *report {
	return &report{printed: map[[2]string]string{}, reasons: map[[2]string][]string{}}
}

// add reads a line and returns what to print.
func (r *report) add(line []byte) string {
	var e event
	if json.Unmarshal(line, &e) != nil {
		// What is no event is the message of a compiler.
		return string(line) + "\n"
	}
	key := [2]string{folderOf(e.Package), e.Test}
	switch {
	case e.Action == "output" || e.Action == "build-output":
		r.printed[key] += e.Output
		if e.Action == "build-output" {
			return e.Output
		}
	case e.Action == "skip" && e.Test != "" && !strings.Contains(e.Test, "/"):
		reason := [2]string{key[0], reasonIn(r.printed[key])}
		r.reasons[reason] = append(r.reasons[reason], e.Test)
	case e.Action == "fail":
		return r.printed[key]
	case e.Action == "pass" && e.Test == "":
		cached := ""
		if strings.Contains(r.printed[key], "(cached)") {
			cached = ", as before"
		}
		return fmt.Sprintf("  %5.1fs  %s%s\n", e.Elapsed, key[0], cached)
	}
	return ""
}

// skipped says which tests were skipped, and why.
func (r *report) skipped() (says []string) {
	for reason, tests := range r.reasons {
		slices.Sort(tests)
		says = append(says, fmt.Sprintf("%s of %s: %s (%s)", count(len(tests), "test"), reason[0], strings.Join(tests, " "), reason[1]))
	}
	slices.Sort(says)
	return says
}

// reasonIn returns what a skipped test said last: file:line: reason.
func reasonIn(printed string) string {
	reason := "it says no reason"
	for line := range strings.Lines(printed) {
		if _, text, found := strings.Cut(strings.TrimSpace(line), ".go:"); found {
			_, reason, _ = strings.Cut(text, ": ")
		}
	}
	return reason
}
