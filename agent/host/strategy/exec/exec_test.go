package exec

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"no folder":        {func(o *Options) { o.Dir = "" }, "it needs a folder of scripts or a program"},
		"no state folder":  {func(o *Options) { o.StateDir = "" }, "and a state folder"},
		"negative timeout": {func(o *Options) { o.Timeouts.Verify = -time.Second }, "the time limit of verify is -1s"},
		"negative limit":   {func(o *Options) { o.OutputLimit = -1 }, "output limit -1"},
		"negative grace":   {func(o *Options) { o.Grace = -1 }, "grace -1ns"},
		"state is a file":  {func(o *Options) { o.StateDir = os.Args[0] }, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := Options{Dir: t.TempDir(), StateDir: t.TempDir()}
			row.change(&o)
			_, err := New(o)
			wantError(t, err, "cannot use exec strategy: ", row.want)
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := New(Options{Dir: t.TempDir(), StateDir: t.TempDir(), Timeouts: Timeouts{Prepare: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[action]time.Duration{
		"versions": time.Minute, "prepare": time.Second, "prepare-rollback": time.Second, "upgrade": time.Hour,
		"resume": time.Hour, "verify": 10 * time.Minute, "rollback": time.Hour,
		"plan": 10 * time.Minute, "missing": 10 * time.Minute, "booted": time.Minute, "confirm": 10 * time.Minute,
	}
	if !maps.Equal(s.limits, want) || s.output != DefaultOutputLimit || s.grace != DefaultGrace || s.after == nil {
		t.Fatalf("got %v, %d, %s", s.limits, s.output, s.grace)
	}
}

// run calls the action of a name, as an outcome and an error.
func run(ctx context.Context, s *Strategy, a action, j strategy.Job) (strategy.Outcome, error) {
	only := func(err error) (strategy.Outcome, error) {
		if err != nil {
			return 0, err
		}
		return strategy.Done, nil
	}
	switch a {
	case actionPrepare:
		_, err := s.Prepare(ctx, j)
		return only(err)
	case actionUpgrade:
		return s.Upgrade(ctx, j)
	case actionResume:
		return s.Resume(ctx, j)
	case actionVerify:
		return only(s.Verify(ctx, j))
	case actionRollback:
		return s.Rollback(ctx, j)
	case actionPlan:
		_, err := s.Plan(ctx, j)
		return only(err)
	case actionMissing:
		_, err := s.Missing(ctx, j)
		return only(err)
	case actionBooted:
		_, err := s.Booted(ctx)
		return only(err)
	case actionConfirm:
		return only(s.Confirm(ctx, strategy.Boot{Running: "1.1"}))
	default:
		_, err := s.Versions(ctx)
		return only(err)
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	every := slices.Concat(required, []action{"prepare", "verify", "rollback", "confirm"})
	type row struct {
		script  string
		actions []action
		want    strategy.Outcome
		errors  []string
	}
	for name, row := range map[string]row{
		"0 is done":                     {"echo a 1; exit 0", every, strategy.Done, nil},
		"10 asks for a reboot":          {"exit 10", []action{"upgrade", "resume", "rollback"}, strategy.RebootRequired, nil},
		"10 of another":                 {"exit 10", []action{"versions", "plan", "prepare", "missing", "verify", "booted", "confirm"}, 0, []string{"only upgrade, resume and rollback may return", ".log"}},
		"11 is not done":                {"exit 11", []action{"resume"}, strategy.NotDone, nil},
		"11 of another":                 {"exit 11", []action{"versions", "prepare", "upgrade", "missing", "verify", "booted", "confirm"}, 0, []string{"which only resume, rollback, prepare-rollback and plan may return"}},
		"75 fails":                      {"echo later >&2; exit 75", every, 0, []string{"later: exit status 75, output in "}},
		"the last line says why":        {"echo one >&2; echo two >&2; echo >&2; exit 3", every, 0, []string{"two: exit status 3"}},
		"a colour after the last line":  {`printf 'no room\n\033[0m\n' >&2; exit 1`, every, 0, []string{"no room: exit status 1"}},
		"a message says why":            {`echo '{"message":"no room"}' >&2; exit 1`, every, 0, []string{"no room: exit status 1"}},
		"a last line without its end":   {"printf 'no room' >&2; exit 1", every, 0, []string{"no room: exit status 1"}},
		"nothing is said":               {"exit 1", every, 0, []string{" failed and printed nothing: exit status 1, output in "}},
		"a signal":                      {"echo on it; kill -9 $$", every, 0, []string{" was ended by signal 9 (killed), output in "}},
		"a command that does not exist": {"no-such-command", every, 0, []string{"not found: exit status 127"}},
	} {
		for _, a := range row.actions {
			t.Run(name+" "+string(a), func(t *testing.T) {
				t.Parallel()
				h := newHost(t, map[string]string{string(a): row.script})
				got, err := run(t.Context(), h.open(), a, job())
				if row.errors != nil {
					wantError(t, err, row.errors...)
				} else if err != nil {
					t.Fatal(err)
				}
				if got != row.want {
					t.Fatalf("got outcome %d, want %d", got, row.want)
				}
			})
		}
	}
}

func TestStartFailure(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ content, want string }{
		"no interpreter named":   {"echo hello\n", "a script's first line names its interpreter"},
		"empty":                  {"", "exec format error"},
		"interpreter is missing": {"#!/no/such/shell\n", "the interpreter that its first line names is missing"},
		"line ends of Windows":   {"#!/bin/sh\r\n", "or that line ends with a carriage return"},
		"interpreter is a folder": {
			"#!/tmp\n", "the script, its interpreter or the mount (noexec) forbids it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, nil)
			h.script("upgrade", row.content)
			s := h.open()
			_, err := s.Upgrade(t.Context(), job())
			wantError(t, err, "cannot run upgrade: ", row.want)
			if _, err := s.Resume(t.Context(), job()); err != nil {
				t.Fatalf("it left the lock behind: %v", err)
			}
		})
	}
}

func TestMissingOptionalScripts(t *testing.T) {
	t.Parallel()
	s := newHost(t, nil).open()
	_, err := s.Prepare(t.Context(), job())
	if err := errors.Join(s.Detect(t.Context()), err, s.Verify(t.Context(), job())); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rollback(t.Context(), job()); !errors.Is(err, strategy.ErrNoRollback) {
		t.Fatalf("got %v", err)
	}
}

func TestWhatAScriptIsGiven(t *testing.T) {
	t.Setenv("SECRET", "of the worker")
	h := newHost(t, map[string]string{
		"upgrade":  `cat >"$WORK/stdin"; env >"$WORK/env"; pwd >"$WORK/pwd"; echo $# >"$WORK/args"`,
		"versions": `cat >"$WORK/stdin-of-versions"; echo a 1`,
	})
	s := h.open()
	if _, err := s.Upgrade(t.Context(), job()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Versions(t.Context()); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"stdin":             `{"format":1,"action":"upgrade","tenant":"acme","host":"h01","run":41,"not-after":"2027-01-31T04:00:00Z","boot-id":"b1"}` + "\n",
		"stdin-of-versions": `{"format":1,"action":"versions"}` + "\n",
		"pwd":               h.opts.Dir + "\n",
		"args":              "0\n",
	} {
		if got := h.read(file); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	wantEnvironment(t, h)
}

func wantEnvironment(t *testing.T, h *host) {
	t.Helper()
	want := []string{
		"HOME=" + os.Getenv("HOME"), "LANG=C.UTF-8", "OSUPGRADE_ACTION=upgrade", "OSUPGRADE_HOST=h01", "OSUPGRADE_LOCK_FD=8",
		"OSUPGRADE_RUN=41", "OSUPGRADE_TENANT=acme", "PATH=" + os.Getenv("PATH"), "WORK=" + h.dir,
	}
	var got []string
	for _, line := range strings.Fields(h.read("env")) {
		// The shell sets these two by itself.
		if !strings.HasPrefix(line, "PWD=") && !strings.HasPrefix(line, "OLDPWD=") {
			got = append(got, line)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("the environment is %q, want %q", got, want)
	}
}

func TestNoScriptStartsForAStoppedWorker(t *testing.T) {
	t.Parallel()
	h := newHost(t, map[string]string{"upgrade": `touch "$WORK/started"`})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := h.open().Upgrade(ctx, job()); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(h.path("started")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("it was started: %v", err)
	}
}
