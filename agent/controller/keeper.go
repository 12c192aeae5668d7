package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/trouble"
)

const (
	// hostPause is the least time between two rounds of writing hosts, so that
	// a host that changes with each heartbeat does not wear out the disk.
	hostPause = 2 * time.Second
	// flushTimeout bounds the last round when the controller stops.
	flushTimeout = 2 * time.Second
)

// keeper writes hosts to the store beside the loop, of each only the newest,
// so that a slow disk does not hold up a run.
type keeper struct {
	store  Store
	logger *slog.Logger
	some   chan struct{}
	// writing is held while the store is written to, so that no earlier write
	// of a host comes after its deletion.
	writing sync.Mutex
	mu      sync.Mutex
	pending map[string]store.Host
	// keeping is the trouble with it.
	keeping trouble.Spell
}

func newKeeper(o Options) *keeper {
	return &keeper{store: o.Store, logger: o.Logger, some: make(chan struct{}, 1), pending: map[string]store.Host{}}
}

// put has a host written soon.
func (k *keeper) put(h store.Host) {
	k.mu.Lock()
	k.pending[h.Name] = h
	k.mu.Unlock()
	wake(k.some)
}

// run writes what put brings until ctx ends, and what is left then.
func (k *keeper) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-k.some:
			k.write(ctx)
			pause(ctx, hostPause)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	k.write(last)
}

// write writes all that is pending. What fails stays pending for the next
// round, and so does what comes after it: the store is slow to fail.
func (k *keeper) write(ctx context.Context) {
	for {
		h, err := k.writeOne(ctx)
		if h.Name == "" {
			return
		}
		k.keeping.Note(k.logger, time.Now(), err, "cannot keep host; trying again", "hosts can be kept again", "tenant", h.Tenant, "host", h.Name)
		if err != nil {
			wake(k.some)
			return
		}
	}
}

// writeOne writes one host; none when nothing is pending.
func (k *keeper) writeOne(ctx context.Context) (store.Host, error) {
	k.writing.Lock()
	defer k.writing.Unlock()
	h := k.pop()
	if h.Name == "" {
		return h, nil
	}
	err := k.store.PutHost(ctx, log.Token(h.Name), h)
	if err != nil {
		k.putBack(h)
	}
	return h, err
}

func (k *keeper) pop() store.Host {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, h := range k.pending {
		delete(k.pending, name)
		return h
	}
	return store.Host{}
}

// putBack makes a host pending again unless a newer one is.
func (k *keeper) putBack(h store.Host) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, newer := k.pending[h.Name]; !newer {
		k.pending[h.Name] = h
	}
}

// forget deletes a host from the store.
func (k *keeper) forget(ctx context.Context, tenant, name string) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	k.mu.Lock()
	delete(k.pending, name)
	k.mu.Unlock()
	return k.store.DeleteHost(ctx, tenant, log.Token(name))
}

// pause waits for some time or until ctx ends.
func pause(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
