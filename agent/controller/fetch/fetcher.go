package fetch

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Store is the part of the store that a Fetcher uses.
type Store interface {
	WatchIntent(ctx context.Context, tenant string, see func(store.Seen)) error
	PutCalendarCopy(ctx context.Context, tenant, name string, fetched v1.CalendarCopy, base store.Revision) (store.Revision, error)
	DeleteCalendarCopy(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error)
}

// Options are what a Fetcher is made with.
type Options struct {
	Store Store
	// Local says to which addresses of this machine and its link the site connects.
	Local dial.Rule
	// Version is that of the program, for sources.
	Version string
	Log     *slog.Logger
	// Client makes the client that asks sources; nil means one that connects only where Local
	// allows, follows no redirect to another host, and waits for nobody for long.
	Client func() *http.Client
	// At is called with the label of each action before it and after it:
	// tests crash there. Nil is allowed.
	At func(label string)
}

// Fetcher fetches the calendars of all tenants of a site.
type Fetcher struct {
	o       Options
	client  *http.Client
	mu      sync.Mutex
	tenants map[string]*tenant
}

// New makes a Fetcher without a tenant.
func New(o Options) *Fetcher {
	if o.Client == nil {
		o.Client = func() *http.Client { return newClient(o.Local, nil) }
	}
	if o.At == nil {
		o.At = func(string) {}
	}
	return &Fetcher{o: o, client: o.Client(), tenants: map[string]*tenant{}}
}

const (
	// atOnce is how many calendars of a tenant are fetched at once.
	atOnce = 4
	// pause is the wait before a calendar is fetched again whose copy another process has
	// written, and before the calendars are read again.
	pause = 10 * time.Second
)

// tenant has the calendars of one tenant. Its loop alone reads and writes them.
type tenant struct {
	*Fetcher
	name   string
	posted chan func()
	// ended is closed once nothing is posted any more.
	ended chan struct{}
	// calendars are those with a URL, and those of which a copy is kept. read tells that all
	// were seen that were there at the start.
	calendars map[string]*subscribed
	read      bool
	fetching  int
	running   sync.WaitGroup
}

// subscribed is a calendar.
type subscribed struct {
	// target is the calendar; its URL is empty if there is none, or it has no URL any more.
	target Target
	// kept is the copy, nil if there is none, base its revision.
	kept *v1.CalendarCopy
	base store.Revision
	// busy tells that it is being fetched, notBefore when a copy that could not be written may
	// be tried again.
	busy      bool
	notBefore time.Time
	// unwritten counts the copies in a row that could not be written, unreadable tells that the
	// calendar cannot be read.
	unwritten  int
	unreadable bool
	// requests are from those who want it to be fetched once the revision wanted was seen, waiting
	// from those who wait for the end of the fetch that was begun for them.
	requests, waiting []chan<- error
	wanted            uint64
}

// Add adds a tenant. Its calendars are fetched while run runs, until ctx ends; it must be called.
func (f *Fetcher) Add(name string) (run func(ctx context.Context)) {
	t := &tenant{Fetcher: f, name: name, posted: make(chan func()), ended: make(chan struct{}), calendars: map[string]*subscribed{}}
	f.mu.Lock()
	f.tenants[name] = t
	f.mu.Unlock()
	return t.run
}

