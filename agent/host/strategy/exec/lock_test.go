package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// helperFolder makes this test binary a worker that upgrades, see TestMain.
const helperFolder = "EXEC_TEST_HELPER_FOLDER"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == servesNative {
		os.Exit(serveNative(os.Args[2]))
	}
	if root := os.Getenv(helperFolder); root != "" {
		os.Exit(helper(root))
	}
	os.Exit(m.Run())
}

// helper is a worker that is to be killed, or stopped for a while, in the middle
// of Upgrade.
func helper(root string) int {
	limit, err := limitOfHelper()
	if err == nil {
		err = help(root, limit)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func help(root string, limit time.Duration) error {
	s, err := New(Options{
		Dir: root + "/scripts", StateDir: root + "/state", Timeouts: Timeouts{Upgrade: limit},
	})
	if err != nil {
		return err
	}
	_, err = s.Upgrade(context.Background(), job())
	return err
}

func TestScriptSurvivesTheWorkerAndResumeWaitsForIt(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{
		"upgrade": `echo begun >"$WORK/begun"; read x <"$WORK/go"
			echo '{"progress": 70, "message": "printing without a worker"}'; echo on standard error >&2
			read x <"$WORK/end"; echo upgraded >"$WORK/effect"`,
		"resume": `cat "$WORK/effect"; exit 10`,
	})
	for _, name := range []string{"begun", "go", "end"} {
		h.pipe(name)
	}
	worker := osexec.Command(os.Args[0])
	worker.Env = append(os.Environ(), helperFolder+"="+h.dir)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	h.hear("begun")
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var killed *osexec.ExitError
	if err := worker.Wait(); !errors.As(err, &killed) {
		t.Fatalf("the worker ended with %v", err)
	}

	heard, j := messages()
	ended := begin(t.Context(), h.open().Resume, j)
	await(t, heard, "waiting for upgrade of run 41")
	h.say("go", "on")
	await(t, heard, "on standard error")
	h.say("end", "now")
	if got := <-ended; got.outcome != strategy.RebootRequired || got.err != nil {
		t.Fatalf("resume: %v, %v", got.outcome, got.err)
	}
	if got := h.read("state/output/41-resume.log"); got != "upgraded\n" {
		t.Fatalf("resume ran before the upgrade had ended: it saw %q", got)
	}
	if got := h.read("state/output/41-upgrade.log"); !strings.Contains(got, "printing without a worker") {
		t.Fatalf("the output is %q", got)
	}
}

func TestStoppedWorkerLeavesTheScriptRunning(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{
		"upgrade": `echo begun >"$WORK/begun"; read x <"$WORK/go"; echo upgraded >"$WORK/effect"`,
		"resume":  `cat "$WORK/effect"`,
	})
	h.pipe("begun")
	h.pipe("go")
	s := h.open()
	ctx, stop := context.WithCancel(t.Context())
	upgrade := begin(ctx, s.Upgrade, job())
	h.hear("begun")
	stop()
	if got := <-upgrade; !errors.Is(got.err, context.Canceled) || !strings.Contains(got.err.Error(), "upgrade continues without the worker") {
		t.Fatalf("upgrade: %v", got.err)
	}

	heard, j := messages()
	ctx, stop = context.WithCancel(t.Context())
	waiting := begin(ctx, s.Resume, j)
	await(t, heard, "waiting for upgrade of run 41")
	stop()
	if got := <-waiting; !errors.Is(got.err, context.Canceled) || !strings.Contains(got.err.Error(), "upgrade of run 41 still runs") {
		t.Fatalf("resume: %v", got.err)
	}

	resume := begin(t.Context(), s.Resume, j)
	await(t, heard, "waiting for upgrade of run 41")
	h.say("go", "on")
	if got := <-resume; got.outcome != strategy.Done || got.err != nil {
		t.Fatalf("resume: %v, %v", got.outcome, got.err)
	}
	if got := h.read("effect"); got != "upgraded\n" {
		t.Fatalf("the effect is %q", got)
	}
}

func TestCallsRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const script = `mkdir "$WORK/running" && echo x >>"$WORK/count" && rmdir "$WORK/running"`
	h := newHost(t, map[string]string{"upgrade": script, "resume": script})
	s := h.open()
	var all []<-chan answer
	for range 10 {
		all = append(all, begin(t.Context(), s.Upgrade, job()), begin(t.Context(), h.open().Resume, job()))
	}
	for _, ended := range all {
		if got := <-ended; got.err != nil {
			t.Fatal(got.err)
		}
	}
	if got := strings.Count(h.read("count"), "x"); got != 20 {
		t.Fatalf("%d scripts ran, want 20", got)
	}
}

// background leaves a process behind and writes down its process id.
const background = `sleep 3600 %s & echo $! >"$WORK/pid"`

func TestProcessLeftBehindHoldsTheLock(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": strings.Replace(background, "%s", "", 1), "resume": `touch "$WORK/resumed"`})
	h.opts.Timeouts.Resume = 7 * time.Second
	h.opts.After = func(d time.Duration) <-chan time.Time {
		fire := make(chan time.Time, 1)
		if d == 7*time.Second {
			fire <- time.Time{}
		}
		return fire
	}
	s := h.open()
	if _, err := s.Upgrade(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	pid := leftBehind(h)
	_, err := s.Resume(t.Context(), job())
	wantError(t, err, "cannot run resume: upgrade of run 41 still runs after 7s of waiting, in process "+strconv.Itoa(pid)+" (", "must close descriptor 8")
	if _, err := os.Stat(h.path("resumed")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("resume was run: %v", err)
	}
}

func TestProcessThatClosesTheLockDoesNotHoldIt(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": strings.Replace(background, "%s", "8>&-", 1)})
	s := h.open()
	if _, err := s.Upgrade(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	leftBehind(h)
	if outcome, err := s.Resume(t.Context(), job()); outcome != strategy.Done || err != nil {
		t.Fatalf("resume: %v, %v", outcome, err)
	}
}

// leftBehind is the process that background left; it ends with the test.
func leftBehind(h *host) int {
	h.t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(h.read("pid")))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			h.t.Errorf("cannot end the process left behind: %v", err)
		}
	})
	return pid
}

func TestHolderWithoutAName(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"": "an earlier script", "{": "an earlier script", "{\"action\":5}": "an earlier script",
		`{"action":"versions","run":0}`: "versions", `{"action":"verify","run":3}`: "verify of run 3",
	} {
		t.Run(content, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, nil)
			h.open()
			if err := os.WriteFile(h.path("state/exec.lock"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			lock, err := h.open().openLock()
			if err != nil {
				t.Fatal(err)
			}
			defer closeFile(t, lock)
			if got := readHolder(lock).String(); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		})
	}
}
