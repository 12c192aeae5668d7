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

// timeout bounds the tests of one fault. A test that does not end has not
// caught anything.
const timeout = "15m"

// play puts a fault in place, runs a suite, and returns the tests that failed.
// That none failed is an error, and so is a fault that does not compile.
func play(ctx context.Context, root string, f fault, by suite) (caught string, err error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	overlay, err := f.overlay(root, dir)
	if err != nil {
		return "", err
	}
	// What vet has to say of a fault is no test.
	args := []string{"test", "-json", "-vet=off", "-count=1", "-failfast", "-timeout=" + timeout, "-overlay=" + overlay, "-run=" + by.tests, "./" + by.pkg}
	command := exec.CommandContext(ctx, "go", append(args, by.flags...)...)
	command.Dir, command.Stderr = root, os.Stderr
	// Whoever interrupts this has the tests end, too, not only go test.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	command.Stdout = &out
	// That tests fail is what is hoped for; which, the output tells.
	if err := command.Run(); err != nil && command.ProcessState == nil {
		return "", err
	}
	return verdict(&out)
}

// overlay writes the file with the fault and the file that has go test take it.
func (f fault) overlay(root, dir string) (string, error) {
	body, err := f.apply(root)
	if err != nil {
		return "", err
	}
	changed, path := filepath.Join(dir, filepath.Base(f.file)), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, body, 0o600); err != nil {
		return "", err
	}
	body, err = json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, f.file): changed}})
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, body, 0o600)
}

// happening is a line of what go test -json says (go doc test2json).
type happening struct{ Action, Test, Output string }

// verdict returns the tests that failed.
func verdict(out *bytes.Buffer) (string, error) {
	var failed []string
	var said strings.Builder
	for decoder := json.NewDecoder(out); decoder.More(); {
		var h happening
		if err := decoder.Decode(&h); err != nil {
			return "", fmt.Errorf("cannot read what go test says: %w", err)
		}
		said.WriteString(h.Output)
		switch {
		case h.Action == "build-fail":
			return "", fmt.Errorf("it does not compile:\n%s", said.String())
		case strings.HasPrefix(h.Output, "panic: test timed out"):
			return "", errors.New("the tests did not end within " + timeout)
		case h.Action == "fail" && h.Test != "":
			failed = append(failed, h.Test)
		}
	}
	if len(failed) == 0 {
		return "", errors.New("no test failed")
	}
	return shown(failed), nil
}

// shown names the first tests that failed. One that failed by its parts is
// named by these.
func shown(failed []string) string {
	const most = 3
	var names []string
	for _, name := range failed {
		part := func(other string) bool { return strings.HasPrefix(other, name+"/") }
		if !slices.ContainsFunc(failed, part) {
			names = append(names, name)
		}
	}
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
