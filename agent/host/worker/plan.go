package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// planned returns what a version is of by the newest plan; empty when that does not know it. A run
// that has yet to prepare leaves the plan of the one before.
func (w *Worker) planned(version string) string {
	if version == "" {
		return ""
	}
	kept, err := readKeptPlan(w.planPath())
	if err != nil {
		return ""
	}
	for _, c := range kept.Plan.Changes {
		if c.To == version {
			return c.Name
		}
	}
	return ""
}

// writePlan makes the plan of the journal's run durable.
func (w *Worker) writePlan(ctx context.Context, plan message.ChangeSet) error {
	body, err := decide.KeptPlan{Run: w.state.Run, RunAt: w.state.RunAt, Plan: plan}.Encode()
	if err != nil {
		return err
	}
	return w.persist(ctx, "plan", w.state.Run, func() error {
		if err := w.WriteFile(w.planPath(), body, 0o600); err != nil {
			return fmt.Errorf("cannot write the plan of run %d: %w", w.state.Run, err)
		}
		return nil
	})
}

// sendPlans reports the plan of the newest run: when the host has prepared, and once at the start,
// because the worker may have ended before.
func (w *Worker) sendPlans(ctx context.Context) error {
	sent := map[report.ID]telling{}
	for {
		if err := w.sendPlan(ctx, sent); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.planKept:
		}
	}
}

func (w *Worker) sendPlan(ctx context.Context, sent map[report.ID]telling) error {
	kept, err := readKeptPlan(w.planPath())
	if errors.Is(err, os.ErrNotExist) || err == nil && w.preparesAnew(kept) {
		return nil
	}
	var packed []byte
	if err == nil {
		kept.Plan.System = w.systemOf(kept.Run)
		packed, err = message.PackPlan(kept.Plan)
	}
	if err != nil {
		w.warn(ctx, "cannot read the plan", err)
		return nil
	}
	return w.tellOfRun(ctx, sent, report.Report{ID: report.ID{Kind: report.Plan, Run: kept.Run}, Body: packed})
}

// preparesAnew reports whether the host has yet to make the plan that counts for a run: a worker before
// has kept one, and ended before its journal said so.
func (w *Worker) preparesAnew(kept decide.KeptPlan) bool {
	known := w.written.Load()
	return known.Run == kept.Run && known.RunAt.Equal(kept.RunAt) && known.Action == message.Prepare && known.Phase != decide.Answering && known.Phase != decide.Answered
}

// systemOf is what the plan of a run says of the system of the host; empty for a run without a release,
// whose plan is compared with no other.
func (w *Worker) systemOf(run uint64) string {
	if known := w.written.Load(); w.System == nil || known.Run != run || known.Release == nil {
		return ""
	}
	return w.System()
}

// planFor returns the plan that an action goes by: none for prepare, which makes it.
func (w *Worker) planFor(do decide.Do) (message.ChangeSet, error) {
	if do == decide.DoPrepare {
		return message.ChangeSet{}, nil
	}
	plan, err := readPlan(w.planPath(), w.state.Journal)
	if err != nil {
		return message.ChangeSet{}, decide.PlanLost(do, err)
	}
	return plan, nil
}

func (w *Worker) planPath() string { return filepath.Join(w.Dir, planFile) }
