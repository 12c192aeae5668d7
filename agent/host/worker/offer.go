package worker

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// fetchLimit bounds a plan that fetches what there is to install: a run that begins meanwhile
// waits for it.
const fetchLimit = 2 * time.Minute

// sendOffers reports what an upgrade would change if it began now, each time that the versions
// were read and the plan is another one, and each time that somebody has asked for it.
func (w *Worker) sendOffers(ctx context.Context) error {
	return w.send(ctx, report.Offer, "cannot tell what an upgrade would change", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.offerDue:
			return nil
		}
	}, w.offer)
}

// offer asks the strategy for the plan of an upgrade that would begin now, packed. It is nil
// while an action is in progress, after which it is asked for again, and for a strategy that
// makes no plan outside of a run.
func (w *Worker) offer(ctx context.Context) ([]byte, error) {
	select {
	case w.atHost <- struct{}{}:
	default:
		return nil, nil
	}
	defer func() { <-w.atHost }()
	asked, limit := w.fetches.Swap(false), w.Limits.Action
	// What a run has prepared must stay as it is until its upgrade, and an action must not wait.
	fetch := asked && w.written.Load().Over(w.Now())
	if fetch {
		limit = min(limit, fetchLimit)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	job := strategy.Job{Tenant: w.Tenant, Host: w.Host, BootID: w.bootID, Fetch: fetch}
	job.Rejected = w.rejectedFor(job)
	plan, err := w.Strategy.Plan(limited, job)
	if errors.Is(err, strategy.ErrNoPlan) || ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.wouldChange(len(plan.Changes))
	if asked {
		w.anew.Store(true)
	}
	return message.PackPlan(plan.Sorted())
}

// wouldChange notes how many packages an upgrade would change now. The site is told with each
// heartbeat, and at once that there are some, or none any more.
func (w *Worker) wouldChange(changes int) {
	if before := w.changes.Swap(&changes); before == nil || (*before == 0) != (changes == 0) {
		w.sendAlive()
	}
}
