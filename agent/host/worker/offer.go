package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
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
	by, asked, limit := w.goal.Load(), w.fetches.Swap(false), w.Limits.Action
	// What a run has prepared must stay as it is until its upgrade, and an action must not wait.
	fetch := (asked || by.fetches(w.Now())) && w.written.Load().Over(w.Now())
	if fetch {
		limit = min(limit, fetchLimit)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	plan, err := w.offerOf(limited, by, fetch)
	if ctx.Err() != nil {
		return nil, nil
	}
	if fetch {
		by.fetched(w.Now(), err)
	}
	if err != nil && by != nil {
		w.changes.Store(nil) // Nobody may take the release for installed.
	}
	if errors.Is(err, strategy.ErrNoPlan) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	w.wouldChange(by, len(plan.Changes))
	if asked {
		w.anew.Store(true)
	}
	return message.PackPlan(plan.Sorted())
}

// offerOf returns the plan of an upgrade that would begin now.
func (w *Worker) offerOf(ctx context.Context, by *goal, fetch bool) (plan message.ChangeSet, err error) {
	job := strategy.Job{Tenant: w.Tenant, Host: w.Host, BootID: w.bootID, Fetch: fetch}
	if by != nil {
		if err := setRelease(&job, by.pin); err != nil {
			return plan, err
		}
	}
	job.Rejected = w.rejectedFor(job)
	if job.Release == nil {
		return w.Strategy.Plan(ctx, job)
	}
	if err := strategy.CheckRelease(w.Strategy, job); err != nil {
		return plan, err
	}
	if plan, err = w.Strategy.Plan(ctx, job); err != nil {
		return plan, err
	}
	plan.Release = by.pin.Ref().String()
	if len(plan.Changes) > 0 {
		return plan, nil
	}
	return plan, w.installed(ctx, job, plan)
}

// installed returns an error unless a host whose plan changes nothing has the release of a job: a
// version may be held back because it was rolled back, and a script may know less than it should.
func (w *Worker) installed(ctx context.Context, job strategy.Job, plan message.ChangeSet) error {
	for _, h := range plan.Held {
		if job.Rejected.Has(h.Name, h.Offered) {
			return fmt.Errorf("the host lacks %s %s of release %s, which was rolled back on it", h.Name, h.Offered, job.ReleaseName)
		}
	}
	if len(job.Release.Installs) == 0 || job.Release.Kind() == release.OfPackages {
		return nil
	}
	versions, err := w.Strategy.Versions(ctx)
	if err != nil {
		return err
	}
	return lackingRelease(job.ReleaseName, *job.Release, versions)
}

// wouldChange notes how many packages an upgrade would change now. The site is told with each
// heartbeat, and at once that there are some, or none any more.
func (w *Worker) wouldChange(by *goal, changes int) {
	before := w.changes.Swap(&offered{by, changes}).of(by)
	if before == nil || (*before == 0) != (changes == 0) {
		w.sendAlive()
	}
}
