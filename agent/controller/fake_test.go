package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	memlog "github.com/osupgrade/terraform-provider-osupgrade/agent/testing/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// memory is a log, a store and an ear in memory, on which a controller runs in
// the time of a synctest bubble.
type memory struct {
	// secrets seal outputs; nil means that the site keeps none.
	secrets Secrets
	// answersAsk has a host answer the request for a report; nil does not.
	answersAsk func(host string, a log.Ask)
	mu         sync.Mutex
	log        *memlog.Log

	*memlog.Store
	// staged is written to the store when somebody begins to follow it, as far as it differs
	// from stored, which was written before; storing is held meanwhile.
	staged
	stored  staged
	storing sync.Mutex
	// configuredAt is when the configuration and the calendars that are staged were written;
	// clockOfStore is the time of what is written; nil is now.
	configuredAt time.Time
	clockOfStore atomic.Pointer[time.Time]
	// puts counts the writes of hosts that were tried, and refuse how many of
	// the next ones fail. While stuck is held none comes to an end.
	puts, refuse int
	stuck        sync.Mutex
	// runPuts counts the writes to the history that were tried, and refuseRuns
	// how many of the next ones fail.
	runPuts, refuseRuns int
	// appendErr has each append fail, once it was written if written is set.
	appendErr error
	written   bool
	// refused tells that the append at hand fails.
	refused bool
	// offersErr is why the offers cannot be read.
	offersErr error
	// held keeps new records from whoever follows; nil lets them go.
	held chan struct{}
	// trims counts the trims that were tried, and refuseTrims how many of the next
	// ones fail.
	trims, refuseTrims uint64
	// refuseLastRuns is how many of the next writes of last runs fail.
	refuseLastRuns int
	// rolloutDelay is how long it takes until the rollout is seen at the start.
	rolloutDelay time.Duration
	// incarnation is the process that the tasks of hosts are for.
	incarnation string
	// asked are the tasks that hosts were asked for, atSite those that the site
	// was to run; site says how these come out, nil is that there is none.
	asked, atSite []message.Task
	site          func(context.Context, message.Task) message.Outcome
	log.Listener
	// skew is how wrong the clock of the site is, which is the log's, too.
	skew time.Duration
	// goesOn is closed when the process goes on that stopProcess has stopped; nil while it runs.
	goesOn chan struct{}
	// obedient has hosts answer each command at once.
	obedient bool
	// folder is where the guard of the log keeps its file.
	folder string
	// logger takes what is logged; nil means nobody.
	logger *slog.Logger
	// stale is closed when whoever follows something has to begin anew; nil while
	// nobody has to.
	stale chan struct{}
	// news keeps what is told; nil when nothing is.
	news *newsShelf
	// stop kills the controller that was started last.
	stop func()
}

// staged is what a tenant has declared, and the versions that its hosts have reported.
type staged struct {
	config    *v1.OSUpgrade
	rollout   *v1.Rollout
	calendars map[string]v1.Calendar
	versions  map[string][]byte
}

func (s staged) clone() staged {
	s.calendars, s.versions = maps.Clone(s.calendars), maps.Clone(s.versions)
	return s
}

func newMemory(hosts ...string) *memory {
	m := &memory{Store: memlog.NewStore()}
	m.Now = func() time.Time {
		if at := m.clockOfStore.Load(); at != nil {
			return *at
		}
		return time.Now()
	}
	m.log = m.newLog()
	m.calendars, m.versions = map[string]v1.Calendar{}, map[string][]byte{}
	m.config = &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}}}
	for _, name := range hosts {
		must(m.Store.PutHost(context.Background(), log.Token(name), store.Host{Tenant: "acme", Name: name, Application: "app"}))
	}
	return m
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func (m *memory) Listen(ctx context.Context, to log.Listener) error {
	m.mu.Lock()
	m.Listener = to
	m.mu.Unlock()
	return m.untilStale(ctx)
}

func (m *memory) Identity() string { return m.log.Identity() }

func (m *memory) Addressed(t message.Task) (message.Task, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t.Incarnation = m.incarnation
	return t, true
}

func (m *memory) Send(t message.Task) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, t)
	return nil
}

// Ask is that of log.HostEvents: it may be lost, and is unless answer says otherwise.
func (m *memory) Ask(host string, a log.Ask) error {
	m.mu.Lock()
	answer := m.answersAsk
	m.mu.Unlock()
	if answer != nil {
		answer(host, a)
	}
	return nil
}

// tasks returns what hosts were asked for so far.
func (m *memory) tasks() []message.Task {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// siteTasks returns what the site was to run so far.
func (m *memory) siteTasks() []message.Task {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.atSite)
}

// runner is the site's, of a memory.
type runner struct{ *memory }

func (r runner) Run(ctx context.Context, t message.Task) message.Outcome {
	r.mu.Lock()
	r.atSite = append(r.atSite, t)
	r.mu.Unlock()
	return r.site(ctx, t)
}

