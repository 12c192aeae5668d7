// Package memory implements the log and the store of leases in memory, so that tests
// of gates and controllers need no server. Tests inject faults with Before and After.
//
// It decides whether an append succeeds, and which of two replies counts, as the
// server does for package jetstream.
package memory

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/gate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// replyTo identifies a command to which a host may reply once.
type replyTo struct {
	run    uint64
	action message.Action
	host   string
}

// Log is one tenant's log. Its fields are set before its use.
type Log struct {
	// Name identifies the log to hosts; Now is its clock, time.Now if nil.
	Name string
	Now  func() time.Time
	// Before is called with each record before it is appended, with its sequence
	// and its time; an error refuses the record. After is called once the record is
	// on the log; its error is returned to the writer. Neither may call the log.
	Before, After func(r message.Record) error

	mu      sync.Mutex
	records []message.Record
	// first is the sequence of the oldest record, command that of the newest
	// command or event, prepares those of the newest prepare of each environment.
	first, command uint64
	prepares       map[string]uint64
	replies        map[replyTo]bool
	grew           chan struct{}
}

var (
	_ log.Log  = (*Log)(nil)
	_ gate.Log = (*Log)(nil)
)

// New makes an empty log.
func New() *Log {
	return &Log{Name: "memory", first: 1, prepares: map[string]uint64{}, replies: map[replyTo]bool{}, grew: make(chan struct{})}
}

func (l *Log) last() uint64 { return l.first + uint64(len(l.records)) - 1 }

// add appends a record, with the lock held.
func (l *Log) add(r message.Record) (uint64, error) {
	r.Seq, r.Time = l.last()+1, time.Now()
	if l.Now != nil {
		r.Time = l.Now()
	}
	if l.Before != nil {
		if err := l.Before(r); err != nil {
			return 0, err
		}
	}
	l.records = append(l.records, r)
	l.note(r)
	close(l.grew)
	l.grew = make(chan struct{})
	if l.After != nil {
		if err := l.After(r); err != nil {
			return 0, err
		}
	}
	return r.Seq, nil
}

// note updates the newest command and prepares, and the known replies, with the lock
// held.
func (l *Log) note(r message.Record) {
	switch r.Kind {
	case message.CommandAll:
		l.prepares[r.Environment], l.command = r.Seq, r.Seq
	case message.CommandHost, message.EventRecord:
		l.command = r.Seq
	case message.ReplyRecord:
		l.replies[replyTo{r.Run, r.Action, r.Host}] = true
	}
}

// Add appends a record, whatever is on the log.
func (l *Log) Add(r message.Record) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(r)
}

// Damage replaces the records, as a damaged disk or a server that has lost records
// does.
func (l *Log) Damage(f func([]message.Record) []message.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.records, l.command, l.prepares = f(l.records), 0, map[string]uint64{}
	for _, r := range l.records {
		l.note(r)
	}
	close(l.grew)
	l.grew = make(chan struct{})
}

// Append implements log.Log.
func (l *Log) Append(_ context.Context, r message.Record, expect uint64) (uint64, error) {
	if err := writable(r); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if expect != l.command {
		return 0, log.ErrBehind
	}
	return l.add(r)
}

// writable returns an error for a record that no controller writes.
func writable(r message.Record) error {
	switch r.Kind {
	case message.CommandAll, message.EventRecord:
		return nil
	case message.CommandHost:
		if !names.ValidHost(r.Host) {
			return fmt.Errorf("a command is for host %q, which is not a host name", r.Host)
		}
		return nil
	default:
		return fmt.Errorf("a controller does not write records of kind %d", r.Kind)
	}
}

// AppendNext implements log.Log.
func (l *Log) AppendNext(_ context.Context, r message.Record, expect, last uint64) (uint64, error) {
	if err := writable(r); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if expect != l.command || last != l.last() {
		return 0, log.ErrBehind
	}
	return l.add(r)
}

// AppendReply implements gate.Log.
func (l *Log) AppendReply(_ context.Context, r message.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.replies[replyTo{r.Run, r.Action, r.Host}] {
		return log.ErrAnswered
	}
	_, err := l.add(r)
	return err
}

// Since returns the records from a sequence on, and a channel that is closed
// when there are more.
func (l *Log) Since(from uint64) ([]message.Record, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	from = max(from, l.first)
	if from > l.last() {
		return nil, l.grew
	}
	return l.records[from-l.first:], l.grew
}

// All returns all records that were not trimmed.
func (l *Log) All() []message.Record {
	all, _ := l.Since(0)
	return all
}

// Follow implements log.Log.
func (l *Log) Follow(ctx context.Context, from uint64, deliver func(message.Record)) error {
	for {
		news, grew := l.Since(from)
		for _, r := range news {
			deliver(r)
			from = r.Seq + 1
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-grew:
		}
	}
}

// FollowCommands implements gate.Log.
func (l *Log) FollowCommands(ctx context.Context, from uint64, deliver func(message.Record)) error {
	return l.Follow(ctx, from, func(r message.Record) {
		if r.Kind != message.ReplyRecord {
			deliver(r)
		}
	})
}

// Read implements log.Log.
func (l *Log) Read(_ context.Context, from, to uint64, deliver func(message.Record)) error {
	for seq := from; seq <= to; seq++ {
		r, there := l.At(seq)
		if !there {
			return fmt.Errorf("cannot read record %d: it is not there", seq)
		}
		deliver(r)
	}
	return nil
}

// At returns a record.
func (l *Log) At(seq uint64) (message.Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if seq < l.first || seq > l.last() {
		return message.Record{}, false
	}
	return l.records[seq-l.first], true
}

// Last implements log.Log.
func (l *Log) Last(context.Context) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last(), nil
}

// First implements log.Log.
func (l *Log) First(context.Context) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first, nil
}

// Trim implements log.Log.
func (l *Log) Trim(_ context.Context, upTo uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if upTo >= l.command {
		return fmt.Errorf("cannot trim the log up to record %d: the newest command or event must stay", upTo)
	}
	if upTo >= l.first {
		for _, r := range l.records[:upTo-l.first+1] {
			delete(l.replies, replyTo{r.Run, r.Action, r.Host})
		}
		l.records = l.records[upTo-l.first+1:]
		l.first = upTo + 1
		maps.DeleteFunc(l.prepares, func(_ string, seq uint64) bool { return seq < l.first })
	}
	return nil
}

// Identity implements gate.Log.
func (l *Log) Identity() string { return l.Name }

// NewestCommand implements gate.Log.
func (l *Log) NewestCommand(context.Context) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.command, nil
}

// OldestPrepare implements gate.Log.
func (l *Log) OldestPrepare(context.Context) (oldest uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, seq := range l.prepares {
		if oldest == 0 || seq < oldest {
			oldest = seq
		}
	}
	return oldest, nil
}