func (t *tenant) run(ctx context.Context) {
	defer func() {
		t.mu.Lock()
		delete(t.tenants, t.name)
		t.mu.Unlock()
		close(t.ended)
		t.running.Wait()
	}()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	t.running.Go(func() { t.watch(ctx) })
	for {
		var due <-chan time.Time
		if next := t.begin(ctx, time.Now()); !next.IsZero() {
			due = time.After(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return
		case f := <-t.posted:
			f()
		case <-due:
		}
	}
}

// post has f run in the loop.
func (t *tenant) post(ctx context.Context, f func()) error {
	select {
	case t.posted <- f:
		return nil
	case <-t.ended:
		return errNotServed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watch follows what is declared and what is kept.
func (t *tenant) watch(ctx context.Context) {
	warn := func(err error) {
		t.o.Log.Warn("lost the watch on calendars; reading them again", "tenant", t.name, "error", err)
	}
	for ctx.Err() == nil {
		err := log.Again(ctx, func() error {
			return t.o.Store.WatchIntent(ctx, t.name, func(seen store.Seen) { _ = t.post(ctx, func() { t.see(seen) }) })
		}, warn)
		if ctx.Err() == nil {
			warn(err)
			_ = wait.Sleep(ctx, pause)
		}
	}
}

// of returns the calendar of a name.
func (t *tenant) of(name string) *subscribed {
	c := t.calendars[name]
	if c == nil {
		c = &subscribed{target: Target{Tenant: t.name, Name: name}}
		t.calendars[name] = c
	}
	return c
}

// see takes up what was written or deleted.
func (t *tenant) see(seen store.Seen) {
	switch {
	case seen.Object == (store.Object{}):
		t.read = true
	case seen.Kind == store.Calendar && seen.Err != nil: // Nobody knows what it is; its copy stays.
		t.of(seen.Name).unreadable = true
	case seen.Kind == store.Calendar:
		c := t.of(seen.Name)
		c.unreadable = false
		c.target.Revision, c.target.Calendar = seen.Number, v1.Calendar{}
		if seen.Calendar != nil && seen.Calendar.URL != "" {
			c.target.Calendar = *seen.Calendar
		}
	case seen.Kind == store.Copy:
		c := t.of(seen.Name)
		if seen.Number < c.base.Number {
			return // An earlier one than was written since.
		}
		c.kept, c.base = seen.Copy, store.Revision{Bucket: seen.Bucket, Number: seen.Number}
		if seen.Copy == nil && seen.Err == nil {
			c.base = store.Revision{}
		}
	}
}

// begin begins what is due, and returns when the next is; zero means not before something
// happens.
func (t *tenant) begin(ctx context.Context, now time.Time) (next time.Time) {
	if !t.read {
		return time.Time{}
	}
	for _, name := range slices.Sorted(maps.Keys(t.calendars)) {
		c := t.calendars[name]
		if c.busy {
			continue
		}
		at := c.next(now)
		switch {
		case c.gone():
			c.waiting, c.requests = c.requests, nil
			c.answer(store.ErrNotFound)
			delete(t.calendars, name)
		case at.IsZero(): // The watch is behind whoever asks.
		case at.After(now):
			next = times.Sooner(next, at)
		case t.fetching >= atOnce: // The end of another begins it.
		default:
			t.start(ctx, c)
		}
	}
	return next
}

// next returns when something is to be done for a calendar; zero means never.
func (c *subscribed) next(now time.Time) time.Time {
	switch has := c.target.Calendar.URL != ""; {
	case has && len(c.requests) > 0 && c.seen():
		return now
	case has:
		return times.Later(Due(c.target, c.kept, now), c.notBefore)
	case c.base != (store.Revision{}) && !c.unreadable: // The copy goes.
		return times.Later(now, c.notBefore)
	}
	return time.Time{}
}

// seen reports whether the calendar is as whoever asks knows it, or newer.
func (c *subscribed) seen() bool { return c.target.Revision >= c.wanted }

// gone reports whether there is neither a calendar with a URL nor a copy, and nobody waits for
// one.
func (c *subscribed) gone() bool {
	return c.target.Calendar.URL == "" && c.base == (store.Revision{}) && (len(c.requests) == 0 || c.seen())
}

// start fetches a calendar, or removes the copy of one that has no URL any more.
func (t *tenant) start(ctx context.Context, c *subscribed) {
	t.fetching++
	c.busy = true
	if c.seen() {
		c.waiting, c.requests = c.requests, nil
	}
	target, kept, base := c.target, c.kept, c.base
	t.running.Go(func() {
		var next *v1.CalendarCopy
		var err error
		if target.Calendar.URL == "" {
			_, err = t.o.Store.DeleteCalendarCopy(ctx, t.name, target.Name, base)
			base = store.Revision{}
		} else {
			next, base, err = t.fetch(ctx, target, kept, base)
		}
		_ = t.post(ctx, func() { t.end(c, next, base, err) })
	})
}

// fetch asks for a calendar and keeps what follows.
func (t *tenant) fetch(ctx context.Context, target Target, kept *v1.CalendarCopy, base store.Revision) (*v1.CalendarCopy, store.Revision, error) {
	answer := ask(ctx, t.client, "osupgrade-agent/"+t.o.Version, target, kept)
	if ctx.Err() != nil {
		return nil, base, ctx.Err()
	}
	next := After(target, kept, answer, time.Now())
	t.o.At("before copy")
	revision, err := t.o.Store.PutCalendarCopy(ctx, t.name, target.Name, next, base)
	if err != nil {
		return nil, base, err
	}
	t.o.At("after copy")
	logger := t.o.Log.With("tenant", t.name, "calendar", target.Name, "host", target.Calendar.Host())
	switch {
	case next.Tries == 1:
		logger.Warn("cannot fetch a calendar; what was fetched before stays in force", "error", next.Error)
	case next.Tries == 0 && kept != nil && kept.Tries > 0:
		logger.Info("a calendar is fetched again")
	}
	if kept != nil && next.EmptiedAt.After(kept.EmptiedAt) {
		logger.Warn("a calendar has no events any more", "kind", target.Calendar.Kind)
	}
	return &next, revision, nil
}

// end takes up what came of start.
func (t *tenant) end(c *subscribed, next *v1.CalendarCopy, base store.Revision, err error) {
	t.fetching--
	c.busy = false
	c.notBefore = time.Time{}
	switch {
	case errors.Is(err, store.ErrConflict): // The watch has the newer one.
		c.notBefore = time.Now().Add(pause)
	case err != nil: // The source is asked no more often than if it had failed itself.
		c.unwritten++
		c.notBefore = time.Now().Add(retryAfter(c.unwritten, c.target.every()))
		t.o.Log.Warn("cannot store what was fetched of a calendar; trying again", "tenant", t.name, "calendar", c.target.Name, "at", c.notBefore.UTC(), "error", err)
	default:
		c.unwritten = 0
	}
	if err == nil && (base.Number >= c.base.Number || base == (store.Revision{})) {
		c.kept, c.base = next, base
	}
	if err == nil && next != nil && next.Tries == 0 {
		c.target.Read = true
	}
	if next == nil && err == nil {
		err = store.ErrNotFound
	}
	c.answer(err)
}

// answer answers those who wait for the last try.
func (c *subscribed) answer(err error) {
	for _, w := range c.waiting {
		w <- err
	}
	c.waiting = nil
}

// errNotServed means that the tenant has no loop at the moment.
var errNotServed = errors.New("the tenant is not served at the moment; try again")

// Refresh fetches a calendar now as of a revision of it, and returns once what came of it is kept.
// Those who ask while it is fetched share the fetch that follows. The error is store.ErrNotFound
// if the calendar has no URL any more.
func (f *Fetcher) Refresh(ctx context.Context, tenant, name string, revision uint64) error {
	f.mu.Lock()
	t := f.tenants[tenant]
	f.mu.Unlock()
	if t == nil {
		return errNotServed
	}
	answered := make(chan error, 1)
	err := t.post(ctx, func() {
		c := t.of(name)
		c.requests, c.wanted = append(c.requests, answered), max(c.wanted, revision)
	})
	if err != nil {
		return err
	}
	select {
	case err := <-answered:
		return err
	case <-t.ended:
		return errNotServed
	case <-ctx.Done():
		return ctx.Err()
	}
}
