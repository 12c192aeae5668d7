package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/text"
)

// keptPlan is the file with the plan of the newest run that this host has prepared. It is
// on disk before the reply to prepare: each later step goes by it, and done is
// proved by it, whatever a power cut has taken from the package database.
type keptPlan struct {
	// Run and RunAt are those of the journal: they tell the plan of one run from that
	// of another, also when the log has got another identity.
	Run   uint64       `json:"run"`
	RunAt time.Time    `json:"run-at,omitzero"`
	Plan  message.Plan `json:"plan"`
}

func (k keptPlan) encode() ([]byte, error) { return format.Plan.EncodeSummed(planMember, k) }

// planMember is the member of a plan file that holds the plan.
const planMember = "prepared"

// planFile is the name of the plan file in the state directory.
const planFile = "plan.json"

// readPlan reads the plan of a journal's run. Without an error it is whole, and the one
// that prepare has returned in this run.
func readPlan(path string, j Journal) (message.Plan, error) {
	kept, err := readKeptPlan(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return message.Plan{}, fmt.Errorf("%s does not exist", path)
	case err != nil:
		return message.Plan{}, err
	case kept.Run != j.Run || !kept.RunAt.Equal(j.RunAt):
		return message.Plan{}, fmt.Errorf("%s is of run %d", path, kept.Run)
	}
	return kept.Plan, nil
}

// readKeptPlan reads the plan file, of whatever run.
func readKeptPlan(path string) (kept keptPlan, err error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return kept, err
	}
	err = format.Plan.DecodeSummed(body, planMember, &kept)
	if err == nil {
		err = kept.Plan.Check()
	}
	switch {
	case format.IsUnsupported(err):
		return kept, fmt.Errorf("%s was %w; start a version that reads it", path, err)
	case err != nil:
		return kept, fmt.Errorf("%s is damaged: %w", path, err)
	}
	return kept, nil
}

// planLostError is the failure of a step whose plan cannot be read.
type planLostError struct {
	step  Do
	cause error
}

// Error says what is known of the host, and what a person has to do.
func (e *planLostError) Error() string {
	if e.step == DoUpgrade {
		return fmt.Sprintf("the plan of this run is lost: %v; nothing was upgraded; start another run, which prepares the host again", e.cause)
	}
	return lostPlan + fmt.Sprintf(": %v; compare the host with the plan that the run shows, then release it", e.cause)
}

// lostPlan begins the reply of a host that cannot tell whether its upgrade is complete.
const lostPlan = "the plan of this run is lost, so what the upgrade did is unknown"

// isLostPlan reports whether a result is that of a host that has lost its plan in an
// upgrade.
func isLostPlan(result string) bool { return strings.HasPrefix(result, lostPlan) }

func (w *Worker) planPath() string { return filepath.Join(w.Dir, planFile) }

// writePlan makes the plan of the journal's run durable.
func (w *Worker) writePlan(ctx context.Context, plan message.Plan) error {
	body, err := keptPlan{Run: w.journal.Run, RunAt: w.journal.RunAt, Plan: plan}.encode()
	if err != nil {
		return err
	}
	if err := w.persist(ctx, "plan", w.journal.Run, func() error {
		if err := w.WriteFile(w.planPath(), body, 0o600); err != nil {
			return fmt.Errorf("cannot write the plan of run %d: %w", w.journal.Run, err)
		}
		return nil
	}); err != nil {
		return err
	}
	w.planKept.Set()
	return nil
}

// planAgain is the wait before a plan is sent again that did not reach the site.
const planAgain = time.Minute

// sendPlans tells the site the plan of the newest run: when it is on disk, and once at the
// start, because the worker may have ended before. It runs beside the loop: no step waits
// for it, and nothing depends on it.
func (w *Worker) sendPlans(ctx context.Context) error {
	for {
		if err := w.sendPlan(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.planKept:
		}
	}
}

// sendPlan sends the plan that is on disk, until the site has it or refuses it. It returns
// an error only if the lease is lost.
func (w *Worker) sendPlan(ctx context.Context) error {
	kept, err := readKeptPlan(w.planPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.warn(ctx, "cannot read the plan", err)
		return nil
	}
	for {
		err := w.HostLog.Plan(ctx, kept.Run, kept.Plan)
		switch {
		case errors.Is(err, log.ErrTaken):
			return err
		case errors.Is(err, log.ErrRefused): // Such as of a run that is not the newest, or by an older site.
			w.Log.Debug("the plan was refused", "host", w.Host, "run", kept.Run, "error", err)
			return nil
		case err == nil:
			return nil
		}
		w.warn(ctx, "cannot send the plan", err)
		select {
		case <-w.planKept: // There is a newer one.
			w.planKept.Set()
			return nil
		case <-time.After(planAgain):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// planFor returns the plan that a step goes by: none for prepare, which makes it.
func (w *Worker) planFor(do Do) (message.Plan, error) {
	if do == DoPrepare {
		return message.Plan{}, nil
	}
	plan, err := readPlan(w.planPath(), w.journal)
	if err != nil {
		return message.Plan{}, &planLostError{do, err}
	}
	return plan, nil
}

// lacking is the failure of a host that does not have all of its plan.
func lacking(missing []message.Change, all int) error {
	const named = 5
	names := make([]string, 0, named)
	for _, c := range missing[:min(len(missing), named)] {
		names = append(names, lack(c))
	}
	return fmt.Errorf("%d of %d changes of the plan are missing: %s; see what the upgrade printed, mend the host, then start another run",
		len(missing), all, text.ListOf(names, len(missing), named))
}

// lack says what the host has instead of a change. From is what it has.
func lack(c message.Change) string {
	switch {
	case c.To == "":
		return fmt.Sprintf("%s is not removed", c.Name)
	case c.From == "":
		return fmt.Sprintf("%s %s", c.Name, c.To)
	default:
		return fmt.Sprintf("%s %s (it is %s)", c.Name, c.To, c.From)
	}
}