// declare has an object change, now: to a value, to what cannot be read if there is an error, and
// otherwise it is deleted.
func (m *memory) declare(seen store.Seen) {
	m.put(seen)
	synctest.Wait()
}

func (m *memory) put(seen store.Seen) {
	ctx := context.Background()
	var base store.Revision
	var err error
	switch seen.Kind {
	case store.Config:
		_, base, _ = m.Config(ctx, "acme")
	case store.Rollout:
		_, base, _ = m.Rollout(ctx, "acme")
	case store.Calendar:
		_, base, _ = m.Calendar(ctx, "acme", seen.Name)
	case store.Environment:
		_, base, _ = m.Environment(ctx, "acme", seen.Name)
	}
	switch {
	case seen.Err != nil:
		m.Damage("acme", seen.Object)
	case seen.Config != nil:
		_, err = m.PutConfig(ctx, "acme", v1.Kept[v1.OSUpgrade]{Value: *seen.Config}, base)
	case seen.Rollout != nil:
		_, err = m.PutRollout(ctx, "acme", v1.Kept[v1.Rollout]{Value: *seen.Rollout}, base)
	case seen.Calendar != nil:
		_, err = m.PutCalendar(ctx, "acme", seen.Name, v1.Kept[v1.Calendar]{Value: *seen.Calendar}, base)
	case seen.Environment != nil:
		_, err = m.PutEnvironment(ctx, "acme", seen.Name, v1.Kept[v1.Environment]{Value: *seen.Environment}, base)
	case seen.Kind == store.Environment:
		_, err = m.DeleteEnvironment(ctx, "acme", seen.Name, base)
	case seen.Kind == store.Config:
		_, err = m.DeleteConfig(ctx, "acme", base)
	case seen.Kind == store.Calendar:
		_, err = m.DeleteCalendar(ctx, "acme", seen.Name, base)
	}
	must(err)
}

// write writes what is staged, as far as it has changed since the last time.
func (m *memory) write() {
	m.storing.Lock()
	defer m.storing.Unlock()
	m.mu.Lock()
	now, before := m.clone(), m.stored
	m.stored = now
	at := m.configuredAt
	m.mu.Unlock()
	m.clockOfStore.Store(&at)
	if now.config != nil && !reflect.DeepEqual(now.config, before.config) {
		m.put(store.Seen{Object: theConfig, Config: now.config})
	}
	for name := range before.calendars {
		if _, still := now.calendars[name]; !still {
			m.put(store.Seen{Object: calendarNamed(name)})
		}
	}
	for name, c := range now.calendars {
		if old, was := before.calendars[name]; !was || !reflect.DeepEqual(old, c) {
			m.put(store.Seen{Object: calendarNamed(name), Calendar: &c})
		}
	}
	m.clockOfStore.Store(nil)
	if now.rollout != nil && !reflect.DeepEqual(now.rollout, before.rollout) {
		m.put(store.Seen{Object: theRollout, Rollout: now.rollout})
	}
	for key := range before.versions {
		if _, still := now.versions[key]; !still {
			must(m.DeleteHost(context.Background(), "acme", key))
		}
	}
	for key, body := range now.versions {
		if !bytes.Equal(before.versions[key], body) {
			m.reports(key, report.Versions, body)
		}
	}
}

// reports keeps a report of a host.
func (m *memory) reports(key string, kind *report.Kind, body []byte) {
	must(m.PutReport(context.Background(), "acme", key, kind.Of(body)))
}

func calendarNamed(name string) store.Object {
	return store.Object{Kind: store.Calendar, Name: name}
}

// WatchIntent is that of the store, until what follows has to begin anew.
func (m *memory) WatchIntent(ctx context.Context, tenant string, see func(store.Seen)) error {
	m.write()
	late := m.rolloutDelay
	return m.follow(ctx, func(ctx context.Context) error {
		return m.Store.WatchIntent(ctx, tenant, func(seen store.Seen) {
			if seen.Object == theRollout || seen.Object == (store.Object{}) {
				_ = wait.Sleep(ctx, late)
				late = 0
			}
			see(seen)
		})
	})
}

// WatchReports is that of the store, until what follows has to begin anew.
func (m *memory) WatchReports(ctx context.Context, tenant string, kind *report.Kind, see func(store.Reported)) error {
	m.write()
	return m.follow(ctx, func(ctx context.Context) error { return m.Store.WatchReports(ctx, tenant, kind, see) })
}

func (m *memory) follow(ctx context.Context, follow func(context.Context) error) error {
	following, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = follow(following)
	}()
	err := m.untilStale(ctx)
	stop()
	<-ended
	return err
}

// PutRun is that of the store, and may fail.
func (m *memory) PutRun(ctx context.Context, tenant string, r v1.Run, asOf uint64) error {
	m.mu.Lock()
	m.runPuts++
	refused := m.refuseRuns > 0
	if refused {
		m.refuseRuns--
	}
	m.mu.Unlock()
	if refused {
		return errors.New("no space left on device")
	}
	return m.Store.PutRun(ctx, tenant, r, asOf)
}

