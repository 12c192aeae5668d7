package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Store is package store in memory, for any number of tenants. What is read shares nothing
// with what was written: both are copies, as over a wire.
type Store struct {
	// Now is its clock, time.Now if nil. It is set before the use of the store.
	Now func() time.Time

	mu sync.Mutex
	// changed is closed and replaced at each change.
	changed                         chan struct{}
	intent, hosts, leases, webhooks bucket
	reports                         map[*report.Kind]*bucket
	runs                            map[string][]keptRun
	news                            map[string]*keptNews
}

// NewStore makes an empty store.
func NewStore() *Store {
	s := &Store{reports: map[*report.Kind]*bucket{}, changed: make(chan struct{}), runs: map[string][]keptRun{}, news: map[string]*keptNews{}}
	for _, kind := range report.Kinds {
		s.reports[kind] = &bucket{}
	}
	return s
}

// bucket is a key-value bucket with a history of one.
type bucket struct {
	last    uint64
	entries map[string]entry
}

// entry is the newest entry of a key; without a body when it was deleted.
type entry struct {
	key    string
	body   []byte
	number uint64
	at     time.Time
	// report is what a report has besides its body.
	report report.Entry
}

// write replaces an entry; no body deletes it. The lock is held.
func (s *Store) write(b *bucket, key string, body []byte) uint64 {
	if b.entries == nil {
		b.entries = map[string]entry{}
	}
	b.last++
	at := time.Now()
	if s.Now != nil {
		at = s.Now()
	}
	b.entries[key] = entry{key: key, body: body, number: b.last, at: at}
	close(s.changed)
	s.changed = make(chan struct{})
	return b.last
}

