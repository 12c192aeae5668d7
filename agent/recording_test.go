package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "record the session of the README anew")

const readme = "../README.md"

var recording = regexp.MustCompile("(?s)<!-- This session is recorded by make record. -->\n```console\n(.*?)```")

// moving is what differs from one recording to the next: times, how long something
// takes, progress.
var moving = regexp.MustCompile(`\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d [\d:]+ UTC|\d{4}-\d\d-\d\d[T ][\d:]+Z?|\b\d\d:\d\d(:\d\d)?\b|\b(\d+d)?(\d+h)?(\d+m)?\d+s\b|\b\d+d(\d+h)?(\d+m)?\b|\b\d+h(\d+m)?\b|\b\d+m\b|\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b`)

// TestRecording plays the session of the README against a site with simulated hosts.
// What is shown there is what the commands print now, but for what moves. With
// -update it is written anew.
func TestRecording(t *testing.T) {
	t.Parallel()
	text := read(t, readme)
	found := recording.FindStringSubmatchIndex(text)
	if found == nil {
		t.Fatal("the README has no recorded session")
	}
	shown := text[found[2]:found[3]]
	now := play(t, commands(shown))
	if *update {
		if err := os.WriteFile(readme, []byte(text[:found[2]]+strings.Join(now, "")+text[found[3]:]), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, got := shape(shown), shape(strings.Join(now, "")); !slices.Equal(want, got) {
		t.Errorf("the README shows\n%s\nand it is now\n%s\nrun: make record", strings.Join(want, "\n"), strings.Join(got, "\n"))
	}
}

// commands returns the commands of a session.
func commands(session string) (all []string) {
	for line := range strings.Lines(session) {
		if command, found := strings.CutPrefix(line, "$ "); found {
			all = append(all, strings.TrimSpace(command))
		}
	}
	return all
}

// play executes the commands and returns each with its output.
func play(t *testing.T, commands []string) (session []string) {
	t.Helper()
	f := newProgram(t)
	data := f.path("dev")
	inside, err := os.OpenFile(f.path("dev.log"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	dev := exec.CommandContext(context.WithoutCancel(t.Context()), f.bin, "dev", "--hosts", "3", "--data", data, "--listen", "127.0.0.1:0", "--step", "1s") //nolint:gosec // our own binary
	dev.Stdout, dev.Stderr = inside, inside
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dev.Process.Signal(syscall.SIGTERM)
		_ = dev.Wait()
		_ = inside.Close()
	})
	for deadline := time.Now().Add(patience); strings.Count(read(t, f.path("dev.log")), "host is online") < 3 || !strings.Contains(read(t, f.path("dev.log")), "is ready"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("dev is not ready:\n%s", read(t, f.path("dev.log")))
		}
	}
	// On no day of the week does the window open during the session.
	example := data + "/example.yaml"
	days := strings.Replace(read(t, example), "Saturday, Sunday", time.Now().UTC().AddDate(0, 0, 3).Weekday().String(), 1)
	if err := os.WriteFile(example, []byte(days), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		script := ". " + data + "/dev.env; " + strings.ReplaceAll(command, "/tmp/dev", data)
		shell := exec.CommandContext(t.Context(), "bash", "-o", "pipefail", "-c", script) //nolint:gosec // our own README
		shell.Env = append(os.Environ(), "PATH="+filepath.Dir(f.bin)+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		// A run that was not completed is what the session is about.
		if err != nil && shell.ProcessState.ExitCode() != 3 {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		session = append(session, "$ "+command+"\n"+strings.ReplaceAll(string(out), data, "/tmp/dev"))
	}
	return session
}

// step is a line of watch about a host. Which of two steps that follow each other at
// once is printed depends on the moment, so only the last step of a host counts.
var step = regexp.MustCompile(`^TIME +(h\d\d) +\S`)

// shape is what a session shows, without what moves.
func shape(session string) (lines []string) {
	last := map[string]int{}
	for line := range strings.Lines(session) {
		line = strings.TrimRight(moving.ReplaceAllString(line, "TIME"), " \n")
		line = regexp.MustCompile(`  +`).ReplaceAllString(line, "  ")
		if host := step.FindStringSubmatch(line); host != nil {
			if at, seen := last[host[1]]; seen {
				lines[at] = ""
			}
			last[host[1]] = len(lines)
		}
		lines = append(lines, line)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return lines
}
