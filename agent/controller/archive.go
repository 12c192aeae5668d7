package controller

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// rearchiveAfter is the wait until a run that has changed after its end is written
// again. Many hosts may reply at about the same time, and each write is of the whole
// run.
const rearchiveAfter = time.Second

// archiver writes ended runs to the history beside the loop, oldest first, each after how hosts
// came out of it, and tries again until each is written: only then may a run be trimmed from the
// log.
type archiver struct {
	tenant string
	store  Store
	logger *slog.Logger
	at     func(string)
	// keepLastRuns keeps the last runs of the hosts, as of the newest queued run.
	keepLastRuns func(context.Context) error
	queue        *wait.Queue[uint64, endedRun]
	failing      throttle.Failing

	mu sync.Mutex
	// kept are the runs in the history, as far back as the log goes. Runs go side by side, so the
	// newest one says nothing of those before it.
	kept map[uint64]bool
}

// endedRun is an ended run, and the last record that it contains.
type endedRun struct {
	v1.Run
	asOf uint64
}

func newArchiver(o Options, keepLastRuns func(context.Context) error) *archiver {
	return &archiver{tenant: o.Tenant, store: o.Store, logger: o.Logger, at: o.At, keepLastRuns: keepLastRuns, queue: wait.NewQueue[uint64, endedRun](), kept: map[uint64]bool{}}
}

// load reads which runs are in the history that a log may have which begins with a record.
func (a *archiver) load(ctx context.Context, first uint64) error {
	return a.store.Runs(ctx, a.tenant, func(r v1.Run) bool {
		a.keep(r.ID)
		return r.ID >= first
	})
}

// keep notes that a run is in the history.
func (a *archiver) keep(id uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.kept[id] = true
}

// has reports whether a run is in the history.
func (a *archiver) has(id uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept[id]
}

// put queues a run for writing.
func (a *archiver) put(r v1.Run, asOf uint64) { a.queue.Put(r.ID, endedRun{r, asOf}) }

// empty reports whether nothing waits to be written.
func (a *archiver) empty() bool {
	_, some := a.queue.First()
	return !some
}

// queued returns the runs that are not in the history yet, newest first.
func (a *archiver) queued() []v1.Run {
	var runs []v1.Run
	for _, item := range slices.Backward(a.queue.Items()) {
		runs = append(runs, item.Value.Run)
	}
	return runs
}

// run writes the queued runs until ctx ends. It then writes the rest if last
// returns true.
func (a *archiver) run(ctx context.Context, last func() bool) {
	writeQueued(ctx, a.queue.Wait, a.write, last)
}

// writeQueued calls write whenever something is queued, and again after a pause that grows
// until all was written, until ctx ends. It then calls write once more if last returns true.
func writeQueued(ctx context.Context, queued func(context.Context) error, write func(context.Context) bool, last func() bool) {
	pause := firstPause
	for queued(ctx) == nil {
		if write(ctx) {
			pause = firstPause
			continue
		}
		_ = wait.Sleep(ctx, pause)
		pause = min(2*pause, longestPause)
	}
	if last() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		write(limited)
	}
}

// write writes all queued runs, and reports whether all were written.
func (a *archiver) write(ctx context.Context) bool {
	for first, some := a.queue.First(); some; first, some = a.queue.First() {
		a.at("before history")
		err := a.keepLastRuns(ctx)
		if err == nil {
			err = a.store.PutRun(ctx, a.tenant, first.Value.Run, first.Value.asOf)
		}
		a.failing.Note(a.logger, time.Now(), err, "cannot keep the run in the history; trying again", "runs can be kept in the history again", "tenant", a.tenant, "run", first.Key)
		if err != nil {
			return false
		}
		a.at("after history")
		a.keep(first.Key)
		a.queue.Done(first)
	}
	return true
}