// below returns the entries whose keys begin with a prefix and that were written after a
// number, oldest first, also the deleted ones. The lock is held.
func (b *bucket) below(prefix string, after uint64) (found []entry) {
	for key, e := range b.entries {
		if strings.HasPrefix(key, prefix) && e.number > after {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	return found
}

// list returns the entries below a prefix that are not deleted.
func (s *Store) list(b *bucket, prefix string) []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(b.below(prefix, 0), func(e entry) bool { return e.body == nil })
}

// watch calls see with the entries below a prefix, then ended, and then see with each entry
// that changes, until ctx ends. Of an entry that changes quickly it may see only the last
// state, as a watch of a bucket does.
func (s *Store) watch(ctx context.Context, b *bucket, prefix string, see func(entry), ended func()) error {
	for last, first := uint64(0), true; ; first = false {
		s.mu.Lock()
		found, changed := b.below(prefix, last), s.changed
		s.mu.Unlock()
		for _, e := range found {
			see(e)
			last = e.number
		}
		if first {
			ended()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// theBucket is the identity of the bucket of the intent.
const theBucket = 1

func revision(number uint64) store.Revision {
	return store.Revision{Bucket: theBucket, Number: number}
}

func intentKey(tenant string, of store.Object) string {
	return strings.Join([]string{tenant, string(of.Kind), of.Name}, ".")
}

func objectOf(key string) store.Object {
	parts := strings.SplitN(key, ".", 3)
	return store.Object{Kind: store.Kind(parts[1]), Name: parts[2]}
}

// nameOf names the object of a key as package store does.
func nameOf(key string) string {
	tenant, _, _ := strings.Cut(key, ".")
	of := objectOf(key)
	name := string(of.Kind)
	if of.Kind == store.Config {
		name = "os-upgrade configuration"
	}
	if of.Name != "" {
		name += " " + of.Name
	}
	return name + " of tenant " + tenant
}

func decode[T any](e entry) (value T, err error) {
	err = format.Config.Decode(e.body, &value)
	if err != nil && !format.IsUnsupported(err) {
		err = fmt.Errorf("the stored %s %w: %w", nameOf(e.key), store.ErrDamaged, err)
	}
	return value, err
}

// get reads an object of the intent.
func get[T any](s *Store, tenant string, of store.Object) (T, store.Revision, error) {
	s.mu.Lock()
	e := s.intent.entries[intentKey(tenant, of)]
	s.mu.Unlock()
	if e.body == nil {
		var none T
		return none, store.Revision{}, fmt.Errorf("cannot read the %s of tenant %s: %w", of.Kind, tenant, store.ErrNotFound)
	}
	value, err := decode[T](e)
	return value, revision(e.number), err
}

// all reads the objects of a kind, by name.
func all[T any](s *Store, tenant string, kind store.Kind) (found []store.Named[T], err error) {
	for _, e := range s.list(&s.intent, intentKey(tenant, store.Object{Kind: kind})) {
		value, err := decode[T](e)
		if err != nil {
			return nil, err
		}
		found = append(found, store.Named[T]{Name: objectOf(e.key).Name, Value: value, Revision: revision(e.number)})
	}
	slices.SortFunc(found, func(a, b store.Named[T]) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// put writes an object that still has the revision base, zero for none. A tenant may have
// most of its kind; 0 stands for any number.
func (s *Store) put(tenant string, of store.Object, value any, base store.Revision, most int) (store.Revision, error) {
	body, err := format.Config.Encode(value)
	if err != nil {
		return store.Revision{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := intentKey(tenant, of)
	now := s.intent.entries[key]
	switch isNew := base == (store.Revision{}); {
	case isNew && most > 0 && s.count(tenant, of.Kind) >= most:
		return store.Revision{}, full(tenant, of.Kind, most)
	case isNew && now.body != nil, !isNew && base != revision(now.number):
		return store.Revision{}, fmt.Errorf("cannot write the %s of tenant %s: %w", of.Kind, tenant, store.ErrConflict)
	}
	return revision(s.write(&s.intent, key, body)), nil
}

// count returns how many objects of a kind a tenant has. The lock is held.
func (s *Store) count(tenant string, kind store.Kind) (n int) {
	for _, e := range s.intent.below(intentKey(tenant, store.Object{Kind: kind}), 0) {
		if e.body != nil {
			n++
		}
	}
	return n
}

func full(tenant string, kind store.Kind, most int) error {
	return fmt.Errorf("tenant %s has %d %ss: %w; delete one first", tenant, most, kind, store.ErrFull)
}

func (s *Store) room(tenant string, kind store.Kind, most int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count(tenant, kind) >= most {
		return full(tenant, kind, most)
	}
	return nil
}

func (s *Store) remove(tenant string, of store.Object, base store.Revision) (store.Revision, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := intentKey(tenant, of)
	if base != revision(s.intent.entries[key].number) {
		return store.Revision{}, fmt.Errorf("cannot delete the %s of tenant %s: %w", of.Kind, tenant, store.ErrConflict)
	}
	return revision(s.write(&s.intent, key, nil)), nil
}

// Damage makes what is stored of an object unreadable, as a damaged disk does.
func (s *Store) Damage(tenant string, of store.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(&s.intent, intentKey(tenant, of), []byte("{"))
}

var (
	config  = store.Object{Kind: store.Config}
	rollout = store.Object{Kind: store.Rollout}
)

func calendar(name string) store.Object { return store.Object{Kind: store.Calendar, Name: name} }
func environment(name string) store.Object {
	return store.Object{Kind: store.Environment, Name: name}
}
func budget(name string) store.Object  { return store.Object{Kind: store.Budget, Name: name} }
func release(name string) store.Object { return store.Object{Kind: store.Release, Name: name} }
func webhook(name string) store.Object { return store.Object{Kind: store.Webhook, Name: name} }
func skips(environment string) store.Object {
	return store.Object{Kind: store.Skip, Name: environment}
}

func fetched(name string) store.Object { return store.Object{Kind: store.Copy, Name: name} }

// Config is that of store.Store.
func (s *Store) Config(_ context.Context, tenant string) (v1.Kept[v1.OSUpgrade], store.Revision, error) {
	return get[v1.Kept[v1.OSUpgrade]](s, tenant, config)
}

// PutConfig is that of store.Store.
func (s *Store) PutConfig(_ context.Context, tenant string, c v1.Kept[v1.OSUpgrade], base store.Revision) (store.Revision, error) {
	return s.put(tenant, config, c, base, 0)
}

// DeleteConfig is that of store.Store.
func (s *Store) DeleteConfig(_ context.Context, tenant string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, config, base)
}

// Rollout is that of store.Store.
func (s *Store) Rollout(_ context.Context, tenant string) (v1.Kept[v1.Rollout], store.Revision, error) {
	return get[v1.Kept[v1.Rollout]](s, tenant, rollout)
}

// PutRollout is that of store.Store.
func (s *Store) PutRollout(_ context.Context, tenant string, r v1.Kept[v1.Rollout], base store.Revision) (store.Revision, error) {
	return s.put(tenant, rollout, r, base, 0)
}

// DeleteRollout is that of store.Store.
func (s *Store) DeleteRollout(_ context.Context, tenant string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, rollout, base)
}

// Calendar is that of store.Store.
func (s *Store) Calendar(_ context.Context, tenant, name string) (v1.Kept[v1.Calendar], store.Revision, error) {
	return get[v1.Kept[v1.Calendar]](s, tenant, calendar(name))
}

// Calendars is that of store.Store.
func (s *Store) Calendars(_ context.Context, tenant string) ([]store.Named[v1.Calendar], error) {
	return all[v1.Calendar](s, tenant, store.Calendar)
}

// RoomForCalendar is that of store.Store.
func (s *Store) RoomForCalendar(_ context.Context, tenant string) error {
	return s.room(tenant, store.Calendar, v1.MaxCalendars)
}

// PutCalendar is that of store.Store.
func (s *Store) PutCalendar(_ context.Context, tenant, name string, c v1.Kept[v1.Calendar], base store.Revision) (store.Revision, error) {
	return s.put(tenant, calendar(name), c, base, v1.MaxCalendars)
}

// DeleteCalendar is that of store.Store.
func (s *Store) DeleteCalendar(_ context.Context, tenant, name string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, calendar(name), base)
}

// Environment is that of store.Store.
func (s *Store) Environment(_ context.Context, tenant, name string) (v1.Kept[v1.Environment], store.Revision, error) {
	return get[v1.Kept[v1.Environment]](s, tenant, environment(name))
}

// Environments is that of store.Store.
func (s *Store) Environments(_ context.Context, tenant string) ([]store.Named[v1.Environment], error) {
	return all[v1.Environment](s, tenant, store.Environment)
}

// RoomForEnvironment is that of store.Store.
func (s *Store) RoomForEnvironment(_ context.Context, tenant string) error {
	return s.room(tenant, store.Environment, v1.MaxEnvironments)
}

// PutEnvironment is that of store.Store.
func (s *Store) PutEnvironment(_ context.Context, tenant, name string, e v1.Kept[v1.Environment], base store.Revision) (store.Revision, error) {
	return s.put(tenant, environment(name), e, base, v1.MaxEnvironments)
}

// DeleteEnvironment is that of store.Store.
func (s *Store) DeleteEnvironment(_ context.Context, tenant, name string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, environment(name), base)
}

// Budget is that of store.Store.
func (s *Store) Budget(_ context.Context, tenant, name string) (v1.Kept[v1.Budget], store.Revision, error) {
	return get[v1.Kept[v1.Budget]](s, tenant, budget(name))
}

// Budgets is that of store.Store.
func (s *Store) Budgets(_ context.Context, tenant string) ([]store.Named[v1.Budget], error) {
	return all[v1.Budget](s, tenant, store.Budget)
}

// RoomForBudget is that of store.Store.
func (s *Store) RoomForBudget(_ context.Context, tenant string) error {
	return s.room(tenant, store.Budget, v1.MaxBudgets)
}

// PutBudget is that of store.Store.
func (s *Store) PutBudget(_ context.Context, tenant, name string, b v1.Kept[v1.Budget], base store.Revision) (store.Revision, error) {
	return s.put(tenant, budget(name), b, base, v1.MaxBudgets)
}

// DeleteBudget is that of store.Store.
func (s *Store) DeleteBudget(_ context.Context, tenant, name string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, budget(name), base)
}

// Release is that of store.Store.
func (s *Store) Release(_ context.Context, tenant, name string) (v1.Kept[v1.Release], store.Revision, error) {
	return get[v1.Kept[v1.Release]](s, tenant, release(name))
}

// Releases is that of store.Store.
func (s *Store) Releases(_ context.Context, tenant string) ([]store.Named[v1.Release], error) {
	return all[v1.Release](s, tenant, store.Release)
}

// RoomForRelease is that of store.Store.
func (s *Store) RoomForRelease(_ context.Context, tenant string) error {
	return s.room(tenant, store.Release, v1.MaxReleases)
}

// PutRelease is that of store.Store.
func (s *Store) PutRelease(_ context.Context, tenant, name string, b v1.Kept[v1.Release], base store.Revision) (store.Revision, error) {
	return s.put(tenant, release(name), b, base, v1.MaxReleases)
}

// DeleteRelease is that of store.Store.
func (s *Store) DeleteRelease(_ context.Context, tenant, name string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, release(name), base)
}

// Skips is that of store.Store.
func (s *Store) Skips(_ context.Context, tenant, environment string) (v1.Skips, store.Revision, error) {
	return get[v1.Skips](s, tenant, skips(environment))
}

// PutSkips is that of store.Store.
func (s *Store) PutSkips(_ context.Context, tenant, environment string, all v1.Skips, base store.Revision) (store.Revision, error) {
	return s.put(tenant, skips(environment), all, base, 0)
}

// DeleteSkips is that of store.Store.
func (s *Store) DeleteSkips(_ context.Context, tenant, environment string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, skips(environment), base)
}

// CalendarCopy is that of store.Store.
func (s *Store) CalendarCopy(_ context.Context, tenant, name string) (v1.CalendarCopy, store.Revision, error) {
	return get[v1.CalendarCopy](s, tenant, fetched(name))
}

// CalendarCopies is that of store.Store.
func (s *Store) CalendarCopies(_ context.Context, tenant string) ([]store.Named[v1.CalendarCopy], error) {
	return all[v1.CalendarCopy](s, tenant, store.Copy)
}

// PutCalendarCopy is that of store.Store.
func (s *Store) PutCalendarCopy(_ context.Context, tenant, name string, c v1.CalendarCopy, base store.Revision) (store.Revision, error) {
	return s.put(tenant, fetched(name), c, base, 0)
}

// DeleteCalendarCopy is that of store.Store.
func (s *Store) DeleteCalendarCopy(_ context.Context, tenant, name string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, fetched(name), base)
}

