package apt

import (
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

// upgraded is a host that a run has upgraded, which is over, with its plan.
func upgraded(t *testing.T) (*fake, message.ChangeSet) {
	t.Helper()
	f, plan := prepared(t)
	if outcome, err := f.strategy().Upgrade(t.Context(), job(plan)); err != nil || outcome != strategy.Done {
		t.Fatalf("the upgrade ends with %d, %v", outcome, err)
	}
	return f, plan
}

// back is a job that rolls back the run of a plan.
func back(plan message.ChangeSet) strategy.Job {
	j := job(plan)
	j.Run, j.RollbackOf = 2, 1
	return j
}

// archived keeps the archives of the versions of before.
func (f *fake) archived() {
	for _, key := range []string{"a=1", "b=1", "c=1"} {
		f.write(f.archive(key), key)
		f.archives[key] = true
	}
}

// TestRollbackFrom rolls back a run from wherever the versions of before still are. What is fetched in
// prepare suffices: then no repository answers any more, and the power fails.
func TestRollbackFrom(t *testing.T) {
	t.Parallel()
	old := map[string]string{"a": "1", "b": "1", "c": "1"}
	for name, where := range map[string]func(f *fake, j *strategy.Job){
		"the archives that apt has kept": func(f *fake, _ *strategy.Job) { f.archived(); f.down = true },
		"the lists that the host has":    func(f *fake, _ *strategy.Job) { f.listed = old },
		"its repositories now":           func(f *fake, _ *strategy.Job) { f.remote = old },
		"the snapshot of before": func(f *fake, j *strategy.Job) {
			f.then = old
			j.Was = &release.Release{Packages: &release.Packages{Select: release.All, AsOf: monday}}
		},
		"the snapshot, after a power cut that left empty archives": func(f *fake, j *strategy.Job) {
			f.then = old
			j.Was = &release.Release{Packages: &release.Packages{Select: release.All, AsOf: monday}}
			for _, key := range []string{"a=1", "b=1", "c=1"} {
				f.write(f.archive(key), "")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, plan := upgraded(t)
			j := back(plan)
			where(f, &j)
			reversed, err := f.strategy().PrepareRollback(t.Context(), j)
			if err != nil || !slices.Equal(reversed.Changes, strategy.Reversed(plan.Changes)) {
				t.Fatalf("prepare: %+v, %v", reversed, err)
			}
			for _, have := range f.dpkg {
				if have.version != "2" {
					t.Fatalf("prepare has changed what runs: %+v", f.dpkg)
				}
			}
			f.powerCut()
			f.down, f.then, f.remote = true, nil, nil
			for range 2 {
				if outcome, err := f.strategy().Rollback(t.Context(), j); err != nil || outcome != strategy.Done {
					t.Fatalf("rollback: %d, %v\n%s", outcome, err, strings.Join(f.commands, "\n"))
				}
			}
			if left := f.dpkg.missing(reversed.Changes); len(left) > 0 {
				t.Errorf("missing: %v", left)
			}
			f.powerCut()
			f.wantFiles("1")
		})
	}
}

// TestNoWayBack checks that a host whose versions of before are nowhere fails in prepare, and
// names them.
func TestNoWayBack(t *testing.T) {
	t.Parallel()
	f, plan := upgraded(t)
	f.write(f.archive("b=1"), "b=1")
	got, err := f.strategy().PrepareRollback(t.Context(), back(plan))
	if strategy.ClassOf(err) != message.Repository || !strings.Contains(err.Error(), "neither a repository of this host nor /var/cache/apt/archives has a 1, c 1; offer them in a repository") {
		t.Errorf("%+v, %v of class %q", got, err, strategy.ClassOf(err))
	}
	f.down = true
	if got, err := f.strategy().PrepareRollback(t.Context(), back(plan)); err == nil || f.dpkg["a"].version != "2" {
		t.Errorf("without a repository: %+v, %v", got, err)
	}
	distribution := of(release.Packages{Select: release.All, Distribution: "trixie"}, plan)
	if got, err := f.strategy().PrepareRollback(t.Context(), distribution); strategy.ClassOf(err) != message.Artifact || !strings.Contains(err.Error(), "nothing leads back to the release before") {
		t.Errorf("of a distribution: %+v, %v", got, err)
	}
}

// TestRollbackLeavesOthers checks that what somebody else has changed since stays, and is told.
func TestRollbackLeavesOthers(t *testing.T) {
	t.Parallel()
	f, plan := upgraded(t)
	f.archived()
	f.dpkg["a"] = installed{want: "install", status: "installed", version: "3"}
	f.dpkg["b"] = installed{want: "install", status: "installed", version: "1"}
	var told []string
	j := back(plan)
	j.Progress = func(_ int, text string) { told = append(told, text) }
	reversed, err := f.strategy().PrepareRollback(t.Context(), j)
	if want := []message.Change{{Name: "c", From: "2", To: "1"}}; err != nil || !slices.Equal(reversed.Changes, want) {
		t.Errorf("prepare: %+v, %v", reversed, err)
	}
	if !slices.Contains(told, "a is 3 (planned: 2); somebody else changed that after the host was prepared, so it stays") {
		t.Errorf("it tells %q", told)
	}
}

// TestRollbackKilledAnywhere kills a rollback at each change that it makes, with a power cut, and then the
// repair of it. Each time it ends with what was before, on disk; or the next run repairs the host.
func TestRollbackKilledAnywhere(t *testing.T) {
	t.Parallel()
	for first := range 12 {
		for second := range 8 {
			f, plan := upgraded(t)
			f.archived()
			f.apart = map[string]bool{"b": true}
			j := back(plan)
			reversed, err := f.strategy().PrepareRollback(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			f.down, f.kill = true, first
			_, err = f.strategy().Rollback(t.Context(), j)
			survived := err == nil
			f.powerCut()
			f.kill = second
			outcome, err := f.strategy().Rollback(t.Context(), j)
			for try := 0; err != nil && try < 3; try++ {
				f.powerCut()
				outcome, err = f.strategy().Rollback(t.Context(), j)
			}
			f.kill = -1
			if left := f.dpkg.missing(reversed.Changes); err != nil || outcome != strategy.Done || len(left) > 0 || f.journal {
				t.Fatalf("killed at %d (survived: %t) and %d it ends with %d, %v, missing %v:\n%s", first, survived, second, outcome, err, left, strings.Join(f.commands, "\n"))
			}
			f.powerCut()
			f.wantFiles("1")
		}
	}
}

// TestNextRunAfterRollback kills a rollback at each change, and prepares the host for the next run, which
// goes forward again: what the rollback has left is its own to repair.
func TestNextRunAfterRollback(t *testing.T) {
	t.Parallel()
	for first := range 8 {
		f, plan := upgraded(t)
		f.archived()
		j := back(plan)
		if _, err := f.strategy().PrepareRollback(t.Context(), j); err != nil {
			t.Fatal(err)
		}
		f.kill = first
		if _, err := f.strategy().Rollback(t.Context(), j); err == nil {
			continue
		}
		f.powerCut()
		forward, err := f.strategy().Prepare(t.Context(), job(message.ChangeSet{}))
		if err != nil {
			t.Fatalf("killed at %d, prepare says %v:\n%s", first, err, strings.Join(f.commands, "\n"))
		}
		if outcome, err := f.strategy().Upgrade(t.Context(), job(forward)); err != nil || outcome != strategy.Done {
			t.Errorf("killed at %d, the upgrade ends with %d, %v", first, outcome, err)
		}
		f.wantFiles("2")
	}
}
