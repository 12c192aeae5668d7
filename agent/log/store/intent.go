package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/durability"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Intent is what people declare for a tenant: its configuration, its rollout, its
// calendars, its environments, its releases and its webhooks. It is one bucket, so that one watch sees
// every change, in the order in which they were made, and one number says how far it has seen.

// Kind is a kind of object of a tenant's intent.
type Kind string

// The kinds of objects. A tenant has one configuration and one rollout, and any
// number of calendars, environments, disruption budgets, releases and webhooks, each with a name.
const (
	Config      Kind = "config"
	Rollout     Kind = "rollout"
	Calendar    Kind = "calendar"
	Environment Kind = "environment"
	Budget      Kind = "budget"
	Release     Kind = "release"
	Webhook     Kind = "webhook"
	// Copy is what the site fetched of a calendar with a URL. Nobody declares it, but it counts
	// like what is declared.
	Copy Kind = "copy"
	// Skip are the windows that people have skipped of an environment.
	Skip Kind = "skip"
)

// nouns are what people call the kinds.
var nouns = map[Kind]string{
	Config: "os-upgrade configuration", Rollout: "rollout", Calendar: "calendar", Environment: "environment", Budget: "disruption budget", Release: "release", Webhook: "webhook", Copy: "copy of calendar", Skip: "skipped windows of environment",
}

// Object names an object of a tenant's intent.
type Object struct {
	Kind Kind
	// Name is that of a calendar, environment, disruption budget, release or webhook, and empty
	// otherwise.
	Name string
}

// Seen is an object as a watch sees it.
type Seen struct {
	// Object is zero once, with nothing else: after those that were there when the
	// watch began.
	Object
	// Config, Rollout, Calendar, Environment, Budget, Release, Webhook or Copy is the value; nil when
	// there is none.
	Config      *v1.OSUpgrade
	Rollout     *v1.Rollout
	Calendar    *v1.Calendar
	Environment *v1.Environment
	Budget      *v1.Budget
	Release     *v1.Release
	Webhook     *KeptWebhook
	Copy        *v1.CalendarCopy
	Skips       *v1.Skips
	// Number is the revision's; of the deletion when there is no value.
	Number uint64
	// Bucket is the revision's.
	Bucket int64
	// At is when it was written.
	At time.Time
	// Err is why the object that is there cannot be read.
	Err error
}

// everySite is the token of a key that stands for all sites: an object of one
// site alone would have the name of the site there.
const everySite = "_"

// intentKey is an object and its tenant. No part of it has a dot in it.
type intentKey struct {
	tenant string
	Object
}

// entry is the key in the bucket.
func (k intentKey) entry() string {
	tokens := []string{k.tenant, everySite, string(k.Kind)}
	if k.Name != "" {
		tokens = append(tokens, k.Name)
	}
	return strings.Join(tokens, ".")
}

// intentKeyOf reads the key of an entry.
func intentKeyOf(entry string) intentKey {
	tokens := append(strings.SplitN(entry, ".", 4), "", "", "")
	return intentKey{tenant: tokens[0], Object: Object{Kind: Kind(tokens[2]), Name: tokens[3]}}
}

// String names the object for people.
func (k intentKey) String() string {
	name := nouns[k.Kind]
	if k.Name != "" {
		name += " " + k.Name
	}
	return name + " of tenant " + k.tenant
}

// intent is the bucket.
type intent struct {
	store *Store
	js    jetstream.JetStream
	kv    *divided
	// stream is that of the bucket, identity the bucket's.
	stream   jetstream.Stream
	identity int64
	// counting makes counting the objects of a kind and adding one one atomic action.
	counting sync.Mutex
	// environments bounds the environments of each tenant, those that were deleted included, since they
	// were counted last.
	environments bounds
	// recent are the objects that were read last.
	recent recent
}

// maxIntent bounds the bucket, in bytes.
const maxIntent = 3 * maxBucket

func openIntent(ctx context.Context, js jetstream.JetStream) (*intent, error) {
	kv, identity, err := identifiedBucket(ctx, js, IntentBucket, "configurations, rollouts and calendars by tenant and site", maxIntent)
	if err != nil {
		return nil, err
	}
	number, err := durability.Number(identity)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, durability.BucketStream(IntentBucket))
	if err != nil {
		return nil, fmt.Errorf("cannot open bucket %s: %w", IntentBucket, err)
	}
	return &intent{js: js, kv: divide(js, kv), stream: stream, identity: number}, nil
}

