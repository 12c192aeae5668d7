package exec

import (
	"errors"
	"io"
	"maps"
	"os"
	"testing"
	"time"
)

// clock fires the timeout of upgrade and the grace period on demand.
type clock struct{ limit, grace chan time.Time }

func newClock() clock { return clock{make(chan time.Time, 1), make(chan time.Time, 1)} }

func (c clock) after(d time.Duration) <-chan time.Time {
	switch d {
	case time.Hour:
		return c.limit
	case DefaultGrace:
		return c.grace
	default:
		return nil
	}
}

// ends waits until no process has a named pipe open for writing.
func (h *host) ends(pipe *os.File) {
	h.t.Helper()
	if _, err := io.Copy(io.Discard, pipe); err != nil {
		h.t.Fatal(err)
	}
}

// openPipe opens a named pipe for reading once somebody writes to it.
func (h *host) openPipe(name string) *os.File {
	h.t.Helper()
	f, err := os.Open(h.path(name))
	if err != nil {
		h.t.Fatal(err)
	}
	return f
}

func TestTimeLimitEndsTheWholeGroup(t *testing.T) {
	t.Parallel()
	const stubborn = `sh -c 'trap "" TERM; exec 7>"$WORK/alive"; echo ready; while :; do sleep 3600; done' & `
	for name, row := range map[string]struct {
		script string
		// trapped says that the script ends by itself at SIGTERM.
		trapped bool
		want    string
	}{
		"script and child ignore SIGTERM": {"trap '' TERM; " + stubborn + "while :; do sleep 3600; done", false, `was ended after it said "ready"`},
		"script ends, child ignores it":   {`trap 'echo cleaning up; echo x >"$WORK/trapped"; exit 0' TERM; ` + stubborn + "wait", true, `was ended after it said "cleaning up"`},
		"script ends, child has no lock":  {`trap 'echo x >"$WORK/trapped"; exit 0' TERM; ` + `exec 8>&-; ` + stubborn + "wait", true, `was ended after it said "ready"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, map[string]string{"upgrade": row.script})
			c := newClock()
			h.opts.After = c.after
			h.pipe("alive")
			h.pipe("trapped")
			s := h.open()
			heard, j := messages()
			ended := begin(t.Context(), s.Upgrade, j)
			alive := h.openPipe("alive")
			defer closeFile(t, alive)
			await(t, heard, "ready")
			c.limit <- time.Time{}
			if row.trapped {
				h.hear("trapped")
			}
			c.grace <- time.Time{}
			got := <-ended
			wantError(t, got.err, "upgrade exceeded its time limit of 1h0m0s and ", row.want, "41-upgrade.log")
			h.ends(alive)
			if _, err := s.Resume(t.Context(), job()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestScriptThatEndsAtOnceIsGivenNoGrace(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": `trap 'echo cleaned up >>"$WORK/effect"; exit 0' TERM; echo ready; while :; do read x <"$WORK/never"; done`})
	h.pipe("never")
	c := newClock()
	h.opts.After = c.after
	heard, j := messages()
	ended := begin(t.Context(), h.open().Upgrade, j)
	await(t, heard, "ready")
	c.limit <- time.Time{}
	// The grace period never ends here: the test is that the call returns.
	wantError(t, (<-ended).err, "exceeded its time limit")
	if got := h.read("effect"); got != "cleaned up\n" {
		t.Fatalf("the script left %q", got)
	}
}

func TestChildHasItsGraceThoughTheScriptHasEnded(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": `
		sh -c '
			exec 5<"$WORK/leader"
			clean() { read x <&5; echo x >"$WORK/alone"; read x <"$WORK/go"; echo cleaned up >"$WORK/effect"; exit; }
			trap clean TERM; echo ready; while :; do read x <"$WORK/never"; done' &
		exec 6<>"$WORK/leader"; trap 'exit 0' TERM; wait`})
	for _, name := range []string{"leader", "alone", "go", "never"} {
		h.pipe(name)
	}
	c := newClock()
	h.opts.After = c.after
	heard, j := messages()
	ended := begin(t.Context(), h.open().Upgrade, j)
	await(t, heard, "ready")
	c.limit <- time.Time{}
	h.hear("alone")
	h.say("go", "on")
	wantError(t, (<-ended).err, "exceeded its time limit")
	if got := h.read("effect"); got != "cleaned up\n" {
		t.Fatalf("the child left %q", got)
	}
}

func TestEachActionHasItsOwnLimit(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	limits := Timeouts{Versions: 1, Prepare: 2, Upgrade: 3, Resume: 4, Verify: 5, Rollback: 6}
	h.opts.Timeouts = limits
	for _, a := range []action{actionPrepare, actionVerify, actionRollback} {
		h.script(string(a), "#!/bin/sh\n")
	}
	// A wait for the lock asks as well: a process that another test starts has
	// every descriptor of ours for a moment.
	asked := map[time.Duration]bool{}
	h.opts.After = func(d time.Duration) <-chan time.Time {
		asked[d] = true
		return nil
	}
	s := h.open()
	for i, a := range []action{actionVersions, actionPrepare, actionUpgrade, actionResume, actionVerify, actionRollback} {
		if _, err := run(t.Context(), s, a, job()); err != nil {
			t.Fatal(err)
		}
		if want := map[time.Duration]bool{time.Duration(i + 1): true}; !maps.Equal(asked, want) {
			t.Errorf("the limits of %s are %v, want %v", a, asked, want)
		}
		clear(asked)
	}
}

func TestSignalToAGroupThatHasEnded(t *testing.T) {
	t.Parallel()
	h := newHost(t, nil)
	s := h.open()
	lock, err := s.acquire(t.Context(), actionUpgrade, func(int, string) {})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.openOutput(call{action: actionUpgrade, job: job()}, lock)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.start(call{action: actionUpgrade, job: job()}, "", lock, out)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited
	s.stop(p, lock)
	if err := errors.Join(p.Err, out.close()); err != nil {
		t.Fatal(err)
	}
}
