package controller

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic/guard"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// memory is a log, a store and an ear in memory, on which a controller runs in
// the time of a synctest bubble.
type memory struct {
	mu          sync.Mutex
	records     []message.Record
	lastCommand uint64
	grown       chan struct{}

	config   *v1.OSUpgrade
	hosts    map[string]store.Host
	versions map[string][]byte
	// puts counts the writes of hosts that were tried, and refuse how many of
	// the next ones fail. While stuck is held none comes to an end.
	puts, refuse int
	stuck        sync.Mutex

	alive    func(string, message.Alive)
	progress func(string, message.Progress)
}

func newMemory(hosts ...string) *memory {
	m := &memory{grown: make(chan struct{}), hosts: map[string]store.Host{}, versions: map[string][]byte{}}
	m.config = &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}}}
	for _, name := range hosts {
		m.hosts[topic.Token(name)] = store.Host{Tenant: "acme", Name: name, Application: "app"}
	}
	return m
}

func (m *memory) Append(_ context.Context, r message.Record, expect uint64) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if expect != m.lastCommand {
		return 0, topic.ErrBehind
	}
	m.lastCommand = m.add(r)
	return m.lastCommand, nil
}

func (m *memory) add(r message.Record) uint64 {
	r.Seq, r.Time = uint64(len(m.records)+1), time.Now()
	m.records = append(m.records, r)
	close(m.grown)
	m.grown = make(chan struct{})
	return r.Seq
}

func (m *memory) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	for at := from; ; {
		m.mu.Lock()
		fresh, grown := m.records[at-1:], m.grown
		m.mu.Unlock()
		for _, r := range fresh {
			deliver(r)
			at++
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-grown:
		}
	}
}

func (m *memory) Read(_ context.Context, from, to uint64, deliver func(message.Record)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.records[from-1 : to] {
		deliver(r)
	}
	return nil
}

func (m *memory) Last(context.Context) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return uint64(len(m.records)), nil
}

func (m *memory) Listen(ctx context.Context, alive func(string, message.Alive), progress func(string, message.Progress)) error {
	m.mu.Lock()
	m.alive, m.progress = alive, progress
	m.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

func (m *memory) WatchConfig(ctx context.Context, _ string, see func(store.Seen)) error {
	see(store.Seen{Config: m.config, Number: 1})
	<-ctx.Done()
	return ctx.Err()
}

func (m *memory) WatchVersions(ctx context.Context, _ string, see func(store.Reported)) error {
	for key, body := range m.versions {
		see(store.Reported{Key: key, Body: body, At: time.Now(), Number: 1})
	}
	see(store.Reported{})
	<-ctx.Done()
	return ctx.Err()
}

func (m *memory) VersionsNumber(context.Context, string) (uint64, error) {
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
	return m.hosts[topic.Token(name)], m.puts
}

func (m *memory) reply(host string, run uint64, action message.Action) {
	m.mu.Lock()
	m.add(message.Record{
		Kind: message.ReplyRecord, Host: host, Run: run, Action: action, Body: message.Reply{Action: action, Result: message.Done}.Encode(),
	})
	m.mu.Unlock()
	synctest.Wait()
}

func (m *memory) beat(hosts ...string) {
	for _, name := range hosts {
		m.alive(name, message.Alive{Application: "app"})
	}
	synctest.Wait()
}

// last returns the body of the newest record.
func (m *memory) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return string(m.records[len(m.records)-1].Body)
}

func (m *memory) options(t testing.TB) Options {
	g, err := guard.Open(filepath.Join(t.TempDir(), "guard.json"))
	if err != nil {
		t.Fatal(err)
	}
	return Options{Tenant: "acme", Zone: time.UTC, Log: m, Ear: m, Guard: g, Store: m, Now: time.Now, Logger: slog.New(slog.DiscardHandler)}
}

// control runs a controller until the test ends, or stop is called. It must be
// called in a bubble.
func (m *memory) control(t *testing.T) (c *Controller, stop func()) {
	t.Helper()
	c = New(m.options(t))
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
	return c, stop
}
