package dnf

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/hostfs"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/program"
)

// TestDoneIsNoExitStatus: a dnf that ends with 0 and has done nothing, or half of it, is
// not done.
func TestDoneIsNoExitStatus(t *testing.T) {
	t.Parallel()
	const one, two = "a 0 1 1 noarch 9\n", "a 0 2 1 noarch 9\n"
	for name, row := range map[string]struct {
		before, after, check string
		want                 string
	}{
		"nothing happened":     {one, one, "", "not there though dnf has ended"},
		"both versions":        {one, one + two, "", "not there though dnf has ended"},
		"a problem is left":    {one, two, "a-2-1.noarch has missing requires of b\n", "dnf check: a-2-1.noarch has missing requires of b"},
		"a problem of another": {one, two, "other-2-1.noarch has missing requires of b\n", ""},
		"the plan":             {one, two, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replayed := false
			s, err := New(Options{StateDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			s.host, s.sync, s.locked = hostfs.Root(t.TempDir()), func() error { return nil }, func() (string, error) { return "", nil }
			s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
				switch {
				case c.Name == "rpm" && replayed:
					return program.Ended{Stdout: row.after}, nil
				case c.Name == "rpm":
					return program.Ended{Stdout: row.before}, nil
				case slices.Contains(c.Args, "replay"):
					replayed = true
				case slices.Contains(c.Args, "check") && row.check != "":
					return program.Ended{Exit: 1, Stdout: row.check, Printed: row.check}, nil
				}
				return program.Ended{}, nil
			}
			job := strategy.Job{Plan: message.Plan{Changes: []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}}}, Progress: func(int, string) {}, NotAfter: time.Now().Add(time.Hour)}
			outcome, err := s.Upgrade(t.Context(), job)
			if row.want == "" && (err != nil || outcome != strategy.Done) {
				t.Errorf("got %v, %v", outcome, err)
			}
			if row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want) || strategy.ClassOf(err) != message.Install) {
				t.Errorf("got %v, %v, want %q", outcome, err, row.want)
			}
		})
	}
}

// TestResumeBeforeAnyHistory: a host that dnf has never changed has no last transaction,
// and an empty plan is done.
func TestResumeBeforeAnyHistory(t *testing.T) {
	t.Parallel()
	s, err := New(Options{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s.host, s.sync, s.locked = hostfs.Root(t.TempDir()), func() error { return nil }, func() (string, error) { return "", nil }
	s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
		if slices.Contains(c.Args, "history") {
			return program.Ended{Exit: 1, Printed: "Error: No transactions\n"}, nil
		}
		return program.Ended{}, nil
	}
	if outcome, err := s.Resume(t.Context(), strategy.Job{Progress: func(int, string) {}}); err != nil || outcome != strategy.Done {
		t.Errorf("got %v, %v", outcome, err)
	}
}

// TestDamagedDatabase: a package database that rpm cannot read is rebuilt, and one that it
// can read is not.
func TestDamagedDatabase(t *testing.T) {
	t.Parallel()
	for _, damaged := range []bool{false, true} {
		s, err := New(Options{StateDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		rebuilt := false
		s.host, s.sync, s.locked = hostfs.Root(t.TempDir()), func() error { return nil }, func() (string, error) { return "", nil }
		s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
			switch {
			case slices.Contains(c.Args, "--rebuilddb"):
				rebuilt = true
			case c.Name == "rpm" && damaged && !rebuilt:
				return program.Ended{Exit: 1, Printed: "error: rpmdb: damaged header\n"}, nil
			case c.Name == "rpm":
				return program.Ended{Stdout: "a 0 2 1 noarch 9\n"}, nil
			}
			return program.Ended{}, nil
		}
		job := strategy.Job{Plan: message.Plan{Changes: []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}}}, Progress: func(int, string) {}}
		if outcome, err := s.Resume(t.Context(), job); err != nil || outcome != strategy.Done || rebuilt != damaged {
			t.Errorf("damaged %v: rebuilt %v, got %v, %v", damaged, rebuilt, outcome, err)
		}
	}
}
