package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRebootCommand checks what is made of the reboot command's end.
func TestRebootCommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ command, want string }{
		"done":                    {"true", ""},
		"refused":                 {"echo a user is logged in; exit 3", "exit status 3: a user is logged in"},
		"leaves something behind": {"sleep 600 & echo $! > pid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			err := computer{rebootCommand: "cd " + dir + "; " + c.command}.Reboot(t.Context())
			endLeftBehind(t, filepath.Join(dir, "pid"))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, not %q", err, c.want)
			}
		})
	}
}

// endLeftBehind ends the process that a file names, if there is one.
func endLeftBehind(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("what the command left in the background was ended: %v", err)
	}
}

// TestHangingRebootCommand checks that a command that does not return is ended
// with all that it started when its time is over.
func TestHangingRebootCommand(t *testing.T) {
	t.Parallel()
	held := filepath.Join(t.TempDir(), "held")
	if err := syscall.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		// To open it waits until what the command starts opens it too, and to
		// read it waits until that has ended.
		pipe, err := os.Open(held)
		stop()
		if err == nil {
			_, err = io.Copy(io.Discard, pipe)
			err = errors.Join(err, pipe.Close())
		}
		ended <- err
	}()
	err := computer{rebootCommand: "sleep 600 > " + held + " & wait"}.Reboot(ctx)
	if err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the error is %v", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("what the command started still runs")
	}
}
