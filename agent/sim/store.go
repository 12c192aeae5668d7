package sim

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// simStore is the simulated store. Its content survives every fault.
type simStore struct {
	mu      sync.Mutex
	changed chan struct{}
	number  uint64
	// intent is the configuration, the rollout and the calendars.
	intent   map[store.Object]store.Seen
	hosts    map[string]store.Host
	versions map[string]store.Reported
	reported uint64
	// offers and inventories are the last of each host.
	offers, inventories map[string]simReport
	// runs are the history; runsAsOf is the last record that each run contains.
	runs     []v1.Run
	runsAsOf map[uint64]uint64
	// news are what is told, oldest first.
	news []store.KeptNews
}

func newSimStore() *simStore {
	return &simStore{changed: make(chan struct{}), intent: map[store.Object]store.Seen{}, hosts: map[string]store.Host{}, versions: map[string]store.Reported{}, offers: map[string]simReport{}, inventories: map[string]simReport{}, runsAsOf: map[uint64]uint64{}}
}

// change changes the content of the store and wakes its watches.
func (s *simStore) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *simStore) setConfig(c *v1.OSUpgrade) {
	s.change(func() {
		of := store.Object{Kind: store.Config}
		s.intent[of] = store.Seen{Object: of, Config: c, Number: s.number, At: time.Now()}
	})
}

func (s *simStore) setRollout(r *v1.Rollout) {
	s.change(func() {
		of := store.Object{Kind: store.Rollout}
		s.intent[of] = store.Seen{Object: of, Rollout: r, Number: s.number, At: time.Now()}
	})
}

// setCalendar writes a calendar; nil deletes it.
func (s *simStore) setCalendar(name string, c *v1.Calendar) {
	s.change(func() {
		of := store.Object{Kind: store.Calendar, Name: name}
		s.intent[of] = store.Seen{Object: of, Calendar: c, Number: s.number, At: time.Now()}
	})
}

func (s *simStore) putVersions(host string, body []byte) {
	s.change(func() {
		s.reported++
		key := log.Token(host)
		s.versions[key] = store.Reported{Key: key, Body: body, VersionReport: v1.VersionReport{At: time.Now()}, Number: s.reported}
	})
}

func (s *simStore) lastVersions(host string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.versions[log.Token(host)].Body
}

// simReport is an offer or an inventory that a host has told. Nobody watches them.
type simReport struct {
	body []byte
	at   time.Time
}

func (s *simStore) putReport(in map[string]simReport, key string, body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[key] = simReport{body, time.Now()}
}

func (s *simStore) lastReport(in map[string]simReport, key string) simReport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return in[key]
}

// siteStore is the store as one controller sees it.
type siteStore struct {
	*simStore
	w *World
	p *process
}

var errStore = errors.New("sim: the store does not answer")

// write takes no simulated time: a controller holds a mutex during some writes, and
// the time of a synctest bubble does not pass while a goroutine waits for a mutex.
func (s siteStore) write() error {
	switch {
	case s.p.dead():
		return errDead
	case s.w.fault("store: write fails", s.p.name):
		return errStore
	}
	return nil
}

func (s siteStore) read(ctx context.Context) error {
	switch {
	case s.p.dead():
		return errDead
	case s.w.fault("store: read fails", s.p.name):
		return errStore
	}
	return sleep(ctx, s.w.rng.span("store read/"+s.p.name, 100*time.Microsecond, 5*time.Millisecond))
}

// watch calls look now and after each change.
func (s siteStore) watch(ctx context.Context, look func()) error {
	for {
		switch {
		case s.w.fault("store: watch breaks", s.p.name):
			return errStore
		case s.w.fault("store: watch stale", s.p.name):
			return log.ErrStale
		}
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		look()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
		if err := sleep(ctx, s.w.rng.span("store watch/"+s.p.name, 100*time.Microsecond, 50*time.Millisecond)); err != nil {
			return err
		}
	}
}

// WatchIntent implements controller.Store. It calls see with each object, first as it
// is and then after each change.
func (s siteStore) WatchIntent(ctx context.Context, _ string, see func(store.Seen)) error {
	last, started := map[store.Object]uint64{}, false
	return s.watch(ctx, func() {
		var changed []store.Seen
		s.mu.Lock()
		for of, now := range s.intent {
			if now.Number != last[of] {
				last[of] = now.Number
				changed = append(changed, now)
			}
		}
		s.mu.Unlock()
		slices.SortFunc(changed, func(a, b store.Seen) int { return cmp.Compare(a.Number, b.Number) })
		for _, seen := range changed {
			see(seen)
		}
		if !started {
			started = true
			see(store.Seen{})
		}
	})
}

