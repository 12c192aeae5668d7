package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/logindtest"
)

// TestRebootCommand checks what is made of the reboot command's end.
func TestRebootCommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ command, want string }{
		"done":                    {"true", ""},
		"refused":                 {"echo a user is logged in; exit 3", "exit status 3: a user is logged in"},
		"refused without a word":  {"exit 3", "exit status 3"},
		"refused with many":       {"head -c 3000000 /dev/zero; echo; echo a user is logged in >&2; exit 3", "exit status 3: a user is logged in"},
		"leaves something behind": {"sleep 600 & echo $! > pid", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			err := computer{rebootCommand: "cd " + dir + "; " + c.command, rebootLog: filepath.Join(dir, "log")}.Reboot(t.Context(), strategy.Job{})
			endLeftBehind(t, filepath.Join(dir, "pid"))
			if (err == nil) != (c.want == "") || err != nil && !strings.HasSuffix(err.Error(), c.want) {
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

// limited is a context whose time is over where it is cancelled.
type limited struct{ context.Context }

func (l limited) Err() error {
	if l.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
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
	err := computer{rebootCommand: "sleep 600 > " + held + " & wait", rebootLog: held + ".log"}.Reboot(limited{ctx}, strategy.Job{})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(testTimeout):
		t.Error("what the command started still runs")
	}
}

// TestRebootCommandOutlivesTheWorker checks that the end of the worker does not
// end the command half-way.
func TestRebootCommandOutlivesTheWorker(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		result <- computer{rebootCommand: "exec 3<> " + path + "; read go <&3; echo rebooted", rebootLog: path + ".log"}.Reboot(ctx, strategy.Job{})
	}()
	pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	// The next worker asks once more, as that one may not have.
	again := filepath.Join(filepath.Dir(path), "again")
	next := computer{rebootCommand: "touch " + again, rebootLog: path + ".log"}
	if err := next.Reboot(t.Context(), strategy.Job{}); err != nil {
		t.Errorf("a reboot that is in progress is not accepted: %v", err)
	}
	if _, err := os.Stat(again); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a second command is started beside the first: %v", err)
	}
	if _, err := pipe.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	if err := pipe.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "see the command end", func() bool {
		said, err := os.ReadFile(path + ".log")
		return err == nil && string(said) == "rebooted\n"
	})
}

// TestRebootCommandPrintsWithoutEnd checks that a command is ended in its time
// however much it prints, and that little of that is kept.
func TestRebootCommandPrintsWithoutEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	log := filepath.Join(t.TempDir(), "log")
	// Some 3 MB in its time: far more than is kept, and not so fast that the file
	// has to be emptied all the time.
	err := computer{rebootCommand: "while :; do printf '%65536s\\n' x; sleep 0.02; done", rebootLog: log}.Reboot(ctx, strategy.Job{})
	if took := time.Since(deadlineOf(t, ctx)); !errors.Is(err, context.DeadlineExceeded) || took > testTimeout/4 {
		t.Errorf("it ended %s after its time, with %v", took, err)
	}
	var taken syscall.Stat_t
	if err := syscall.Stat(log, &taken); err != nil || taken.Blocks*512 > 2*maxOutput {
		t.Errorf("the log takes %d bytes, %v", taken.Blocks*512, err)
	}
}

// TestRebootLogKeepsItsEnd checks that a reboot log which is bounded while the command
// prints its last line has that line: it is why a reboot was refused.
func TestRebootLogKeepsItsEnd(t *testing.T) {
	t.Parallel()
	for range 100 {
		file, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, many := file.Write(make([]byte, maxOutput+1))
			_, last := file.WriteString("\na user is logged in\n")
			done <- errors.Join(many, last)
		}()
		for printing := true; printing; {
			select {
			case err := <-done:
				if printing = false; err != nil {
					t.Fatal(err)
				}
			default:
			}
			printed{file}.bound()
		}
		if last := (printed{file}).last(); last != "a user is logged in" {
			t.Fatalf("the last line is %q", last)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func deadlineOf(t *testing.T, ctx context.Context) time.Time {
	t.Helper()
	end, ok := ctx.Deadline()
	if !ok {
		t.Fatal("there is no deadline")
	}
	return end
}

// waitFor waits until done returns true.
func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("cannot %s", what)
		}
	}
}

// rebootJob is a job whose progress is kept.
func rebootJob(told *[]string) strategy.Job {
	return strategy.Job{Tenant: "acme", Host: "h01", Run: 41, Progress: func(_ int, text string) { *told = append(*told, text) }}
}

// TestRebootByLogind checks that a machine without a reboot command asks logind, tells
// the users why, and tells what the reboot waits for.
func TestRebootByLogind(t *testing.T) {
	t.Parallel()
	backup := logindtest.Inhibitor{What: "shutdown", Who: "backup", Why: "copies the database", Mode: "block"}
	for policy, want := range map[string]string{"wait": "reboot 1", "override": "reboot 16"} {
		bus := logindtest.StartBus(t)
		fake := (&logindtest.Logind{Version: 257}).Start(t, bus)
		fake.Inhibit(t, backup)
		var told []string
		job := rebootJob(&told)
		keep := job.Progress
		job.Progress = func(percent int, text string) {
			keep(percent, text)
			fake.Inhibit(t)
		}
		machine := (&workerCommand{State: t.TempDir(), Inhibitors: policy}).computer(slog.New(slog.DiscardHandler))
		machine.bus = bus.Address
		err := machine.Reboot(t.Context(), job)
		if calls := fake.Calls(); err != nil || !slices.Equal(calls, []string{"wall Run 41 of tenant acme reboots this host after its upgrade.", want}) {
			t.Errorf("%s: it was called by %q, %v", policy, calls, err)
		}
		if waits := slices.Equal(told, []string{"waits to reboot, inhibited by backup (copies the database)"}); waits != (policy == "wait") || len(told) > 1 {
			t.Errorf("%s: it told %q", policy, told)
		}
	}
}

// TestRebootWithoutLogind checks that systemctl reboots a machine without logind, and
// that its refusal is told.
func TestRebootWithoutLogind(t *testing.T) {
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	script := "#!/bin/sh\necho \"$@\" > " + said + "\necho 'Failed to set wall message' >&2\necho 'Access denied' >&2\nexit $(cat " + dir + "/status)\n"
	if err := os.WriteFile(filepath.Join(dir, "systemctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH")) // The real one would reboot the machine of the test.
	for status, want := range map[string]string{"0": "", "1": "systemctl reboot: exit status 1: Access denied"} {
		if err := os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o600); err != nil {
			t.Fatal(err)
		}
		var told []string
		machine := (&workerCommand{State: t.TempDir(), Inhibitors: "wait"}).computer(slog.New(slog.DiscardHandler))
		machine.bus = "unix:path=" + dir + "/nothing"
		err := machine.Reboot(t.Context(), rebootJob(&told))
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("the error is %v, want %q", err, want)
		}
		if arguments, err := os.ReadFile(said); err != nil || string(arguments) != "reboot\n" {
			t.Errorf("systemctl was run with %q, %v", arguments, err)
		}
	}
}
