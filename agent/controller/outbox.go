package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// NewsStore keeps what is told of a tenant.
type NewsStore interface {
	// PutNews keeps news, as of a record of the log, and returns their number. The same
	// news are kept once.
	PutNews(ctx context.Context, tenant string, told v1.News, asOf uint64) (number uint64, err error)
	// News returns those that are kept, oldest first.
	News(ctx context.Context, tenant string) ([]store.KeptNews, error)
}

// outbox writes news beside the loop, in their order, and tries again until each is
// written: only then may the records that the news tell of be trimmed. All news of the store
// are in memory, too, for clients that ask what is new.
type outbox struct {
	tenant  string
	store   NewsStore
	logger  *slog.Logger
	at      func(string)
	notify  func()
	queue   *wait.Queue[string, store.KeptNews]
	failing throttle.Failing
	// asOf is the record of the newest news that were kept at the start: those of older
	// records were told.
	asOf uint64

	mu sync.Mutex
	// kept are the news that are kept, oldest first, loaded tells that they were read,
	// known has their ids.
	kept   []v1.News
	loaded bool
	known  map[string]bool
}

func newOutbox(o Options, notify func()) *outbox {
	return &outbox{
		tenant: o.Tenant, store: o.News, logger: o.Logger, at: o.At, notify: notify, queue: wait.NewQueue[string, store.KeptNews](), known: map[string]bool{},
	}
}

// load reads the news that are kept.
func (b *outbox) load(ctx context.Context) error {
	if b.store == nil {
		return nil
	}
	all, err := b.store.News(ctx, b.tenant)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range all {
		b.asOf = max(b.asOf, k.AsOf)
		b.known[k.ID] = true
		b.kept = append(b.kept, k.News)
	}
	b.loaded = true
	return nil
}

// put queues news of a record for writing. News of a record are told once, also if they
// are not kept any more.
func (b *outbox) put(asOf uint64, all ...v1.News) {
	if b.store == nil || asOf < b.asOf {
		return
	}
	for _, n := range all {
		b.mu.Lock()
		known := b.known[n.ID]
		b.mu.Unlock()
		if !known {
			b.queue.Put(n.ID, store.KeptNews{News: n, AsOf: asOf})
		}
	}
}

// putBeside queues news that are of no record.
func (b *outbox) putBeside(all ...v1.News) { b.put(b.asOf, all...) }

// empty reports whether all news are kept.
func (b *outbox) empty() bool {
	_, some := b.queue.First()
	return !some
}

// run writes the queued news until ctx ends. It then writes the rest if last returns true.
func (b *outbox) run(ctx context.Context, last func() bool) {
	writeQueued(ctx, b.queue.Wait, b.write, last)
}

// write writes all queued news, and reports whether all were written.
func (b *outbox) write(ctx context.Context) bool {
	for first, some := b.queue.First(); some; first, some = b.queue.First() {
		b.at("before news")
		number, err := b.store.PutNews(ctx, b.tenant, first.Value.News, first.Value.AsOf)
		b.failing.Note(b.logger, time.Now(), err, "cannot keep news; trying again", "news can be kept again", "tenant", b.tenant, "type", first.Value.Type)
		if err != nil {
			return false
		}
		b.at("after news")
		b.add(first.Value.News, number)
		b.queue.Done(first)
		b.notify()
	}
	return true
}

// add adds news that are kept.
func (b *outbox) add(n v1.News, number uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known[n.ID] {
		return
	}
	n.Number = number
	b.known[n.ID] = true
	b.kept = append(b.kept, n)
	for len(b.kept) > v1.MaxNews {
		delete(b.known, b.kept[0].ID)
		b.kept = b.kept[1:]
	}
}

// News returns the news of the tenant after a number, oldest first, and the number of the
// oldest and the newest that are kept; 0 when there are none.
func (c *Controller) News(_ context.Context, after uint64) (all []v1.News, oldest, newest uint64, err error) {
	b := c.session().beside.news
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.store != nil && !b.loaded:
		return nil, 0, 0, run.ErrNotReady
	case len(b.kept) == 0:
		return nil, 0, 0, nil
	}
	oldest, newest = b.kept[0].Number, b.kept[len(b.kept)-1].Number
	for i := len(b.kept); i > 0 && b.kept[i-1].Number > after; i-- {
		all = b.kept[i-1:]
	}
	return append([]v1.News(nil), all...), oldest, newest, nil
}
