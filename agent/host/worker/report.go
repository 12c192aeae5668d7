package worker

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

const (
	// settleLimit is how long after the first change a report is read at the latest.
	settleLimit = 50 * time.Second
	// watchAgain is the wait after a watch that failed.
	watchAgain = time.Minute
)

// sendSource reads a source at the start, once a day and after each change that is watched, and
// sends what it reads.
func (w *Worker) sendSource(s Source) (send, watch func(context.Context) error) {
	changed, first := wait.NewSignal(), true
	next := func(ctx context.Context) error {
		if first {
			first = false
			return nil
		}
		return untilChange(ctx, changed)
	}
	return func(ctx context.Context) error {
			return w.send(ctx, s.Kind, "cannot read the "+s.Kind.Name, next, func(context.Context) ([]byte, error) { return s.Report() })
		}, func(ctx context.Context) error {
			return w.watch(ctx, s.Watch, changed.Set, "cannot watch for changes of the "+s.Kind.Name+"; it is read once a day")
		}
}

// send sends the reports of a kind, one each time that next returns, until the lease is lost. read
// returns nil when there is nothing to report; failure is logged when it fails. send runs next to
// the loop: no action waits for it.
func (w *Worker) send(ctx context.Context, kind *report.Kind, failure string, next func(context.Context) error, read func(context.Context) ([]byte, error)) error {
	known, err := w.lastTold(ctx, kind)
	if err != nil {
		return err
	}
	failed := ""
	for {
		if err := next(ctx); err != nil {
			return err
		}
		body, err := read(ctx)
		if text := failureText(err); text != failed {
			if failed = text; err != nil {
				w.warn(ctx, failure, err)
			}
		}
		if body == nil || err != nil {
			continue
		}
		if kind == report.Offer && w.anew.Swap(false) {
			known.told = report.Told{} // Whoever has asked sees that it is new, also when it says the same.
		}
		if known, err = w.tell(ctx, known, kind.Of(body)); err != nil {
			return err
		}
	}
}

// lastTold asks the site what it has already, which is not sent again. It returns an error only
// if the lease is lost.
func (w *Worker) lastTold(ctx context.Context, kind *report.Kind) (telling, error) {
	told, err := w.HostLog.LastReport(ctx, kind)
	switch {
	case errors.Is(err, log.ErrTaken):
		return telling{}, err
	case errors.Is(err, log.ErrRefused) && !kind.EverySite:
		w.Log.Debug("cannot read the "+kind.Name+" reported before", "host", w.Host, "error", err)
	case err != nil:
		w.warn(ctx, "cannot read the "+kind.Name+" reported before", err)
	}
	return telling{told: told}, nil
}

// tellOfRun is tell for a report of a run; sent is what is remembered of the reports of that run.
func (w *Worker) tellOfRun(ctx context.Context, sent map[report.ID]telling, r report.Report) error {
	for known := range sent {
		if known.Run != r.Run {
			delete(sent, known)
		}
	}
	known, err := w.tell(ctx, sent[r.ID], r)
	sent[r.ID] = known
	return err
}

// tell sends a report if that is due, and returns what is remembered then. It returns an error
// only if the lease is lost: nothing depends on a report.
func (w *Worker) tell(ctx context.Context, known telling, r report.Report) (telling, error) {
	digest := report.Digest(r.Body)
	tell, limited := known.tells(r.Kind, digest, len(r.Body), w.Now())
	if limited {
		w.Log.Info("the "+r.Kind.Name+" is reported later: it has changed too often today", "host", w.Host, "bytes", known.sent)
	}
	if !tell {
		return known, nil
	}
	_, err := r.Kind.Check(r.Body)
	if err != nil { // The site would refuse it.
		w.warn(ctx, "cannot report "+r.String(), err)
		return known.after(digest, 0, w.Now()), nil
	}
	err = w.HostLog.Report(ctx, r)
	switch {
	case errors.Is(err, log.ErrTaken):
		return known, err
	case errors.Is(err, log.ErrRefused) && !r.Kind.EverySite: // Such as of a run that is not the newest, or by an older site.
		w.Log.Debug("the "+r.String()+" was refused", "host", w.Host, "error", err)
	case errors.Is(err, log.ErrRefused):
		w.warn(ctx, "cannot report "+r.String(), err)
	case err != nil:
		w.warn(ctx, "cannot report "+r.String(), err)
		return known, nil
	}
	return known.after(digest, len(r.Body), w.Now()), nil
}

// untilChange waits until a source is to be read again: after a change, when there was time for
// all of it, or after a day.
func untilChange(ctx context.Context, changed wait.Signal) error {
	due := time.NewTimer(day)
	defer due.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-due.C:
		return nil
	case <-changed:
	}
	// A disk has partitions and an interface several addresses: they come one by one.
	return wait.Sleep(ctx, settleLimit)
}

func failureText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// watch watches until ctx ends, and begins again after each watch that fails.
func (w *Worker) watch(ctx context.Context, watch func(context.Context, func()) error, changed func(), failure string) error {
	var failing throttle.Failing
	for {
		err := watch(ctx, changed)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if failing.Due(w.Now()) {
			w.Log.Warn(failure, "host", w.Host, "error", err)
		}
		if err := wait.Sleep(ctx, watchAgain); err != nil {
			return err
		}
	}
}