// Webhook is that of store.Store.
func (s *Store) Webhook(_ context.Context, tenant, name string) (store.KeptWebhook, store.Revision, error) {
	return get[store.KeptWebhook](s, tenant, webhook(name))
}

// Webhooks is that of store.Store.
func (s *Store) Webhooks(_ context.Context, tenant string) ([]store.Named[store.KeptWebhook], error) {
	return all[store.KeptWebhook](s, tenant, store.Webhook)
}

// RoomForWebhook is that of store.Store.
func (s *Store) RoomForWebhook(_ context.Context, tenant string) error {
	return s.room(tenant, store.Webhook, v1.MaxWebhooks)
}

// PutWebhook is that of store.Store.
func (s *Store) PutWebhook(_ context.Context, tenant, name string, w store.KeptWebhook, base store.Revision) (store.Revision, error) {
	w.Secret = ""
	return s.put(tenant, webhook(name), w, base, v1.MaxWebhooks)
}

// DeleteWebhook is that of store.Store.
func (s *Store) DeleteWebhook(_ context.Context, tenant, name string, base store.Revision) (store.Revision, error) {
	return s.remove(tenant, webhook(name), base)
}

// WatchIntent is that of store.Store.
func (s *Store) WatchIntent(ctx context.Context, tenant string, see func(store.Seen)) error {
	return s.watch(ctx, &s.intent, tenant+".", func(e entry) { see(seen(e)) }, func() { see(store.Seen{}) })
}

