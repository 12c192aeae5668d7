package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
)

const (
	// hostPause is the least time between two rounds of writing hosts, so that
	// a host that changes with each heartbeat does not wear out the disk.
	hostPause = 2 * time.Second
	// flushTimeout bounds the last round when the controller stops.
	flushTimeout = 2 * time.Second
)

// hostWriter writes hosts to the store beside the loop, so that a slow disk does
// not hold up a run.
type hostWriter struct {
	store  Store
	logger *slog.Logger
	queue  *wait.Queue[string, store.Host]
	// writing is held during a write to the store, so that no earlier write of a
	// host arrives after its deletion.
	writing sync.Mutex
	// deleted has the hosts whose deletion the loop does not know of yet: what it queues of them
	// until then is not written.
	deleted sync.Map
	// lastRuns are those of all hosts of the tenant. They are written with the next run.
	lastRuns *wait.Queue[string, queuedRuns]
	failing  throttle.Failing
}

// queuedRuns are the last runs as of the end of a run, and the hosts deleted since.
type queuedRuns struct {
	runs []store.LastRun
	gone []string
}

func newHostWriter(o Options) *hostWriter {
	return &hostWriter{store: o.Store, logger: o.Logger, queue: wait.NewQueue[string, store.Host](), lastRuns: wait.NewQueue[string, queuedRuns]()}
}

// put queues a host for writing.
func (w *hostWriter) put(h store.Host) { w.queue.Put(h.Name, h) }

// keepLastRuns keeps the last runs that are queued. A write of a host that has begun ends first:
// it may have an earlier last run, and must not come after them.
func (w *hostWriter) keepLastRuns(ctx context.Context) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	first, found := w.lastRuns.First()
	if !found {
		return nil
	}
	if err := w.store.PutLastRuns(ctx, first.Key, store.WithoutHosts(first.Value.runs, first.Value.gone)); err != nil {
		return err
	}
	w.lastRuns.Done(first)
	return nil
}

// run writes the queued hosts until ctx ends. It then writes the rest if last
// returns true.
func (w *hostWriter) run(ctx context.Context, last func() bool) {
	for w.queue.Wait(ctx) == nil {
		w.write(ctx)
		_ = wait.Sleep(ctx, hostPause)
	}
	if last() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		w.write(limited)
	}
}

// write writes each queued host once: one that changes meanwhile waits for the next
// round. After a write that failed the rest waits, too: each failing write takes long.
func (w *hostWriter) write(ctx context.Context) {
	for range w.queue.Len() {
		h, found, err := w.writeFirst(ctx)
		if !found {
			return
		}
		w.failing.Note(w.logger, time.Now(), err, "cannot keep host; trying again", "hosts can be kept again", "tenant", h.Tenant, "host", h.Name)
		if err != nil {
			return
		}
	}
}

// writeFirst writes the first host of the queue.
func (w *hostWriter) writeFirst(ctx context.Context) (h store.Host, found bool, err error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	first, found := w.queue.First()
	if !found {
		return h, false, nil
	}
	err = w.writeQueued(ctx, first.Key)
	// What is still queued has changed, or cannot be written: the fault may concern
	// this host alone.
	w.queue.Defer(first)
	return first.Value, true, err
}

// writeQueued writes what is queued of a host; writing is held. Whether it was deleted is asked
// first: the loop takes what is queued away before it takes the mark away.
func (w *hostWriter) writeQueued(ctx context.Context, name string) error {
	if _, is := w.deleted.Load(name); is {
		return nil
	}
	item, found := w.queue.Of(name)
	if !found {
		return nil
	}
	if err := w.store.PutHost(ctx, log.Token(name), item.Value); err != nil {
		return err
	}
	w.queue.Done(item)
	return nil
}

// keep writes what is queued of a host now. If nothing is, it was written already, or deleted.
func (w *hostWriter) keep(ctx context.Context, name string) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	return w.writeQueued(ctx, name)
}

// delete deletes a host from the store. It is not written again until the loop has decided what
// becomes of it, with drop or restore.
func (w *hostWriter) delete(ctx context.Context, tenant, name string) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	err := w.store.DeleteHost(ctx, tenant, log.Token(name))
	if err == nil {
		w.deleted.Store(name, true)
		w.queue.Drop(name)
	}
	return err
}

// drop forgets what was queued of a host since it was deleted.
func (w *hostWriter) drop(name string) {
	w.queue.Drop(name)
	w.deleted.Delete(name)
}

// restore has a host written again that was deleted and is not to be.
func (w *hostWriter) restore(h store.Host) {
	w.put(h)
	w.deleted.Delete(h.Name)
}
