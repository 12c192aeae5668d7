package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// timeout bounds the tests of one fault. A test that does not end catches
// nothing.
const timeout = "15m"

// play applies a fault, runs a suite, and returns the tests that failed. It is an
// error if no test failed, or if the fault does not compile.
func (s *source) play(ctx context.Context, f fault, by suite) (caught string, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := s.overlay(f, dir)
	if err != nil {
		return "", err
	}
	// A complaint of vet is no failed test.
	args := []string{"test", "-json", "-vet=off", "-count=1", "-failfast", "-timeout=" + timeout, "-overlay=" + overlay, "-run=" + by.pattern(), "./" + by.pkg}
	command := exec.CommandContext(ctx, "go", append(args, by.flags...)...)
	command.Dir, command.Stderr = s.root, os.Stderr
	// An interrupt ends the tests, too, not only go test.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	command.Stdout = &out
	// Tests are expected to fail; the output tells which did.
	if err := command.Run(); err != nil && command.ProcessState == nil {
		return "", err
	}
	return verdict(&out)
}

// overlay writes the changed file, and the file that tells go test to use it.
func (s *source) overlay(f fault, dir string) (string, error) {
	original, body, err := s.apply(f)
	if err != nil {
		return "", err
	}
	changed, path := filepath.Join(dir, filepath.Base(original)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, body, 0o600); err != nil {
		return "", err
	}
	body, err = json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(s.root, original): changed}})
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, body, 0o600)
}

// testEvent is a line of the output of go test -json (go doc test2json).
type testEvent struct{ Action, Test, Output string }

// verdict returns the tests that failed.
func verdict(out *bytes.Buffer) (string, error) {
	var failed []string
	var said strings.Builder
	for decoder := json.NewDecoder(out); decoder.More(); {
		var e testEvent
		if err := decoder.Decode(&e); err != nil {
			return "", fmt.Errorf("cannot read the output of go test: %w", err)
		}
		said.WriteString(e.Output)
		switch {
		case e.Action == "build-fail":
			return "", fmt.Errorf("it does not compile:\n%s", said.String())
		case strings.HasPrefix(e.Output, "panic: test timed out"):
			return "", errors.New("the tests did not end within " + timeout)
		case e.Action == "fail" && e.Test != "":
			failed = append(failed, e.Test)
		}
	}
	if len(failed) == 0 {
		return "", errors.New("no test failed")
	}
	return shown(failed), nil
}

// shown names the first tests that failed. A test whose subtests failed is left
// out, and its subtests are named.
func shown(failed []string) string {
	const most = 3
	var names []string
	for _, name := range failed {
		subtest := func(other string) bool { return strings.HasPrefix(other, name+"/") }
		if !slices.ContainsFunc(failed, subtest) {
			names = append(names, name)
		}
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
