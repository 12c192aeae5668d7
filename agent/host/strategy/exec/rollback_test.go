package exec

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
)

var toUndo = []message.Change{{Name: "kernel", From: "6.1.0", To: "6.1.1"}}

// undoing is the job of a run that rolls back run 41.
func undoing() strategy.Job {
	was := release.Release{Version: "1.0", Data: []byte(`{"a":1}`)}
	return strategy.Job{Run: 57, RollbackOf: 41, Plan: message.ChangeSet{Changes: toUndo}, Was: &was, Progress: func(int, string) {}}
}

// TestScriptsRollBack checks what scripts are told of a run that is rolled back, and which plan counts.
func TestScriptsRollBack(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   []message.Change
		err    string
	}{
		"no plan":        {`cat > "$WORK/request"; echo "$OSUPGRADE_ROLLBACK_OF of $OSUPGRADE_RUN" > "$WORK/told"; echo ready`, strategy.Reversed(toUndo), ""},
		"a plan":         {`echo '{"plan": {"changes": [{"name": "kernel", "from": "6.1.1", "to": "6.0.9"}]}}'`, []message.Change{{Name: "kernel", From: "6.1.1", To: "6.0.9"}}, ""},
		"nothing to do":  {`echo '{"plan": {}}'`, nil, ""},
		"no way":         {`exit 11`, nil, "this strategy has no rollback"},
		"it fails":       {`echo '{"class": "repository"}'; echo "6.1.0 is gone"; exit 1`, nil, "6.1.0 is gone: exit status 1"},
		"a reboot":       {`exit 10`, nil, "which only upgrade, resume and rollback may return, not prepare-rollback"},
		"an absurd plan": {`echo '{"plan": 7}'`, nil, "prepare-rollback is done, and its plan cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, map[string]string{"prepare-rollback": c.script, "rollback": "exit 0"})
			s, err := New(h.opts)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := s.PrepareRollback(t.Context(), undoing())
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) || err == nil && !slices.Equal(plan.Changes, c.want) {
				t.Fatalf("%+v, %v; want %v, %q", plan, err, c.want, c.err)
			}
			if name != "no plan" {
				return
			}
			if got := h.content("told"); got != "41 of 57\n" {
				t.Errorf("it is told %q", got)
			}
			r, err := readRequest(strings.NewReader(h.content("request")))
			if err != nil {
				t.Fatal(err)
			}
			job, err := r.job(nil)
			if err != nil || job.RollbackOf != 41 || job.Was == nil || job.Was.Version != "1.0" || !slices.Equal(job.Plan.Changes, toUndo) {
				t.Errorf("the request reads as %+v, %v", job, err)
			}
			// What it prints is that of the prepare of its run.
			if printed, _, err := s.Output(57, "prepare", 100); err != nil || string(printed) != "ready\n" {
				t.Errorf("the output is %q, %v", printed, err)
			}
		})
	}
	for lacks, scripts := range map[string]map[string]string{"prepare-rollback": {"rollback": "exit 0"}, "rollback": {"prepare-rollback": "exit 0"}} {
		h := newHost(t, scripts)
		s, err := New(h.opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.PrepareRollback(t.Context(), undoing()); !errors.Is(err, strategy.ErrNoRollback) || !strings.Contains(err.Error(), "there is no script "+lacks) {
			t.Errorf("without %s: %v", lacks, err)
		}
	}
}

// PrepareRollback implements strategy.RollbackPreparer.
func (n *native) PrepareRollback(_ context.Context, job strategy.Job) (message.ChangeSet, error) {
	if !n.Knows {
		return message.ChangeSet{}, strategy.ErrNoRollback
	}
	return message.ChangeSet{Changes: strategy.Reversed(job.Plan.Changes), Reboot: job.Was.Version}, n.fails()
}

// TestProgramRollsBack checks that a native strategy gets the whole job, and that its plan comes back.
func TestProgramRollsBack(t *testing.T) {
	t.Parallel()
	s := openNative(t, native{Knows: true})
	if plan, err := s.PrepareRollback(t.Context(), undoing()); err != nil || !slices.Equal(plan.Changes, strategy.Reversed(toUndo)) || plan.Reboot != "1.0" {
		t.Errorf("%+v, %v", plan, err)
	}
	s = openNative(t, native{Knows: true, Fails: message.Repository})
	if _, err := s.PrepareRollback(t.Context(), undoing()); strategy.ClassOf(err) != message.Repository {
		t.Errorf("it fails with %v", err)
	}
	s = openNative(t, native{})
	if _, err := s.PrepareRollback(t.Context(), undoing()); !errors.Is(err, strategy.ErrNoRollback) {
		t.Errorf("without a way back: %v", err)
	}
}
