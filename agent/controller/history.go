package controller

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/trouble"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// historian keeps ended runs in the store beside the loop, oldest first, and
// tries until each is kept: a run is trimmed from the log only then.
type historian struct {
	tenant string
	store  Store
	logger *slog.Logger
	at     func(string)
	some   chan struct{}
	mu     sync.Mutex
	// pending are the runs that are not kept yet, reached the last that is.
	pending []endedRun
	reached uint64
	// keeping is the trouble with it.
	keeping trouble.Spell
}

// endedRun is a run as of a record of the log.
type endedRun struct {
	v1.Run
	asOf uint64
}

func newHistorian(o Options) *historian {
	return &historian{tenant: o.Tenant, store: o.Store, logger: o.Logger, at: o.At, some: make(chan struct{}, 1)}
}

// newest returns the id of the newest run that is kept; 0 when none is.
func (h *historian) newest(ctx context.Context) (id uint64, err error) {
	err = h.store.Runs(ctx, h.tenant, func(r v1.Run) bool {
		id = r.ID
		return false
	})
	h.mu.Lock()
	h.reached = id
	h.mu.Unlock()
	return id, err
}

// put has a run kept soon. One that waits for that already is kept as it is now.
func (h *historian) put(r v1.Run, asOf uint64) {
	h.mu.Lock()
	// The first one may be being written just now.
	if n := len(h.pending); n > 1 && h.pending[n-1].ID == r.ID {
		h.pending = h.pending[:n-1]
	}
	h.pending = append(h.pending, endedRun{r, asOf})
	h.mu.Unlock()
	wake(h.some)
}

// kept returns the id of the newest run that is kept, and whether all are.
func (h *historian) kept() (id uint64, all bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reached, len(h.pending) == 0
}

// find returns a run that is not kept yet.
func (h *historian) find(id uint64) (v1.Run, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range slices.Backward(h.pending) {
		if r.ID == id {
			return r.Run, true
		}
	}
	return v1.Run{}, false
}

// run keeps what put brings until ctx ends, and what is left then.
func (h *historian) run(ctx context.Context) {
	wait := firstPause
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-h.some:
			if h.write(ctx) {
				wait = firstPause
				continue
			}
			pause(ctx, wait)
			wait = min(2*wait, longestPause)
			wake(h.some)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	h.write(last)
}

// write keeps all that is pending, and reports whether it could.
func (h *historian) write(ctx context.Context) bool {
	for {
		h.mu.Lock()
		if len(h.pending) == 0 {
			h.mu.Unlock()
			return true
		}
		r := h.pending[0]
		h.mu.Unlock()
		h.at("before history")
		err := h.store.PutRun(ctx, h.tenant, r.Run, r.asOf)
		h.keeping.Note(h.logger, time.Now(), err, "cannot keep the run in the history; trying again", "runs can be kept in the history again", "tenant", h.tenant, "run", r.ID)
		if err != nil {
			return false
		}
		h.at("after history")
		h.mu.Lock()
		h.pending, h.reached = h.pending[1:], max(h.reached, r.ID)
		h.mu.Unlock()
	}
}

// unkept are the runs that are not kept yet, newest first.
func (h *historian) unkept() []v1.Run {
	h.mu.Lock()
	defer h.mu.Unlock()
	runs := make([]v1.Run, 0, len(h.pending))
	for i := len(h.pending) - 1; i >= 0; i-- {
		runs = append(runs, h.pending[i].Run)
	}
	return runs
}
