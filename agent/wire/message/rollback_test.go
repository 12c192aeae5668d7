package message_test

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// TestIntervals checks that the runs which a rollback rolls back are read as they are written, and
// that nothing else is read.
func TestIntervals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]message.Interval{"": {}, "41-57": {Since: 41, Of: 57}, "41-41": {Since: 41, Of: 41}} {
		if got, err := message.ParseInterval(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q is read as %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"41", "57-41", "0-3", "041-57", "41-57-60", "41-", "-41", "a-b", " 41-57", "+41-57"} {
		if got, err := message.ParseInterval(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// TestIntervalHas checks that both ends belong to the runs that are rolled back, and that "no run" does
// not.
func TestIntervalHas(t *testing.T) {
	t.Parallel()
	runs := message.Interval{Since: 41, Of: 57}
	for run, want := range map[uint64]bool{0: false, 40: false, 41: true, 50: true, 57: true, 58: false} {
		if runs.Has(run) != want {
			t.Errorf("run %d: %t", run, !want)
		}
	}
	if (message.Interval{}).Has(0) {
		t.Error("a run that rolls nothing back rolls back no run")
	}
}

// FuzzInterval looks for runs that are read as others than they are written.
func FuzzInterval(f *testing.F) {
	for _, text := range []string{"", "41-57", "41-41", "57-41", "0-1", "01-2", "18446744073709551615-18446744073709551615"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		i, err := message.ParseInterval(text)
		if err == nil && i.String() != text {
			t.Errorf("%q is read as %q", text, i)
		}
	})
}

// TestMalformedRollback checks that a run which rolls back runs names them in their order, and has no
// release.
func TestMalformedRollback(t *testing.T) {
	t.Parallel()
	pinned := release.Release{Version: "2.0", Scheme: release.Semver, Data: []byte(`{}`)}.Pin("spring")
	for want, e := range map[string]message.Opened{
		"rollback-since: run 57 is not before run 57":  {RollbackOf: 57, RollbackSince: 57},
		"rollback-since: run 41 is not before run 0":   {RollbackSince: 41},
		"rollback-of: a rollback has no release; each": {RollbackOf: 57, Release: &pinned},
	} {
		e.Members, e.Rollout, e.NotAfter = []string{"h01"}, rollout.Default(1), time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
		if _, err := message.DecodeEvent(message.EncodeEvent(e)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v and does not say %q", err, want)
		}
	}
}

// TestRollbackGoesOn checks that a run which rolls back runs may have the steps that they have done: it
// does their undo.
func TestRollbackGoesOn(t *testing.T) {
	t.Parallel()
	e := message.Opened{Members: []string{"h01"}, Rollout: rollout.Default(1), NotAfter: time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC), RollbackOf: 41}
	e.Rollout.Stages = append(e.Rollout.Stages, rollout.ResolvedStage{Stage: rollout.Stage{Name: "migrate", Step: &rollout.Step{Do: &rollout.Hook{On: rollout.OnSite, Timeout: "1m"}}}})
	e.Reached = &message.Reached{Since: 41, Stages: []message.ReachedStage{{Name: "migrate", Step: true, Run: 41}, {Name: "all"}}}
	if _, err := message.DecodeEvent(message.EncodeEvent(e)); err != nil {
		t.Error(err)
	}
	e.RollbackOf = 0
	if _, err := message.DecodeEvent(message.EncodeEvent(e)); err == nil || !strings.Contains(err.Error(), "the step of stage \"migrate\" is done since run 41") {
		t.Errorf("a run that goes on does a step again: %v", err)
	}
}