func seen(e entry) store.Seen {
	found := store.Seen{Object: objectOf(e.key), Number: e.number, Bucket: theBucket, At: e.at}
	if e.body == nil {
		return found
	}
	switch found.Kind {
	case store.Config:
		found.Config, found.Err = seenAs[v1.OSUpgrade](e)
	case store.Rollout:
		found.Rollout, found.Err = seenAs[v1.Rollout](e)
	case store.Calendar:
		found.Calendar, found.Err = seenAs[v1.Calendar](e)
	case store.Environment:
		found.Environment, found.Err = seenAs[v1.Environment](e)
	case store.Budget:
		found.Budget, found.Err = seenAs[v1.Budget](e)
	case store.Release:
		found.Release, found.Err = seenAs[v1.Release](e)
	case store.Webhook:
		found.Webhook, found.Err = seenAs[store.KeptWebhook](e)
	case store.Copy:
		found.Copy, found.Err = seenAs[v1.CalendarCopy](e)
	case store.Skip:
		found.Skips, found.Err = seenAs[v1.Skips](e)
	}
	return found
}

func seenAs[T any](e entry) (*T, error) {
	value, err := decode[T](e)
	if err != nil {
		return nil, err
	}
	return &value, nil
}

// WebhookState is that of store.Store.
func (s *Store) WebhookState(_ context.Context, tenant, name string) (state store.WebhookState, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body := s.webhooks.entries[tenant+"."+name].body
	if body == nil {
		return state, fmt.Errorf("cannot read the state of webhook %s: %w", name, store.ErrNotFound)
	}
	return state, format.Webhook.Decode(body, &state)
}

