package worker

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// versionsFirst is how long a reply waits for the report of the new versions, so
// that they are known when the run ends. The reply does not depend on the report.
const versionsFirst = 10 * time.Second

// reportVersions reports the host's versions at the start, on request, after a
// change that is watched, and every VersionsInterval, until ctx ends. It runs
// beside the loop, because an unreachable site must not delay the actions.
func (w *Worker) reportVersions(ctx context.Context) error {
	known, err := w.lastTold(ctx, report.Versions)
	if err != nil {
		return err
	}
	settle, afterChange := shortestSettle, false
	for {
		waiting := w.reports.Take()
		before := known.told.Digest
		if known, err = w.reportNow(ctx, known); err != nil {
			return err
		}
		for _, caller := range waiting {
			close(caller.Key)
		}
		w.offerDue.Set()
		if isNew := known.told.Digest != before; isNew || afterChange {
			settle = nextSettle(settle, isNew)
		}
		if afterChange, err = w.nextReport(ctx, settle); err != nil {
			return err
		}
	}
}

// nextReport waits until the versions are to be read again, and reports whether that
// is because something has changed. A change counts once nothing has changed for the
// time settle.
func (w *Worker) nextReport(ctx context.Context, settle time.Duration) (afterChange bool, err error) {
	var settled, latest <-chan time.Time
	due := time.After(untilReport(w.Now(), w.VersionsInterval, w.Tenant+"/"+w.Host))
	for {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-w.reports.Ready():
			if _, requested := w.reports.First(); requested {
				return false, nil
			}
			continue
		case <-w.changed:
			// A package manager writes its database many times.
			settled = time.After(settle)
			if latest == nil {
				latest = time.After(settleLimit)
			}
			continue
		case <-settled:
		case <-latest:
		case <-due:
		}
		// An action changes the database itself, and its reply requests a report.
		if w.current.Load() == nil {
			return latest != nil, nil
		}
		settled, latest, due = nil, nil, time.After(settleLimit)
	}
}

const (
	// DefaultVersionsInterval is how often a worker reads the versions of its host
	// though nothing tells that they have changed.
	DefaultVersionsInterval = 10 * time.Minute
	// shortestSettle is how long nothing must have changed before the versions are
	// read after a change.
	shortestSettle = 10 * time.Second
)

// nextSettle returns how long nothing must have changed before the next reading. It
// grows while changes turn out to be none: reading the versions may itself change
// what is watched, as with the shared-memory file of an SQLite database.
func nextSettle(last time.Duration, isNew bool) time.Duration {
	if isNew {
		return shortestSettle
	}
	return min(2*last, settleLimit)
}

// untilReport returns the time until the next regular reading: once in an interval,
// for each host at a moment of its own, so that a fleet does not report at once.
func untilReport(now time.Time, interval time.Duration, host string) time.Duration {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(host)) // It never fails.
	phase := time.Duration(hash.Sum64() % uint64(interval))
	since := (time.Duration(now.UnixNano()) - phase) % interval
	if since < 0 {
		since += interval
	}
	return interval - since
}

// watchVersions has the versions read after each change of the files that the
// strategy names, if it names any.
func (w *Worker) watchVersions(ctx context.Context) error {
	watcher, ok := w.Strategy.(strategy.Watcher)
	if !ok || w.Watch == nil || len(watcher.VersionPaths()) == 0 {
		return nil
	}
	watch := func(ctx context.Context, changed func()) error { return w.Watch(ctx, watcher.VersionPaths(), changed) }
	return w.watch(ctx, watch, w.changed.Set, "cannot watch for a change of the versions; they are read every "+w.VersionsInterval.String())
}

// reportNow reports the versions if they have changed. It returns an error only if the lease is
// lost: a host whose versions cannot be detected or reported still executes commands.
func (w *Worker) reportNow(ctx context.Context, known telling) (telling, error) {
	limited, cancel := context.WithTimeout(ctx, w.Limits.Action)
	defer cancel()
	versions, err := w.Strategy.Versions(limited)
	if err != nil {
		w.warn(ctx, "cannot detect versions", err)
		return known, nil
	}
	return w.tell(ctx, known, report.Versions.Of(message.EncodeVersions(versions)))
}

// versionsBeforeReply requests a report that begins now, and waits for it up to
// versionsFirst.
func (w *Worker) versionsBeforeReply(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, versionsFirst)
	defer cancel()
	reported := make(chan struct{})
	w.reports.Put(reported, struct{}{})
	select {
	case <-reported:
	case <-limited.Done():
		w.warn(ctx, "the reply is sent before the versions", limited.Err())
	}
}
