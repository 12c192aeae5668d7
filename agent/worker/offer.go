package worker

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// telling is what a worker remembers of the offers, or of the inventories, that it has told.
type telling struct {
	told message.Told
	// since and sent count the bytes that were told in a day, and most bounds them.
	since      time.Time
	sent, most int
}

// tells reports whether an offer or an inventory is to be told: it is another one, or the
// site would take the one that it has for stale. limited reports that it is to be told and
// must wait, because the host has told too much in this day.
func (o telling) tells(digest string, size int, now time.Time) (tell, limited bool) {
	if age := now.Sub(o.told.At); digest == o.told.Digest && age >= 0 && age < message.OfferAgain {
		return false, false
	}
	o = o.today(now)
	if o.sent+size > o.most {
		return false, true
	}
	return true, false
}

// after returns what is remembered after it was told.
func (o telling) after(digest string, size int, now time.Time) telling {
	o = o.today(now)
	o.sent += size
	o.told = message.Told{Digest: digest, At: now}
	return o
}

// today begins the next day if it is due. A clock that was set back begins one, too.
func (o telling) today(now time.Time) telling {
	if age := now.Sub(o.since); age < 0 || age >= message.OfferAgain {
		o.since, o.sent = now, 0
	}
	return o
}

// sendOffers tells the site what an upgrade would change if it began now, each time that
// the versions were read and the plan is another one. It runs beside the loop: no step
// waits until the site has an offer, and nothing depends on it.
func (w *Worker) sendOffers(ctx context.Context) error {
	told, err := w.lastTold(ctx, "what an upgrade would change", w.HostLog.LastOffer)
	if err != nil {
		return err
	}
	known, failed := telling{told: told, most: message.MaxOfferBytes}, ""
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
		if known, err = w.tell(ctx, known, packed, "what an upgrade would change", w.HostLog.Offer); err != nil {
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

// tell tells the site an offer or an inventory if that is due. It returns an error only if
// the lease is lost.
func (w *Worker) tell(ctx context.Context, known telling, body []byte, what string, send func(context.Context, []byte) error) (telling, error) {
	digest := message.Digest(body)
	tell, limited := known.tells(digest, len(body), w.Now())
	if limited {
		w.Log.Info(what+" is told later: it has changed too often today", "host", w.Host, "bytes", known.sent)
	}
	if !tell {
		return known, nil
	}
	err := send(ctx, body)
	switch {
	case errors.Is(err, log.ErrTaken):
		return known, err
	case errors.Is(err, log.ErrRefused): // Such as by an older site: it would refuse it again.
		w.Log.Debug(what+" was refused", "host", w.Host, "error", err)
	case err != nil:
		w.warn(ctx, "cannot tell "+what, err)
		return known, nil
	}
	return known.after(digest, len(body), w.Now()), nil
}

// lastTold asks the site what it has already, which is not told again. It returns an error
// only if the lease is lost.
func (w *Worker) lastTold(ctx context.Context, what string, last func(context.Context) (message.Told, error)) (message.Told, error) {
	told, err := last(ctx)
	switch {
	case errors.Is(err, log.ErrTaken):
		return told, err
	case errors.Is(err, log.ErrRefused): // By an older site.
		w.Log.Debug("cannot read "+what+" as told before", "host", w.Host, "error", err)
	case err != nil:
		w.warn(ctx, "cannot read "+what+" as told before", err)
	}
	return told, nil
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
