package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// operate is an operator who asks for random things at random times.
func (w *World) operate() {
	often := one(w.rng, "operator", 10*time.Second, 2*time.Minute, 5*time.Minute, 15*time.Minute)
	for !w.quiet.Load() {
		if sleep(w.ctx, w.rng.span("operator rests", often/4, often)) != nil {
			return
		}
		if c := w.sites[w.rng.n("operator where", len(w.sites))].controller(); c != nil && !w.quiet.Load() {
			ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
			w.act(ctx, c)
			cancel()
		}
	}
}

// act asks for one thing.
func (w *World) act(ctx context.Context, c *controller.Controller) {
	host := w.inOrder[w.rng.n("operator host", len(w.inOrder))].name
	if w.budgeted && w.rng.chance("operator edits a budget", 0.2) {
		name := one(w.rng, "operator budget", budgetNames...)
		w.setBudget(name, w.drawBudget("budget"))
		w.answered("budget", name, nil)
		return
	}
	if len(w.releases) > 0 && w.rng.chance("operator edits a release", 0.2) {
		w.editRelease(one(w.rng, "edited release", w.releases...))
		return
	}
	what := one(w.rng, "operator what",
		"pause", "resume", "resume", "resume", "abort", "abort now", "approve", "approve", "approve", "approve", "approve", "approve",
		"release", "release", "start", "start", "start", "start", "retry", "rollback", "rollback", "delete", "delete", "rollout", "freeze", "thaw", "skip", "unskip")
	in := w.anEnvironment("operator")
	if in != "" && w.rng.chance("operator regroups", 0.2) {
		w.regroup()
	}
	var err error
	switch what {
	case "abort now":
		_, err = c.Ask(ctx, "operator", run.Abort, v1.Ask{Environment: in, Reason: "because", Now: true})
	case "pause", "resume", "abort", "release":
		ask := v1.Ask{Environment: in, Reason: "because"}
		switch what {
		case "release":
			ask.Host = host
		case "resume":
			ask.ResetFailures = w.rng.n("operator resets", 2) == 0
		}
		_, err = c.Ask(ctx, "operator", run.Ask(what), ask)
	case "approve":
		_, err = c.Ask(ctx, "operator", run.Approve, v1.Ask{Environment: in, Reason: "because", Stage: one(w.rng, "operator stage", "s0", "s1", "s2", "s3")})
	case "start":
		_, err = c.Start(ctx, "operator", w.drawStart(v1.Start{Environment: in, OverrideWindow: true, Reason: "because", Duration: one(w.rng, "operator duration", "1m", "6m", "15m")}))
	case "retry":
		_, err = c.Start(ctx, "operator", w.drawStart(v1.Start{
			Environment: in, OverrideWindow: true, Reason: "again", Duration: "10m", RetryOf: w.ended(w.rng.n("operator run", 3)),
		}))
	case "rollback":
		err = w.rollBack(ctx, c)
	case "delete":
		err = c.Forget(ctx, host, run.Deletion{By: "operator"})
	case "freeze":
		w.freeze()
	case "thaw":
		w.thaw()
	case "skip":
		err = w.skip(ctx, c, in)
	case "unskip":
		w.unskip(in)
	case "rollout":
		w.setRollout(w.drawRollout("rollout"))
	}
	w.answered(what, host, err)
}

// ended returns a run that has ended, counted back from the newest; 0 for none.
func (w *World) ended(back int) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.oracle.Ended(back)
}

// answered records the controller's answer.
func (w *World) answered(what, host string, err error) {
	var refused *run.Refused
	var ambiguous *run.Ambiguous
	var none *run.NoEnvironment
	var wrong v1.Problems
	switch {
	case err == nil:
		w.count("operator: " + what)
	case errors.As(err, &refused), errors.As(err, &ambiguous), errors.As(err, &none), errors.As(err, &wrong), errors.Is(err, run.ErrNoRun), errors.Is(err, run.ErrNoHost), errors.Is(err, run.ErrNotConfigured), isLockError(err):
		w.count("operator refused: " + what)
	default:
		w.count("operator got no answer")
		if !errors.Is(err, run.ErrNotReady) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) && !strings.Contains(fmt.Sprint(err), "sim:") {
			w.note("operator: %s of %s: unexpected: %v", what, host, err)
			w.count("operator got a strange answer")
		}
	}
	w.note("operator: %s (%s): %v", what, host, err)
}