func (i *intent) revision(number uint64) Revision {
	return Revision{Bucket: i.identity, Number: number}
}

// decodeIntent reads the value of an entry.
func decodeIntent[T any](entry jetstream.KeyValueEntry) (T, error) {
	var value, none T
	switch err := format.Config.Decode(entry.Value(), &value); {
	case format.IsUnsupported(err):
		return none, fmt.Errorf("the stored %s was %w", intentKeyOf(entry.Key()), err)
	case err != nil:
		return none, fmt.Errorf("the stored %s %w: %w", intentKeyOf(entry.Key()), ErrDamaged, err)
	}
	return value, nil
}

// getIntent returns an object and its revision, or ErrNotFound.
func getIntent[T any](ctx context.Context, i *intent, k intentKey) (T, Revision, error) {
	if kept, number, found := i.recent.get(k); found {
		return kept.(T), i.revision(number), nil //nolint:forcetypeassert // An object of a kind has one type.
	}
	begun := i.recent.reading()
	entry, err := i.kv.Get(ctx, k.entry())
	if err != nil {
		var none T
		return none, Revision{}, fmt.Errorf("cannot read the %s: %w", k, translate(err))
	}
	value, err := decodeIntent[T](entry)
	if err == nil {
		i.recent.keep(k, recentObject{value: value, number: entry.Revision(), size: len(entry.Value())}, begun)
	}
	return value, i.revision(entry.Revision()), err
}

// put writes an object if the stored object still has the revision base; the zero
// Revision means that there must be none. Otherwise the error is ErrConflict.
func (i *intent) put(ctx context.Context, k intentKey, value any, base Revision) (Revision, error) {
	body, err := format.Config.Encode(value)
	if err != nil {
		return Revision{}, err
	}
	defer i.recent.drop(k, 0)
	var number uint64
	switch {
	case base == (Revision{}):
		number, err = i.kv.Create(ctx, k.entry(), body)
	case base.Bucket != i.identity:
		err = ErrConflict
	default:
		number, err = i.kv.Update(ctx, k.entry(), body, base.Number)
	}
	if err != nil {
		return Revision{}, fmt.Errorf("cannot write the %s: %w", k, translate(err))
	}
	return i.written(k, number)
}

// written returns the revision of a write once that will be missed if it is lost. The
// block of a stream that lost its last record looks as if nothing had been written.
func (i *intent) written(k intentKey, number uint64) (Revision, error) {
	if i.store.Written != nil {
		if err := i.store.Written(durability.BucketStream(IntentBucket), number); err != nil {
			return Revision{}, fmt.Errorf("the %s was written, and may be lost if the agent ends now: %w", k, err)
		}
	}
	return i.revision(number), nil
}

// remove deletes an object if it still has the revision base; otherwise the error
// is ErrConflict. It returns the revision of the deletion. KeyValue.Delete does
// not, so remove sends the same message itself (NATS ADR-8).
func (i *intent) remove(ctx context.Context, k intentKey, base Revision) (Revision, error) {
	if base.Bucket != i.identity {
		return Revision{}, fmt.Errorf("cannot delete the %s: %w", k, ErrConflict)
	}
	defer i.recent.drop(k, 0)
	deletion := nats.NewMsg("$KV." + i.kv.Bucket() + "." + k.entry())
	deletion.Header.Set("KV-Operation", "DEL")
	ack, err := i.js.PublishMsg(ctx, deletion, jetstream.WithExpectLastSequencePerSubject(base.Number))
	if err != nil {
		return Revision{}, fmt.Errorf("cannot delete the %s: %w", k, translate(err))
	}
	return i.written(k, ack.Sequence)
}

