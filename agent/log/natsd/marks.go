package natsd

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd/store"
)

// markDelay is how long after a write the high-water marks are written, so that
// many writes share one.
const markDelay = time.Second

// marker keeps the high-water marks of a store on which a server runs.
type marker struct {
	nats *server.Server
	// health is what the server says of itself.
	health  func(*server.HealthzOptions) *server.HealthStatus
	dir     string
	conn    *nats.Conn
	changed wait.Signal
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
	mu      sync.Mutex
	kept    store.Marks
}

// startMarker begins to keep marks. It subscribes to the writes to all buckets and
// to the history on conn, which it closes at its end. tried is called with the
// result of each attempt to write the marks.
func startMarker(s *server.Server, dir string, conn *nats.Conn, tried func(error)) (*marker, error) {
	kept, err := store.ReadMarks(dir)
	if err != nil {
		return nil, err
	}
	m := &marker{
		nats: s, health: s.Healthz, kept: kept, dir: dir, conn: conn,
		changed: wait.NewSignal(), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	// The last write before the store was reopened may have no mark yet.
	m.changed.Set()
	for _, subject := range []string{"$KV.>", "osu-runs.>"} {
		if _, err := conn.Subscribe(subject, func(*nats.Msg) { m.changed.Set() }); err != nil {
			return nil, fmt.Errorf("cannot listen for writes: %w", err)
		}
	}
	go m.run(tried)
	return m, nil
}

// run writes the marks markDelay after a change.
func (m *marker) run(tried func(error)) {
	defer close(m.stopped)
	for {
		select {
		case <-m.stop:
			return
		case <-m.changed:
		}
		timer := time.NewTimer(markDelay)
		select {
		case <-m.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		err := m.mark()
		tried(err)
		if err != nil {
			m.changed.Set()
		}
	}
}

// Mark makes durable that a stream has a record, so that the record is missed if it is
// lost. It is called between the acknowledgement by the server and that to the writer.
func (s *Server) Mark(stream string, seq uint64) error {
	s.mu.RLock()
	m, account := s.marks, s.nats.GlobalAccount().GetName()
	s.mu.RUnlock()
	if err := m.raise(account+"/"+stream, seq); err != nil {
		return fmt.Errorf("cannot write the high-water marks of the store: %w", err)
	}
	return nil
}

// raise raises the mark of one stream.
func (m *marker) raise(stream string, seq uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept[stream] >= seq {
		return nil
	}
	marks := store.Marks{stream: seq}
	for other, mark := range m.kept {
		if other != stream {
			marks[other] = mark
		}
	}
	if err := marks.Write(m.dir); err != nil {
		return err
	}
	m.kept = marks
	return nil
}

// mark writes the last sequence of each stream. While a stream is unhealthy it
// leaves the marks as they are: after a full disk the server may count a record
// that it could not write, such as the first of a block. A mark of that record,
// which was never acknowledged, would be reported as damage for good.
//
// The check may take seconds. Writers that raise a mark do not wait for it.
func (m *marker) mark() error {
	m.mu.Lock()
	before := m.kept
	m.mu.Unlock()
	marks, err := m.reached()
	if err != nil {
		return err
	}
	// The check comes after the sequences: a write that failed before makes its
	// stream unhealthy until the store is reopened.
	if err := awaitHealthy(m.health); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for stream, seq := range m.kept {
		if seq > before[stream] { // It was raised meanwhile.
			marks[stream] = max(marks[stream], seq)
		}
	}
	if maps.Equal(marks, m.kept) {
		return nil
	}
	if err := marks.Write(m.dir); err != nil {
		return err
	}
	m.kept = marks
	return nil
}

// reached returns the last sequence of each stream according to the server.
func (m *marker) reached() (store.Marks, error) {
	info, err := m.nats.Jsz(&server.JSzOptions{Accounts: true, Streams: true})
	if err != nil {
		return nil, fmt.Errorf("cannot ask for the last sequences of the streams: %w", err)
	}
	marks := store.Marks{}
	for _, account := range info.AccountDetails {
		for _, stream := range account.Streams {
			if stream.State.LastSeq > 0 {
				marks[account.Id+"/"+stream.Name] = stream.State.LastSeq
			}
		}
	}
	return marks, nil
}

// close may be called several times, and on nil.
func (m *marker) close() {
	if m == nil {
		return
	}
	m.conn.Close()
	m.once.Do(func() { close(m.stop) })
	<-m.stopped
}
