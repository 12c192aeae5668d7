package worker

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// offers is what a worker remembers of the offers that it has told.
type offers struct {
	told message.OfferTold
	// since and sent count the bytes that were told in a day.
	since time.Time
	sent  int
}

// tells reports whether an offer is to be told: it is another one, or the site would take
// the one that it has for stale. limited reports that it is to be told and must wait, because
// the host has told too much in this day.
func (o offers) tells(digest string, size int, now time.Time) (tell, limited bool) {
	if age := now.Sub(o.told.At); digest == o.told.Digest && age >= 0 && age < message.OfferAgain {
		return false, false
	}
	o = o.today(now)
	if o.sent+size > message.MaxOfferBytes {
		return false, true
	}
	return true, false
}

// after returns what is remembered after an offer was told.
func (o offers) after(digest string, size int, now time.Time) offers {
	o = o.today(now)
	o.sent += size
	o.told = message.OfferTold{Digest: digest, At: now}
	return o
}

// today begins the next day if it is due. A clock that was set back begins one, too.
func (o offers) today(now time.Time) offers {
	if age := now.Sub(o.since); age < 0 || age >= message.OfferAgain {
		o.since, o.sent = now, 0
	}
	return o
}

// sendOffers tells the site what an upgrade would change if it began now, each time that
// the versions were read and the plan is another one. It runs beside the loop: no step
// waits until the site has an offer, and nothing depends on it.
func (w *Worker) sendOffers(ctx context.Context) error {
	// What the site has already is not told again.
	told, err := w.HostLog.LastOffer(ctx)
	switch {
	case errors.Is(err, log.ErrTaken):
		return err
	case errors.Is(err, log.ErrRefused): // By an older site.
		w.Log.Debug("cannot read the offer told before", "host", w.Host, "error", err)
	case err != nil:
		w.warn(ctx, "cannot read the offer told before", err)
	}
	known, failed := offers{told: told}, ""
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.offerDue:
		}
		packed, err := w.offer(ctx)
		if text := failureText(err); text != failed {
			if failed = text; err != nil {
				w.warn(ctx, "cannot tell what an upgrade would change", err)
			}
		}
		if packed == nil {
			continue
		}
		if known, err = w.sendOffer(ctx, known, packed); err != nil {
			return err
		}
	}
}

func failureText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// sendOffer tells the site an offer if it is due. It returns an error only if the lease is
// lost.
func (w *Worker) sendOffer(ctx context.Context, known offers, packed []byte) (offers, error) {
	digest := message.OfferDigest(packed)
	tell, limited := known.tells(digest, len(packed), w.Now())
	if limited {
		w.Log.Info("what an upgrade would change is told later: it has changed too often today", "host", w.Host, "bytes", known.sent)
	}
	if !tell {
		return known, nil
	}
	err := w.HostLog.Offer(ctx, packed)
	switch {
	case errors.Is(err, log.ErrTaken):
		return known, err
	case errors.Is(err, log.ErrRefused): // Such as by an older site: it would refuse it again.
		w.Log.Debug("the offer was refused", "host", w.Host, "error", err)
	case err != nil:
		w.warn(ctx, "cannot tell what an upgrade would change", err)
		return known, nil
	}
	return known.after(digest, len(packed), w.Now()), nil
}

// offer asks the strategy for the plan of an upgrade that would begin now, packed. It is nil
// while a step is in progress, after which it is asked for again, and for a strategy that
// makes no plan outside of a run.
func (w *Worker) offer(ctx context.Context) ([]byte, error) {
	select {
	case w.atHost <- struct{}{}:
	default:
		return nil, nil
	}
	defer func() { <-w.atHost }()
	limited, cancel := context.WithTimeout(ctx, w.Limits.Step)
	defer cancel()
	plan, err := w.Strategy.Plan(limited, strategy.Job{Tenant: w.Tenant, Host: w.Host, BootID: w.bootID, Rejected: byName(w.stillRejected())})
	if errors.Is(err, strategy.ErrNoPlan) || ctx.Err() != nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plan = plan.Sorted()
	if err := plan.Check(); err != nil { // The site would refuse it.
		return nil, err
	}
	return message.PackPlan(plan)
}
