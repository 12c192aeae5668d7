package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	memlog "github.com/osupgrade/terraform-provider-osupgrade/agent/log/memory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// memory is a log, a store and an ear in memory, on which a controller runs in
// the time of a synctest bubble.
type memory struct {
	mu  sync.Mutex
	log *memlog.Log

	// configuredAt is when the configuration was written.
	configuredAt time.Time
	config       *v1.OSUpgrade
	hosts        map[string]store.Host
	versions     map[string][]byte
	// puts counts the writes of hosts that were tried, and refuse how many of
	// the next ones fail. While stuck is held none comes to an end.
	puts, refuse int
	stuck        sync.Mutex

	// rollout is the tenant's, history are the runs in the history.
	rollout *v1.Rollout
	// calendars are the tenant's, by name, as written at calendarsAt; seeIntent is
	// told of each change of what is declared, seeVersions of each report.
	calendars   map[string]v1.Calendar
	calendarsAt time.Time
	seeIntent   func(store.Seen)
	seeVersions func(store.Reported)
	history     []v1.Run
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

func newMemory(hosts ...string) *memory {
	m := &memory{
		hosts: map[string]store.Host{}, versions: map[string][]byte{}, calendars: map[string]v1.Calendar{},
	}
	m.log = m.newLog()
	m.config = &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}}}
	for _, name := range hosts {
		m.hosts[log.Token(name)] = store.Host{Tenant: "acme", Name: name, Application: "app"}
	}
	return m
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

// declare has an object change.
func (m *memory) declare(seen store.Seen) {
	m.mu.Lock()
	see := m.seeIntent
	m.mu.Unlock()
	see(seen)
	synctest.Wait()
}

// configure has the configuration change, now.
func (m *memory) configure(seen store.Seen) {
	m.mu.Lock()
	m.config, m.configuredAt, seen.At = seen.Config, time.Now(), time.Now()
	m.mu.Unlock()
	m.declare(seen)
}

// putCalendar has a calendar change, now; one without a value or an error is
// deleted.
func (m *memory) putCalendar(seen store.Seen) {
	m.mu.Lock()
	delete(m.calendars, seen.Name)
	if seen.Calendar != nil {
		m.calendars[seen.Name] = *seen.Calendar
	}
	seen.At, m.calendarsAt = time.Now(), time.Now()
	m.mu.Unlock()
	m.declare(seen)
}

func calendarNamed(name string) store.Object {
	return store.Object{Kind: store.Calendar, Name: name}
}

func (m *memory) WatchIntent(ctx context.Context, _ string, see func(store.Seen)) error {
	m.mu.Lock()
	m.seeIntent = see
	config, calendars := m.config, maps.Clone(m.calendars)
	m.mu.Unlock()
	if config != nil {
		see(store.Seen{Object: theConfig, Config: config, Number: 1, At: m.configuredAt})
	}
	for name, c := range calendars {
		see(store.Seen{Object: calendarNamed(name), Calendar: &c, Number: 1, At: m.calendarsAt})
	}
	_ = wait.Sleep(ctx, m.rolloutDelay)
	m.mu.Lock()
	rollout := m.rollout
	m.mu.Unlock()
	if rollout != nil {
		see(store.Seen{Object: theRollout, Rollout: rollout, Number: 1})
	}
	see(store.Seen{})
	return m.untilStale(ctx)
}

func (m *memory) PutRun(_ context.Context, _ string, r v1.Run, _ uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runPuts++
	if m.refuseRuns > 0 {
		m.refuseRuns--
		return errors.New("no space left on device")
	}
	m.history = append(m.history, r)
	return nil
}

func (m *memory) Run(_ context.Context, _ string, id uint64) (v1.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range slices.Backward(m.history) {
		if r.ID == id {
			return r, nil
		}
	}
	return v1.Run{}, store.ErrNotFound
}

func (m *memory) Runs(_ context.Context, _ string, deliver func(v1.Run) bool) error {
	m.mu.Lock()
	kept := slices.Clone(m.history)
	m.mu.Unlock()
	for _, r := range slices.Backward(kept) {
		r.Hosts, r.Events = nil, nil
		if !deliver(r) {
			return nil
		}
	}
	return nil
}

func (m *memory) WatchVersions(ctx context.Context, _ string, see func(store.Reported)) error {
	m.mu.Lock()
	kept := maps.Clone(m.versions)
	m.mu.Unlock()
	for key, body := range kept {
		see(store.Reported{Key: key, Body: body, VersionReport: v1.VersionReport{At: time.Now()}, Number: 1})
	}
	see(store.Reported{})
	m.mu.Lock()
	m.seeVersions = see
	m.mu.Unlock()
	return m.untilStale(ctx)
}

// Reports returns the report of the versions that a host has, if any.
func (m *memory) Reports(_ context.Context, _, key string) ([]v1.VersionReport, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.versions[key] == nil {
		return nil, nil
	}
	return []v1.VersionReport{{At: time.Now(), Changed: 1, Changes: []v1.VersionChange{{Package: "kernel", From: "6.0", To: "6.1"}}}}, nil
}

func (m *memory) Outputs(_ context.Context, _, key string, run uint64) ([]v1.StepOutput, error) {
	return []v1.StepOutput{{Step: "upgrade", Output: fmt.Sprintf("of %s in run %d", key, run)}}, nil
}

// noPlans is a run of which no plan is kept.
const noPlans = 6

func (m *memory) Plan(_ context.Context, _, key string, run uint64) (v1.HostPlan, error) {
	if run == noPlans {
		return v1.HostPlan{}, store.ErrNotFound
	}
	return v1.HostPlan{Changes: []v1.VersionChange{{Package: "of " + key}}}, nil
}

// Offers has the offer of each host but h02.
func (m *memory) Offers(context.Context, string) (map[string]v1.OfferSummary, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.offersErr != nil {
		return nil, m.offersErr
	}
	at := time.Now().Add(-time.Hour)
	return map[string]v1.OfferSummary{
		log.Token("h01"): {At: &at, Changes: 12, Held: 2, DownloadBytes: 5 << 20, Reboot: "kernel 6.1.0-28"}, log.Token("h.3"): {At: &at}, "stranger": {At: &at, Changes: 1},
	}, nil
}

func (m *memory) Inventories(context.Context, string, string) (map[string]v1.HostInventory, error) {
	return nil, nil
}

func (m *memory) OfferedPlan(_ context.Context, _, key string) (v1.HostPlan, error) {
	if key != log.Token("h01") {
		return v1.HostPlan{}, fmt.Errorf("offer %w", store.ErrNotFound)
	}
	return v1.HostPlan{At: time.Now(), Changes: []v1.VersionChange{{Package: "of " + key}}}, nil
}

func (m *memory) VersionsNumber(context.Context, string) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(min(1, len(m.versions))), nil
}

func (m *memory) Hosts(context.Context, string) ([]store.Host, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var hosts []store.Host
	for _, h := range m.hosts {
		hosts = append(hosts, h)
	}
	return hosts, nil
}

func (m *memory) PutHost(_ context.Context, key string, h store.Host) error {
	m.stuck.Lock()
	defer m.stuck.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.puts++
	if m.refuse > 0 {
		m.refuse--
		return errors.New("no space left on device")
	}
	m.hosts[key] = h
	return nil
}

func (m *memory) DeleteHost(_ context.Context, _, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.hosts, key)
	return nil
}

// kept returns what the store has of a host, and how many writes there were.
func (m *memory) kept(name string) (h store.Host, puts int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hosts[log.Token(name)], m.puts
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
