package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Entry is the entry of one lease; without a body when it was deleted.
type Entry struct {
	Key      string
	Body     []byte
	Revision uint64
}

// Keeper stores the leases, versions and outputs of one tenant.
type Keeper struct {
	mu       sync.Mutex
	revision uint64
	leases   map[string]Entry
	versions map[string][]byte
	outputs  map[string]message.Output
	// reports are the last offer and the last inventory of each host.
	reports map[string]report
	changed chan struct{}
}

// report is what a host has told, and when.
type report struct {
	body []byte
	at   time.Time
}

// ErrConflict means that the lease has another revision.
var ErrConflict = errors.New("the lease has changed")

var _ gate.Keeper = (*Keeper)(nil)

// NewKeeper makes an empty keeper.
func NewKeeper() *Keeper {
	return &Keeper{leases: map[string]Entry{}, versions: map[string][]byte{}, outputs: map[string]message.Output{}, reports: map[string]report{}, changed: make(chan struct{})}
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

// PutVersions implements gate.Keeper.
func (k *Keeper) PutVersions(_ context.Context, _, key string, body []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.versions[key] = body
	return nil
}

// Versions implements gate.Keeper.
func (k *Keeper) Versions(_ context.Context, _, key string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.versions[key], nil
}

// PutOutput implements gate.Keeper.
func (k *Keeper) PutOutput(_ context.Context, _, key string, o message.Output) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outputs[fmt.Sprint(key, "/", o.Run, "/", o.Step)] = o
	return nil
}

// PutPlan implements gate.Keeper.
func (k *Keeper) PutPlan(_ context.Context, _, key string, run uint64, packed []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outputs[fmt.Sprint(key, "/", run, "/plan")] = message.Output{Run: run, Step: "plan", Text: packed}
	return nil
}

// PutOffer implements gate.Keeper.
func (k *Keeper) PutOffer(_ context.Context, _, key string, packed []byte) error {
	k.putReport("offer/"+key, packed)
	return nil
}

// Offer implements gate.Keeper.
func (k *Keeper) Offer(_ context.Context, _, key string) ([]byte, time.Time, error) {
	r := k.report("offer/" + key)
	return r.body, r.at, nil
}

// PutInventory implements gate.Keeper.
func (k *Keeper) PutInventory(_ context.Context, _, key string, body []byte) error {
	k.putReport("inventory/"+key, body)
	return nil
}

// Inventory implements gate.Keeper.
func (k *Keeper) Inventory(_ context.Context, _, key string) ([]byte, time.Time, error) {
	r := k.report("inventory/" + key)
	return r.body, r.at, nil
}

func (k *Keeper) putReport(name string, body []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reports[name] = report{body, time.Now()}
}

func (k *Keeper) report(name string) report {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.reports[name]
}

// Output returns what PutOutput has stored.
func (k *Keeper) Output(key string, run uint64, step string) (message.Output, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o, found := k.outputs[fmt.Sprint(key, "/", run, "/", step)]
	return o, found
}