// PutWebhookState is that of store.Store.
func (s *Store) PutWebhookState(_ context.Context, tenant, name string, state store.WebhookState) error {
	body, err := format.Webhook.Encode(state)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(&s.webhooks, tenant+"."+name, body)
	return nil
}

// DeleteWebhookState is that of store.Store.
func (s *Store) DeleteWebhookState(_ context.Context, tenant, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(&s.webhooks, tenant+"."+name, nil)
	return nil
}

// PutHost is that of store.Store.
func (s *Store) PutHost(_ context.Context, key string, h store.Host) error {
	body, err := format.Host.Encode(h)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(&s.hosts, h.Tenant+"."+key, body)
	return nil
}

// DeleteHost is that of store.Store.
func (s *Store) DeleteHost(_ context.Context, tenant, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, kind := range report.OfHosts() {
		s.write(s.reports[kind], tenant+"."+key, nil)
	}
	for _, b := range []*bucket{&s.leases, &s.hosts} {
		s.write(b, tenant+"."+key, nil)
	}
	return nil
}

// PutLastRuns is that of store.Store.
func (s *Store) PutLastRuns(_ context.Context, tenant string, runs []store.LastRun) error {
	body, err := json.Marshal(runs)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.write(&s.hosts, lastRunsOf(tenant), body)
	return nil
}

// lastRunsOf is the key of the last runs of a tenant's hosts.
func lastRunsOf(tenant string) string { return tenant + "._.last-runs" }

// Hosts is that of store.Store.
func (s *Store) Hosts(_ context.Context, tenant string) ([]store.Host, error) {
	var (
		hosts  []store.HostEntry
		runs   []store.LastRun
		number uint64
		failed error
	)
	for _, e := range s.list(&s.hosts, tenant+".") {
		if e.key == lastRunsOf(tenant) {
			failed, number = errors.Join(failed, json.Unmarshal(e.body, &runs)), e.number
			continue
		}
		h := store.HostEntry{Number: e.number}
		failed = errors.Join(failed, format.Host.Decode(e.body, &h.Host))
		hosts = append(hosts, h)
	}
	return store.WithLastRuns(hosts, runs, number), failed
}