// WatchIntent calls see with each object of a tenant's intent, deleted ones
// included, then with the zero Seen, and then with each that changes. It returns
// when ctx ends or the store is gone.
func (s *Store) WatchIntent(ctx context.Context, tenant string, see func(Seen)) error {
	unwatched := func() {}
	err := s.intent.kv.watch(ctx, tenant, func(entry jetstream.KeyValueEntry) {
		if entry == nil {
			s.intent.recent.watched(tenant)
			unwatched = func() { s.intent.recent.unwatched(tenant) }
			see(Seen{})
		} else {
			s.intent.recent.drop(intentKeyOf(entry.Key()), entry.Revision())
			see(s.intent.seen(entry))
		}
	})
	unwatched()
	return fmt.Errorf("cannot watch the configuration, rollout and calendars of tenant %s: %w", tenant, err)
}

func (i *intent) seen(entry jetstream.KeyValueEntry) Seen {
	s := Seen{Object: intentKeyOf(entry.Key()).Object, Number: entry.Revision(), Bucket: i.identity, At: entry.Created()}
	if entry.Operation() != jetstream.KeyValuePut {
		return s
	}
	switch s.Kind {
	case Config:
		s.Config, s.Err = seenValue[v1.OSUpgrade](entry)
	case Rollout:
		s.Rollout, s.Err = seenValue[v1.Rollout](entry)
	case Calendar:
		s.Calendar, s.Err = seenValue[v1.Calendar](entry)
	case Environment:
		s.Environment, s.Err = seenValue[v1.Environment](entry)
	case Budget:
		s.Budget, s.Err = seenValue[v1.Budget](entry)
	case Release:
		s.Release, s.Err = seenValue[v1.Release](entry)
	case Webhook:
		s.Webhook, s.Err = seenValue[KeptWebhook](entry)
	case Copy:
		s.Copy, s.Err = seenValue[v1.CalendarCopy](entry)
	case Skip:
		s.Skips, s.Err = seenValue[v1.Skips](entry)
	}
	return s
}

func seenValue[T any](entry jetstream.KeyValueEntry) (*T, error) {
	value, err := decodeIntent[T](entry)
	if err != nil {
		return nil, err
	}
	return &value, nil
}

func configOf(tenant string) intentKey { return intentKey{tenant, Object{Kind: Config}} }

// Config returns a tenant's configuration and its revision, or ErrNotFound.
func (s *Store) Config(ctx context.Context, tenant string) (v1.Kept[v1.OSUpgrade], Revision, error) {
	return getIntent[v1.Kept[v1.OSUpgrade]](ctx, s.intent, configOf(tenant))
}

// PutConfig writes a tenant's configuration if the one there still has the
// revision base; the zero Revision means that there must be none. Otherwise it
// is ErrConflict.
func (s *Store) PutConfig(ctx context.Context, tenant string, config v1.Kept[v1.OSUpgrade], base Revision) (Revision, error) {
	return s.intent.put(ctx, configOf(tenant), config, base)
}

// DeleteConfig removes a tenant's configuration if it still has the revision
// base, or fails with ErrConflict. It returns the revision of the deletion.
func (s *Store) DeleteConfig(ctx context.Context, tenant string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, configOf(tenant), base)
}

func rolloutOf(tenant string) intentKey { return intentKey{tenant, Object{Kind: Rollout}} }

// Rollout returns the policy of a tenant's runs and its revision, or
// ErrNotFound.
func (s *Store) Rollout(ctx context.Context, tenant string) (v1.Kept[v1.Rollout], Revision, error) {
	return getIntent[v1.Kept[v1.Rollout]](ctx, s.intent, rolloutOf(tenant))
}

// PutRollout writes a rollout as PutConfig writes a configuration.
func (s *Store) PutRollout(ctx context.Context, tenant string, rollout v1.Kept[v1.Rollout], base Revision) (Revision, error) {
	return s.intent.put(ctx, rolloutOf(tenant), rollout, base)
}

// DeleteRollout removes a rollout as DeleteConfig removes a configuration.
func (s *Store) DeleteRollout(ctx context.Context, tenant string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, rolloutOf(tenant), base)
}

func calendarOf(tenant, name string) intentKey {
	return intentKey{tenant, Object{Kind: Calendar, Name: name}}
}

// Calendar returns a tenant's calendar of a name and its revision, or
// ErrNotFound.
func (s *Store) Calendar(ctx context.Context, tenant, name string) (v1.Kept[v1.Calendar], Revision, error) {
	return getIntent[v1.Kept[v1.Calendar]](ctx, s.intent, calendarOf(tenant, name))
}

