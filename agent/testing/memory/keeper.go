package memory

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// Entry is the entry of one lease; without a body when it was deleted.
type Entry struct {
	Key      string
	Body     []byte
	Revision uint64
}

// Keeper stores the leases and reports of one tenant.
type Keeper struct {
	mu       sync.Mutex
	revision uint64
	leases   map[string]Entry
	reports  map[reportKey]report.Kept
	changed  chan struct{}
}

// reportKey identifies a report of a host.
type reportKey struct {
	key string
	id  report.ID
}

// ErrConflict means that the lease has another revision.
var ErrConflict = errors.New("the lease has changed")

var _ gate.Keeper = (*Keeper)(nil)

// NewKeeper makes an empty keeper.
func NewKeeper() *Keeper {
	return &Keeper{leases: map[string]Entry{}, reports: map[reportKey]report.Kept{}, changed: make(chan struct{})}
}

// put writes a lease, with the lock held.
func (k *Keeper) put(key string, body []byte) uint64 {
	k.revision++
	k.leases[key] = Entry{key, body, k.revision}
	close(k.changed)
	k.changed = make(chan struct{})
	return k.revision
}

// PutLease implements gate.Keeper.
func (k *Keeper) PutLease(_ context.Context, _, key string, body []byte, base uint64) (uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases[key].Revision != base {
		return 0, ErrConflict
	}
	return k.put(key, body), nil
}

// DeleteLease deletes a lease, as the deletion of a host does.
func (k *Keeper) DeleteLease(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases[key].Body != nil {
		k.put(key, nil)
	}
}

// Lease implements gate.Keeper.
func (k *Keeper) Lease(_ context.Context, _, key string) ([]byte, uint64, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.leases[key].Body, k.leases[key].Revision, nil
}

// Since returns the leases that have changed since a revision, oldest change
// first, and a channel that is closed at the next change.
func (k *Keeper) Since(revision uint64) (changed []Entry, more <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.leases {
		if e.Revision > revision {
			changed = append(changed, e)
		}
	}
	slices.SortFunc(changed, func(a, b Entry) int { return cmp.Compare(a.Revision, b.Revision) })
	return changed, k.changed
}

// WatchLeases implements gate.Keeper.
func (k *Keeper) WatchLeases(ctx context.Context, _ string, see func(key string, body []byte, revision uint64)) error {
	for first, since := true, uint64(0); ; first = false {
		changed, more := k.Since(since)
		for _, e := range changed {
			see(e.Key, e.Body, e.Revision)
			since = e.Revision
		}
		if first {
			see("", nil, 0)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-more:
		}
	}
}

// PutReport implements gate.Keeper.
func (k *Keeper) PutReport(_ context.Context, _, key string, r report.Report) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reports[reportKey{key, r.ID}] = report.Kept{At: time.Now(), Cut: r.Cut, Body: r.Body}
	return nil
}

// Report implements gate.Keeper.
func (k *Keeper) Report(_ context.Context, _, key string, id report.ID) (report.Kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, found := k.reports[reportKey{key, id}]
	if !found {
		return report.Kept{}, report.ErrNotFound
	}
	return kept, nil
}
