package dnf

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/begun"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy/program"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// TestRollbackFrom rolls back a run from the repositories as they are, and as they were when the host had
// the release of before, also while the others are away. Without the versions of before it fails in prepare,
// and names them.
func TestRollbackFrom(t *testing.T) {
	t.Parallel()
	const one, two = "a 0 1 1 noarch 9\n", "a 0 2 1 noarch 9\n"
	monday := time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC)
	for _, name := range []string{"now", "now, then is away", "then", "then, now is away", "nowhere", "nowhere, now is away"} {
		where, away, _ := strings.Cut(name, ", ")
		both(t, name, func(t *testing.T, s *Strategy) {
			s.Snapshot = "https://mirror.example/{date}/{repo}"
			var replays []string
			back := false
			s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
				past := slices.ContainsFunc(c.Args, func(a string) bool { return strings.Contains(a, "2026-11-23") })
				switch {
				case slices.Contains(c.Args, "makecache") && away == map[bool]string{true: "then is away", false: "now is away"}[past]:
					return program.Ended{Exit: 1, Printed: "Error: Failed to download metadata"}, nil
				case slices.Contains(c.Args, "a-1-1.noarch") && !past && away == "now is away":
					return program.Ended{Exit: 1, Printed: "Error: Cache-only enabled but no cache for 'base'"}, nil
				case slices.Contains(c.Args, "repolist"):
					return program.Ended{Stdout: "repo id repo name\nbase Base\n"}, nil
				case c.Name == "rpm" && slices.Contains(c.Args, "-qa"):
					return program.Ended{Stdout: map[bool]string{false: two, true: one}[back]}, nil
				case slices.Contains(c.Args, "replay"):
					fetches := slices.Contains(c.Args, s.fetch)
					replays = append(replays, map[bool]string{true: "fetch", false: "carry out"}[fetches]+map[bool]string{true: " then", false: " now"}[past])
					back = back || !fetches
				case slices.Contains(c.Args, "repoquery") && slices.Contains(c.Args, "a-1-1.noarch") && (where == "then" && past || where == "now" && !past):
					return program.Ended{Stdout: "a.noarch\t0\t1\t1\t7\t9" + strings.ReplaceAll(s.rowEnd, `\n`, "") + "\n"}, nil
				}
				return program.Ended{}, nil
			}
			job := strategy.Job{
				Run: 2, RollbackOf: 1, Plan: message.ChangeSet{Changes: []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}}},
				Was: &release.Release{Packages: &release.Packages{Select: release.All, AsOf: monday}}, Progress: func(int, string) {}, NotAfter: time.Now().Add(time.Hour),
			}
			plan, err := s.PrepareRollback(t.Context(), job)
			if where == "nowhere" && away != "" {
				if strategy.ClassOf(err) != message.Repository || !strings.Contains(err.Error(), "Failed to download metadata") || len(replays) > 0 {
					t.Errorf("prepare: %+v, %v of class %q, %q", plan, err, strategy.ClassOf(err), replays)
				}
				return
			}
			if where == "nowhere" {
				if strategy.ClassOf(err) != message.Repository || !strings.Contains(err.Error(), "no repository of this host has a-1-1.noarch") || len(replays) > 0 {
					t.Errorf("prepare: %+v, %v of class %q, %q", plan, err, strategy.ClassOf(err), replays)
				}
				return
			}
			if want := []message.Change{{Name: "a.noarch", From: "2-1", To: "1-1"}}; err != nil || !slices.Equal(plan.Changes, want) {
				t.Fatalf("prepare: %+v, %v", plan, err)
			}
			for range 2 {
				if outcome, err := s.Rollback(t.Context(), job); err != nil || outcome != strategy.Done {
					t.Fatalf("rollback: %v, %v", outcome, err)
				}
			}
			if want := []string{"fetch " + where, "carry out " + where}; !slices.Equal(replays, want) {
				t.Errorf("dnf is asked to %q, not %q", replays, want)
			}
			if left := begun.Read(s.StateDir); len(left) > 0 {
				t.Errorf("it has begun %v", left)
			}
		})
	}
}

// TestPrepareRollbackIsStopped checks that a call which ends right after the repositories have answered is no
// plan without changes, by which the host would count as back.
func TestPrepareRollbackIsStopped(t *testing.T) {
	t.Parallel()
	both(t, "", func(t *testing.T, s *Strategy) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s.run = func(_ context.Context, c program.Command) (program.Ended, error) {
			if slices.Contains(c.Args, "makecache") {
				stop()
			}
			return program.Ended{}, nil
		}
		job := strategy.Job{
			Run: 2, RollbackOf: 1, Plan: message.ChangeSet{Changes: []message.Change{{Name: "a.noarch", From: "1-1", To: "2-1"}}},
			Progress: func(int, string) {}, NotAfter: time.Now().Add(time.Hour),
		}
		if plan, err := s.PrepareRollback(ctx, job); !errors.Is(err, context.Canceled) {
			t.Errorf("it is prepared with %+v, %v", plan, err)
		}
	})
}