// PutCalendar writes a calendar as PutConfig writes a configuration. The error is
// ErrFull when the tenant has v1.MaxCalendars others.
func (s *Store) PutCalendar(ctx context.Context, tenant, name string, calendar v1.Kept[v1.Calendar], base Revision) (Revision, error) {
	if base == (Revision{}) {
		s.intent.counting.Lock()
		defer s.intent.counting.Unlock()
		if err := s.RoomForCalendar(ctx, tenant); err != nil {
			return Revision{}, err
		}
	}
	return s.intent.put(ctx, calendarOf(tenant, name), calendar, base)
}

// RoomForCalendar returns ErrFull when a tenant can have no further calendar.
func (s *Store) RoomForCalendar(ctx context.Context, tenant string) error {
	all, err := s.Calendars(ctx, tenant)
	if err == nil && len(all) >= v1.MaxCalendars {
		err = fmt.Errorf("tenant %s has %d calendars: %w; delete one first", tenant, len(all), ErrFull)
	}
	return err
}

// DeleteCalendar removes a calendar as DeleteConfig removes a configuration.
func (s *Store) DeleteCalendar(ctx context.Context, tenant, name string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, calendarOf(tenant, name), base)
}

func environmentOf(tenant, name string) intentKey {
	return intentKey{tenant, Object{Kind: Environment, Name: name}}
}

// Environment returns a tenant's environment of a name and its revision, or ErrNotFound.
func (s *Store) Environment(ctx context.Context, tenant, name string) (v1.Kept[v1.Environment], Revision, error) {
	return getIntent[v1.Kept[v1.Environment]](ctx, s.intent, environmentOf(tenant, name))
}

// Environments returns a tenant's environments, by name.
func (s *Store) Environments(ctx context.Context, tenant string) ([]Named[v1.Environment], error) {
	return named[v1.Environment](ctx, s.intent, environmentOf(tenant, "*"), "environments")
}

// PutEnvironment writes an environment as PutConfig writes a configuration. The error is ErrFull
// when the tenant has v1.MaxEnvironments others.
func (s *Store) PutEnvironment(ctx context.Context, tenant, name string, e v1.Kept[v1.Environment], base Revision) (Revision, error) {
	if base == (Revision{}) {
		s.intent.counting.Lock()
		defer s.intent.counting.Unlock()
		if err := s.countEnvironments(ctx, tenant); err != nil {
			return Revision{}, err
		}
		s.intent.environments.add(tenant) // Also if the write fails: it may have been made all the same.
	}
	return s.intent.put(ctx, environmentOf(tenant, name), e, base)
}

// RoomForEnvironment returns ErrFull when a tenant can have no further environment.
func (s *Store) RoomForEnvironment(ctx context.Context, tenant string) error {
	s.intent.counting.Lock()
	defer s.intent.counting.Unlock()
	return s.countEnvironments(ctx, tenant)
}

// countEnvironments is RoomForEnvironment with counting locked. It counts only if there may be too many,
// and reads no entries while those that exist and those that were deleted are few: a tenant that declares
// a thousand one by one would read half a million of them.
func (s *Store) countEnvironments(ctx context.Context, tenant string) error {
	if n, counted := s.intent.environments.of(tenant); counted && n < v1.MaxEnvironments {
		return nil
	}
	info, err := s.intent.stream.Info(ctx, jetstream.WithSubjectFilter("$KV."+IntentBucket+"."+environmentOf(tenant, "*").entry()))
	if err == nil && len(info.State.Subjects) < v1.MaxEnvironments {
		s.intent.environments.counted(tenant, len(info.State.Subjects))
		return nil
	}
	n := 0
	err = watch(ctx, s.intent.kv, environmentOf(tenant, "*").entry(), func(entry jetstream.KeyValueEntry) bool {
		n++
		return entry != nil // After the last that there is.
	}, jetstream.IgnoreDeletes(), jetstream.MetaOnly())
	switch {
	case err != nil:
		return fmt.Errorf("cannot count the environments of tenant %s: %w", tenant, err)
	case n > v1.MaxEnvironments:
		return fmt.Errorf("tenant %s has %d environments: %w; delete one first", tenant, n-1, ErrFull)
	}
	return nil
}

