package worker

import (
	"context"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// mailbox keeps the newest prepare and the newest command to the host until
// the loop has time for them. Older ones are of no use, so it never grows and
// whoever delivers never waits.
type mailbox struct {
	mu     *sync.Mutex
	newest map[message.Kind]message.Record
	some   chan struct{}
}

func newMailbox() mailbox {
	return mailbox{mu: &sync.Mutex{}, newest: map[message.Kind]message.Record{}, some: make(chan struct{}, 1)}
}

// put keeps a record unless one that is as new is kept already.
func (m mailbox) put(r message.Record) (keeps bool) {
	m.mu.Lock()
	// Sequences of two logs do not compare; what is delivered last counts.
	kept := m.newest[r.Kind]
	if keeps = r.Log != kept.Log || r.Seq > kept.Seq; keeps {
		m.newest[r.Kind] = r
	}
	m.mu.Unlock()
	select {
	case m.some <- struct{}{}:
	default:
	}
	return keeps
}

// take returns the oldest record that is kept, and waits for one.
func (m mailbox) take(ctx context.Context) (message.Record, error) {
	for {
		if r, ok := m.pop(); ok {
			return r, nil
		}
		select {
		case <-ctx.Done():
			return message.Record{}, ctx.Err()
		case <-m.some:
		}
	}
}

func (m mailbox) pop() (message.Record, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var oldest message.Record
	for _, r := range m.newest {
		if oldest.Seq == 0 || r.Seq < oldest.Seq {
			oldest = r
		}
	}
	delete(m.newest, oldest.Kind)
	return oldest, oldest.Seq != 0
}