// WatchVersions implements controller.Store.
func (s siteStore) WatchVersions(ctx context.Context, _ string, see func(store.Reported)) error {
	var last uint64
	first := true
	return s.watch(ctx, func() {
		s.mu.Lock()
		var news []store.Reported
		until := last
		for _, r := range s.versions {
			if r.Number > last {
				news = append(news, r)
				until = max(until, r.Number)
			}
		}
		s.mu.Unlock()
		last = until
		for _, r := range news {
			see(r)
		}
		if first {
			first = false
			see(store.Reported{})
		}
	})
}

// Reports implements controller.Store.
func (s siteStore) Reports(context.Context, string, string) ([]v1.VersionReport, error) {
	return nil, nil // Nobody asks for them here.
}

// Outputs implements controller.Store.
func (s siteStore) Outputs(context.Context, string, string, uint64) ([]v1.StepOutput, error) {
	return nil, nil // Nobody asks for them here.
}

// Plan implements controller.Store.
func (s siteStore) Plan(context.Context, string, string, uint64) (v1.HostPlan, error) {
	return v1.HostPlan{}, store.ErrNotFound // Nobody asks for one here.
}

// Offers implements controller.Store.
func (s siteStore) Offers(context.Context, string) (map[string]v1.OfferSummary, error) {
	return nil, nil // Nobody asks for them here.
}

// OfferedPlan implements controller.Store.
func (s siteStore) OfferedPlan(context.Context, string, string) (v1.HostPlan, error) {
	return v1.HostPlan{}, store.ErrNotFound // Nobody asks for one here.
}

// Inventories implements controller.Store.
func (s siteStore) Inventories(context.Context, string, string) (map[string]v1.HostInventory, error) {
	return nil, nil // Nobody asks for them here.
}

// VersionsNumber implements controller.Store.
func (s siteStore) VersionsNumber(ctx context.Context, _ string) (uint64, error) {
	if err := s.read(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reported, nil
}

// Hosts implements controller.Store.
func (s siteStore) Hosts(ctx context.Context, _ string) ([]store.Host, error) {
	if err := s.read(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var hosts []store.Host
	for _, h := range s.hosts {
		hosts = append(hosts, h)
	}
	return hosts, nil
}

// PutHost implements controller.Store.
func (s siteStore) PutHost(_ context.Context, key string, h store.Host) error {
	if err := s.write(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts[key] = h
	return nil
}

// DeleteHost implements controller.Store.
func (s siteStore) DeleteHost(_ context.Context, _, key string) error {
	if err := s.write(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.hosts, key)
	delete(s.versions, key)
	delete(s.offers, key)
	delete(s.inventories, key)
	return nil
}

// PutRun implements controller.Store.
func (s siteStore) PutRun(_ context.Context, _ string, r v1.Run, asOf uint64) error {
	if err := s.write(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, kept := range s.runs {
		if kept.ID == r.ID {
			if s.runsAsOf[r.ID] < asOf {
				s.runs[i], s.runsAsOf[r.ID] = r, asOf
				s.w.count("runs kept again in the history")
			}
			return nil
		}
	}
	s.runs, s.runsAsOf[r.ID] = append(s.runs, r), asOf
	s.w.count("runs kept in the history")
	return nil
}

// Run implements controller.Store.
func (s siteStore) Run(ctx context.Context, _ string, id uint64) (v1.Run, error) {
	if err := s.read(ctx); err != nil {
		return v1.Run{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.ID == id {
			return r, nil
		}
	}
	return v1.Run{}, store.ErrNotFound
}

// Runs implements controller.Store.
func (s siteStore) Runs(ctx context.Context, _ string, deliver func(v1.Run) (more bool)) error {
	if err := s.read(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	runs := append([]v1.Run(nil), s.runs...)
	s.mu.Unlock()
	for i := len(runs) - 1; i >= 0; i-- {
		if !deliver(runs[i]) {
			return nil
		}
	}
	return nil
}