// DeleteEnvironment removes an environment as DeleteConfig removes a configuration.
func (s *Store) DeleteEnvironment(ctx context.Context, tenant, name string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, environmentOf(tenant, name), base)
}

func budgetOf(tenant, name string) intentKey {
	return intentKey{tenant, Object{Kind: Budget, Name: name}}
}

// Budget returns a tenant's disruption budget of a name and its revision, or ErrNotFound.
func (s *Store) Budget(ctx context.Context, tenant, name string) (v1.Kept[v1.Budget], Revision, error) {
	return getIntent[v1.Kept[v1.Budget]](ctx, s.intent, budgetOf(tenant, name))
}

// Budgets returns a tenant's disruption budgets, by name.
func (s *Store) Budgets(ctx context.Context, tenant string) ([]Named[v1.Budget], error) {
	return named[v1.Budget](ctx, s.intent, budgetOf(tenant, "*"), "disruption budgets")
}

// PutBudget writes a disruption budget as PutConfig writes a configuration. The error is ErrFull
// when the tenant has v1.MaxBudgets others.
func (s *Store) PutBudget(ctx context.Context, tenant, name string, budget v1.Kept[v1.Budget], base Revision) (Revision, error) {
	if base == (Revision{}) {
		s.intent.counting.Lock()
		defer s.intent.counting.Unlock()
		if err := s.RoomForBudget(ctx, tenant); err != nil {
			return Revision{}, err
		}
	}
	return s.intent.put(ctx, budgetOf(tenant, name), budget, base)
}

// RoomForBudget returns ErrFull when a tenant can have no further disruption budget.
func (s *Store) RoomForBudget(ctx context.Context, tenant string) error {
	all, err := s.Budgets(ctx, tenant)
	if err == nil && len(all) >= v1.MaxBudgets {
		err = fmt.Errorf("tenant %s has %d disruption budgets: %w; delete one first", tenant, len(all), ErrFull)
	}
	return err
}

// DeleteBudget removes a disruption budget as DeleteConfig removes a configuration.
func (s *Store) DeleteBudget(ctx context.Context, tenant, name string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, budgetOf(tenant, name), base)
}

func releaseOf(tenant, name string) intentKey {
	return intentKey{tenant, Object{Kind: Release, Name: name}}
}

// Release returns a tenant's release of a name and its revision, or ErrNotFound.
func (s *Store) Release(ctx context.Context, tenant, name string) (v1.Kept[v1.Release], Revision, error) {
	return getIntent[v1.Kept[v1.Release]](ctx, s.intent, releaseOf(tenant, name))
}

// Releases returns a tenant's releases, by name.
func (s *Store) Releases(ctx context.Context, tenant string) ([]Named[v1.Release], error) {
	return named[v1.Release](ctx, s.intent, releaseOf(tenant, "*"), "releases")
}

// PutRelease writes a release as PutConfig writes a configuration. The error is ErrFull
// when the tenant has v1.MaxReleases others.
func (s *Store) PutRelease(ctx context.Context, tenant, name string, release v1.Kept[v1.Release], base Revision) (Revision, error) {
	if base == (Revision{}) {
		s.intent.counting.Lock()
		defer s.intent.counting.Unlock()
		if err := s.RoomForRelease(ctx, tenant); err != nil {
			return Revision{}, err
		}
	}
	return s.intent.put(ctx, releaseOf(tenant, name), release, base)
}

// RoomForRelease returns ErrFull when a tenant can have no further release.
func (s *Store) RoomForRelease(ctx context.Context, tenant string) error {
	all, err := s.Releases(ctx, tenant)
	if err == nil && len(all) >= v1.MaxReleases {
		err = fmt.Errorf("tenant %s has %d releases: %w; delete one first", tenant, len(all), ErrFull)
	}
	return err
}

// DeleteRelease removes a release as DeleteConfig removes a configuration.
func (s *Store) DeleteRelease(ctx context.Context, tenant, name string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, releaseOf(tenant, name), base)
}