// Summaries is that of the store, and may fail.
func (m *memory) Summaries(ctx context.Context, tenant string, kind *report.Kind) (map[string]report.Summary, error) {
	if m.offersErr != nil {
		return nil, m.offersErr
	}
	return m.Store.Summaries(ctx, tenant, kind)
}

// PutHost is that of the store, and may take its time or fail.
func (m *memory) PutHost(ctx context.Context, key string, h store.Host) error {
	m.stuck.Lock()
	defer m.stuck.Unlock()
	m.mu.Lock()
	m.puts++
	refused := m.refuse > 0
	if refused {
		m.refuse--
	}
	m.mu.Unlock()
	if refused {
		return errors.New("no space left on device")
	}
	return m.Store.PutHost(ctx, key, h)
}

// PutLastRuns is that of the store, and may fail.
func (m *memory) PutLastRuns(ctx context.Context, tenant string, runs []store.LastRun) error {
	m.mu.Lock()
	refused := m.refuseLastRuns > 0
	if refused {
		m.refuseLastRuns--
	}
	m.mu.Unlock()
	if refused {
		return errors.New("no space left on device")
	}
	return m.Store.PutLastRuns(ctx, tenant, runs)
}

// kept returns what the store has of a host, and how many writes there were.
func (m *memory) kept(name string) (h store.Host, puts int) {
	hosts, err := m.Hosts(context.Background(), "acme")
	must(err)
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.IndexFunc(hosts, func(h store.Host) bool { return h.Name == name }); i >= 0 {
		h = hosts[i]
	}
	return h, m.puts
}

func (m *memory) beat(hosts ...string) {
	for _, name := range hosts {
		m.Alive(name, message.Alive{Application: "app"})
	}
	synctest.Wait()
}

func (m *memory) options(t testing.TB) Options {
	if m.folder == "" {
		m.folder = t.TempDir()
	}
	g, err := guard.OpenFile(filepath.Join(m.folder, "guard.json"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{
		Tenant: "acme", Zone: time.UTC, Log: m, HostEvents: m, Guard: g.Guard("acme"), Store: m, Now: m.clock,
		Logger: slog.New(slog.DiscardHandler), At: func(string) {},
	}
	if m.news != nil {
		o.News = m.news
	}
	if m.logger != nil {
		o.Logger = m.logger
	}
	if m.site != nil {
		o.Site = runner{m}
	}
	o.Secrets = m.secrets
	return o
}

// clock is that of the site. A process that is stopped looks at it when it goes on.
func (m *memory) clock() time.Time {
	m.mu.Lock()
	goesOn := m.goesOn
	m.mu.Unlock()
	if goesOn != nil {
		<-goesOn
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Add(m.skew)
}

// stopProcess has the controller be stopped for a while, as by SIGSTOP.
func (m *memory) stopProcess(span time.Duration) {
	goesOn := make(chan struct{})
	m.mu.Lock()
	m.goesOn = goesOn
	m.mu.Unlock()
	time.Sleep(span)
	m.mu.Lock()
	m.goesOn = nil
	m.mu.Unlock()
	close(goesOn)
}

// setClock has the clock of the site be wrong by so much.
func (m *memory) setClock(skew time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skew = skew
}

// control runs a controller until the test ends, or stop is called. It must be
// called in a bubble.
func (m *memory) control(t *testing.T) (c *Controller, stop func()) {
	t.Helper()
	return m.run(t, m.options(t))
}

func (m *memory) run(t *testing.T, o Options) (c *Controller, stop func()) {
	t.Helper()
	c = New(o)
	return c, m.runs(t, c)
}

// runs runs a controller until the test ends, or stop is called.
func (m *memory) runs(t *testing.T, c *Controller) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("the controller ended with %v", err)
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	synctest.Wait()
	m.stop = stop
	return stop
}

// restart kills the controller that was started last, and starts the next.
func (m *memory) restart(t *testing.T) *Controller {
	t.Helper()
	m.stop()
	c, _ := m.control(t)
	return c
}

// stateOf is the state of an active controller that nobody runs, and which knows
// all that was there at the start.
func stateOf(o Options) *state {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := newState(o, newSession(o, true, func() {}, newWarnings(o)).beside)
	s.isLoaded = true
	s.followGoal(s.standard(), time.Now())
	return s
}

// untilStale returns when whoever follows something has to begin anew.
func (m *memory) untilStale(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-m.isStale():
		return fmt.Errorf("the store is another one: %w", log.ErrStale)
	}
}

func (m *memory) isStale() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stale == nil {
		m.stale = make(chan struct{})
	}
	return m.stale
}

// turnStale has whoever follows something begin anew.
func (m *memory) turnStale() {
	m.isStale()
	m.mu.Lock()
	close(m.stale)
	m.stale = nil
	m.mu.Unlock()
	synctest.Wait()
}
