package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
)

var errWatchEnded = fmt.Errorf("the watch has ended: %w", log.ErrStale)

// watch calls take with the current entries of some keys, with nil after them,
// and then with each entry that changes, until take returns false. The error is
// that of ctx, or errWatchEnded when the store is gone.
func watch(ctx context.Context, kv jetstream.KeyValue, keys string, take func(jetstream.KeyValueEntry) (more bool), options ...jetstream.WatchOpt) error {
	watcher, err := kv.Watch(ctx, keys, options...)
	if err != nil {
		return err
	}
	return follow(ctx, watcher, take)
}

// follow is watch with a watcher that has begun.
func follow(ctx context.Context, watcher jetstream.KeyWatcher, take func(jetstream.KeyValueEntry) (more bool)) error {
	defer func() { _ = watcher.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, open := <-watcher.Updates():
			switch {
			case !open && ctx.Err() != nil:
				return ctx.Err()
			case !open:
				return errWatchEnded
			case !take(entry):
				return nil
			}
		}
	}
}

// divided is a bucket of which many tenants are watched. One watch sees the changes of all
// of them: a watch for each would be a consumer of the server for each, and a stream has
// at most 1,000. The first token of a key is the tenant.
type divided struct {
	jetstream.KeyValue
	js jetstream.JetStream
	// reading has an entry for each tenant whose entries are being read.
	reading chan struct{}
	mu      sync.Mutex
	// shared is the watch of all tenants; nil while none is watched.
	shared *sharedWatch
}

// maxReading is how many tenants are read at once: each takes a consumer for a moment.
const maxReading = 100

func divide(js jetstream.JetStream, kv jetstream.KeyValue) *divided {
	return &divided{KeyValue: kv, js: js, reading: make(chan struct{}, maxReading)}
}

// sharedWatch is one watch of all tenants.
type sharedWatch struct {
	stop context.CancelFunc
	// begun is closed once each further change is seen, ended when none is any more, because
	// of err.
	begun, ended chan struct{}
	err          error
	mu           sync.Mutex
	tenants      map[string]map[*share]bool
	shares       int
}

// share has what changed of one tenant until it is taken: of each key the last entry. So a
// tenant that takes nothing holds up no other, and needs no more memory than its keys.
type share struct {
	changed wait.Signal
	mu      sync.Mutex
	entries map[string]jetstream.KeyValueEntry
}

// watch calls take with a tenant's entries, with nil after them, and then with each that
// changes, in the order of the changes. The error is that of ctx, or why the store cannot
// be watched: that is log.ErrStale, because the store may be back at once, and one failure
// ends the watches of all tenants.
func (d *divided) watch(ctx context.Context, tenant string, take func(jetstream.KeyValueEntry)) error {
	w, mine := d.join(tenant)
	defer d.leave(w, mine, tenant)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ended:
		return w.err
	case <-w.begun:
	}
	last, err := d.read(ctx, tenant, take)
	if err != nil {
		return fmt.Errorf("%w: %w", log.ErrStale, err)
	}
	take(nil)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.ended:
			return w.err
		case <-mine.changed:
		}
		for _, entry := range mine.take() {
			if entry.Revision() > last && ctx.Err() == nil {
				take(entry)
			}
		}
	}
}

// read calls take with a tenant's entries and returns the number up to which it has read. A
// replica of the bucket that is behind may not have all that the shared watch has passed, so
// read waits for the last change.
func (d *divided) read(ctx context.Context, tenant string, take func(jetstream.KeyValueEntry)) (upTo uint64, err error) {
	newest, err := d.last(ctx, tenant+".>")
	if err != nil || newest.revision == 0 {
		return 0, err
	}
	done, err := d.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	complete := false
	return upTo, watch(ctx, d.KeyValue, tenant+".>", func(entry jetstream.KeyValueEntry) (more bool) {
		if entry == nil {
			complete = true
		} else {
			upTo = entry.Revision()
			take(entry)
		}
		return !complete || upTo < newest.revision
	})
}