// PutLease is that of store.Store.
func (s *Store) PutLease(_ context.Context, tenant, key string, body []byte, base uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases.entries[tenant+"."+key].number != base {
		return 0, fmt.Errorf("cannot write the lease of host %s of tenant %s: %w", key, tenant, store.ErrConflict)
	}
	return s.write(&s.leases, tenant+"."+key, slices.Clone(body)), nil
}

// Lease is that of store.Store.
func (s *Store) Lease(_ context.Context, tenant, key string) (body []byte, number uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.leases.entries[tenant+"."+key]
	return slices.Clone(e.body), e.number, nil
}

// WatchLeases is that of store.Store.
func (s *Store) WatchLeases(ctx context.Context, tenant string, see func(key string, body []byte, revision uint64)) error {
	return s.watch(ctx, &s.leases, tenant+".", func(e entry) { see(e.key[len(tenant)+1:], slices.Clone(e.body), e.number) }, func() { see("", nil, 0) })
}

// keptRun is a run as it was kept once, as of a record of the log.
type keptRun struct {
	id, asOf uint64
	body     []byte
}

func (k keptRun) run() (v1.Run, error) { return store.UnmarshalRun(k.body) }

// PutRun is that of store.Store.
func (s *Store) PutRun(_ context.Context, tenant string, r v1.Run, asOf uint64) error {
	body, err := store.MarshalRun(r)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if kept, found := s.keptRun(tenant, r.ID); !found || kept.asOf < asOf {
		s.runs[tenant] = append(s.runs[tenant], keptRun{r.ID, asOf, body})
	}
	return nil
}

// keptRun returns a run as it was kept last. The lock is held.
func (s *Store) keptRun(tenant string, id uint64) (kept keptRun, found bool) {
	for _, k := range slices.Backward(s.runs[tenant]) {
		if k.id == id {
			return k, true
		}
	}
	return keptRun{}, false
}

// LoseRun makes the store forget a run, as a store does that an older backup replaces.
func (s *Store) LoseRun(tenant string, id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[tenant] = slices.DeleteFunc(s.runs[tenant], func(k keptRun) bool { return k.id == id })
}

// Run is that of store.Store.
func (s *Store) Run(_ context.Context, tenant string, id uint64) (v1.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, found := s.keptRun(tenant, id)
	if !found {
		return v1.Run{}, fmt.Errorf("cannot read run %d of tenant %s: %w", id, tenant, store.ErrNotFound)
	}
	return kept.run()
}

// Runs is that of store.Store.
func (s *Store) Runs(_ context.Context, tenant string, deliver func(v1.Run) (more bool)) error {
	s.mu.Lock()
	kept := slices.Clone(s.runs[tenant])
	s.mu.Unlock()
	for _, k := range slices.Backward(kept) {
		r, err := k.run()
		if err != nil {
			return err
		}
		if r.Hosts, r.Events = nil, nil; !deliver(r) {
			return nil
		}
	}
	return nil
}

// keptNews are the news of a tenant, oldest first.
type keptNews struct {
	last uint64
	told []store.KeptNews
}

// PutNews is that of store.Store.
func (s *Store) PutNews(_ context.Context, tenant string, n v1.News, asOf uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news[tenant] == nil {
		s.news[tenant] = &keptNews{}
	}
	kept := s.news[tenant]
	for _, earlier := range kept.told {
		if earlier.ID == n.ID {
			return earlier.Number, nil
		}
	}
	kept.last++
	n.Number = kept.last
	kept.told = append(kept.told, store.KeptNews{News: n, AsOf: asOf})
	kept.told = kept.told[max(0, len(kept.told)-v1.MaxNews):]
	return n.Number, nil
}

// News is that of store.Store.
func (s *Store) News(_ context.Context, tenant string) ([]store.KeptNews, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news[tenant] == nil {
		return nil, nil
	}
	return slices.Clone(s.news[tenant].told), nil
}