func skipsOf(tenant, environment string) intentKey {
	return intentKey{tenant, Object{Kind: Skip, Name: environment}}
}

// Skips returns the windows that people have skipped of an environment, and their revision, or
// ErrNotFound.
func (s *Store) Skips(ctx context.Context, tenant, environment string) (v1.Skips, Revision, error) {
	return getIntent[v1.Skips](ctx, s.intent, skipsOf(tenant, environment))
}

// PutSkips writes the skipped windows of an environment as PutConfig writes a configuration.
func (s *Store) PutSkips(ctx context.Context, tenant, environment string, skips v1.Skips, base Revision) (Revision, error) {
	return s.intent.put(ctx, skipsOf(tenant, environment), skips, base)
}

// DeleteSkips removes the skipped windows of an environment as DeleteConfig removes a configuration.
func (s *Store) DeleteSkips(ctx context.Context, tenant, environment string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, skipsOf(tenant, environment), base)
}

func copyOf(tenant, name string) intentKey { return intentKey{tenant, Object{Kind: Copy, Name: name}} }

// PutCalendarCopy writes what was fetched of a calendar as PutConfig writes a configuration.
func (s *Store) PutCalendarCopy(ctx context.Context, tenant, name string, fetched v1.CalendarCopy, base Revision) (Revision, error) {
	return s.intent.put(ctx, copyOf(tenant, name), fetched, base)
}

// DeleteCalendarCopy removes it as DeleteConfig removes a configuration.
func (s *Store) DeleteCalendarCopy(ctx context.Context, tenant, name string, base Revision) (Revision, error) {
	return s.intent.remove(ctx, copyOf(tenant, name), base)
}

// CalendarCopy returns what was fetched of a calendar and its revision, or ErrNotFound.
func (s *Store) CalendarCopy(ctx context.Context, tenant, name string) (v1.CalendarCopy, Revision, error) {
	return getIntent[v1.CalendarCopy](ctx, s.intent, copyOf(tenant, name))
}

// CalendarCopies returns what was fetched of a tenant's calendars, by name.
func (s *Store) CalendarCopies(ctx context.Context, tenant string) ([]Named[v1.CalendarCopy], error) {
	return named[v1.CalendarCopy](ctx, s.intent, copyOf(tenant, "*"), "copies of the calendars")
}

// Named is an object of which a tenant has several.
type Named[T any] struct {
	Name     string
	Value    T
	Revision Revision
}

// Calendars returns a tenant's calendars, by name.
func (s *Store) Calendars(ctx context.Context, tenant string) ([]Named[v1.Calendar], error) {
	return named[v1.Calendar](ctx, s.intent, calendarOf(tenant, "*"), "calendars")
}

// named returns the objects of a kind, by name; keys matches theirs, noun is what people
// call them.
func named[T any](ctx context.Context, i *intent, keys intentKey, noun string) (all []Named[T], err error) {
	var unreadable error
	err = watch(ctx, i.kv, keys.entry(), func(entry jetstream.KeyValueEntry) bool {
		if entry == nil { // The end of the initial values.
			return false
		}
		value, err := decodeIntent[T](entry)
		unreadable = err
		all = append(all, Named[T]{intentKeyOf(entry.Key()).Name, value, i.revision(entry.Revision())})
		return err == nil
	}, jetstream.IgnoreDeletes())
	if err != nil {
		err = fmt.Errorf("cannot read the %s of tenant %s: %w", noun, keys.tenant, err)
	}
	if err := errors.Join(err, unreadable); err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Named[T]) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// bounds are how many objects of a kind each tenant has at most, since they were counted last. Whoever
// uses them holds a lock.
type bounds struct {
	most map[string]int
}

// of returns the bound of a tenant; false if its objects were not counted yet.
func (b *bounds) of(tenant string) (most int, counted bool) {
	most, counted = b.most[tenant]
	return most, counted
}

// counted notes how many objects a tenant has.
func (b *bounds) counted(tenant string, n int) {
	if b.most == nil {
		b.most = map[string]int{}
	}
	b.most[tenant] = n
}

// add notes that a tenant may have one more.
func (b *bounds) add(tenant string) {
	if n, counted := b.of(tenant); counted {
		b.counted(tenant, n+1)
	}
}