// begin waits until the entries of a tenant may be read; done is called after that.
func (d *divided) begin(ctx context.Context) (done func(), err error) {
	select {
	case d.reading <- struct{}{}:
		return func() { <-d.reading }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// join adds a share of a tenant to the shared watch, and begins that when there is none.
func (d *divided) join(tenant string) (*sharedWatch, *share) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := d.shared
	if w == nil {
		ctx, stop := context.WithCancel(context.Background())
		w = &sharedWatch{stop: stop, begun: make(chan struct{}), ended: make(chan struct{}), tenants: map[string]map[*share]bool{}}
		d.shared = w
		go d.run(ctx, w)
	}
	return w, w.add(tenant)
}

// leave removes a share. The last one ends the watch.
func (d *divided) leave(w *sharedWatch, mine *share, tenant string) {
	d.mu.Lock()
	last := w.remove(tenant, mine) == 0
	if last && d.shared == w {
		d.shared = nil
	}
	d.mu.Unlock()
	if last {
		w.stop()
		<-w.ended
	}
}

// run sees the changes of all tenants until ctx ends or the store is gone.
func (d *divided) run(ctx context.Context, w *sharedWatch) {
	w.err = d.distribute(ctx, w)
	d.mu.Lock()
	if d.shared == w { // Who comes now begins another.
		d.shared = nil
	}
	d.mu.Unlock()
	w.stop()
	close(w.ended)
}

func (d *divided) distribute(ctx context.Context, w *sharedWatch) error {
	watcher, err := d.WatchAll(ctx, jetstream.UpdatesOnly())
	if err != nil {
		return fmt.Errorf("%w: %w", log.ErrStale, err)
	}
	close(w.begun)
	return follow(ctx, watcher, func(entry jetstream.KeyValueEntry) bool {
		if entry != nil {
			w.deliver(entry)
		}
		return true
	})
}

func (w *sharedWatch) add(tenant string) *share {
	mine := &share{changed: wait.NewSignal(), entries: map[string]jetstream.KeyValueEntry{}}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tenants[tenant] == nil {
		w.tenants[tenant] = map[*share]bool{}
	}
	w.tenants[tenant][mine] = true
	w.shares++
	return mine
}

func (w *sharedWatch) remove(tenant string, mine *share) (left int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tenants[tenant], mine)
	if len(w.tenants[tenant]) == 0 {
		delete(w.tenants, tenant)
	}
	w.shares--
	return w.shares
}

func (w *sharedWatch) deliver(entry jetstream.KeyValueEntry) {
	tenant, _, _ := strings.Cut(entry.Key(), ".")
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.tenants[tenant] {
		s.put(entry)
	}
}

func (s *share) put(entry jetstream.KeyValueEntry) {
	s.mu.Lock()
	s.entries[entry.Key()] = entry
	s.mu.Unlock()
	s.changed.Set()
}

// take removes what has changed and returns it, the oldest first.
func (s *share) take() []jetstream.KeyValueEntry {
	s.mu.Lock()
	changed := slices.Collect(maps.Values(s.entries))
	clear(s.entries)
	s.mu.Unlock()
	slices.SortFunc(changed, func(a, b jetstream.KeyValueEntry) int { return cmp.Compare(a.Revision(), b.Revision()) })
	return changed
}

// lastEntry is the newest entry of some keys; without a body when it was deleted, and
// without a revision when there never was one.
type lastEntry struct {
	body     []byte
	revision uint64
}

// lastLimit bounds the wait for a leader that does not answer.
const lastLimit = 5 * time.Second

// last asks the API of JetStream, which only the leader answers. keys may have wildcards.
func (d *divided) last(ctx context.Context, keys string) (lastEntry, error) {
	ctx, stop := context.WithTimeout(ctx, lastLimit)
	defer stop()
	request, err := json.Marshal(map[string]string{"last_by_subj": "$KV." + d.Bucket() + "." + keys})
	if err != nil {
		return lastEntry{}, err
	}
	msg, err := d.js.Conn().RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+durability.BucketStream(d.Bucket()), request)
	if err != nil {
		return lastEntry{}, err
	}
	var response struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Seq     uint64 `json:"seq"`
			Headers []byte `json:"hdrs"`
			Data    []byte `json:"data"`
		} `json:"message"`
	}
	if err := json.Unmarshal(msg.Data, &response); err != nil {
		return lastEntry{}, err
	}
	switch {
	case response.Error != nil && response.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return lastEntry{}, nil
	case response.Error != nil:
		return lastEntry{}, response.Error
	case bytes.Contains(response.Message.Headers, []byte("KV-Operation")):
		// It marks that the entry was deleted.
		return lastEntry{revision: response.Message.Seq}, nil
	}
	return lastEntry{response.Message.Data, response.Message.Seq}, nil
}
