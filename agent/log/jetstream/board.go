package jetstream

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// board is what hosts ask for, in memory: the newest prepare and the commands
// to each host that came after it. Ten thousand of them ask at once.
type board struct {
	log *Log
	mu  sync.Mutex
	// prepare is the newest; its body is made for whoever asks. plain is the
	// body of one that cannot be read, which no controller writes.
	prepare message.Record
	plain   []byte
	command message.Command
	members map[string]struct{}
	// toHost are the newest commands by host. Those before the prepare are of no
	// use: their run takes no more replies.
	toHost map[string]message.Record
	// from is the sequence from which on commands are pushed: what was there
	// before is asked for.
	from uint64
}

// record is a command on its way to a host.
type record struct {
	Kind message.Kind    `json:"kind"`
	Seq  uint64          `json:"seq"`
	Time time.Time       `json:"time"`
	Run  uint64          `json:"run,omitempty"`
	Body json.RawMessage `json:"body"`
}

func onTheWay(r message.Record, body []byte) record {
	return record{Kind: r.Kind, Seq: r.Seq, Time: r.Time, Run: r.Run, Body: body}
}

// serve keeps the board as the log is until ctx ends. It calls ready once it
// has what was there at first.
func (b *board) serve(ctx context.Context, ready func()) error {
	last, err := b.log.last(ctx, b.log.subjects.Commands())
	if err != nil {
		return fmt.Errorf("cannot look for commands: %w", err)
	}
	prepare, err := b.log.last(ctx, b.log.subjects.CommandAll())
	if err != nil {
		return fmt.Errorf("cannot look for the newest prepare: %w", err)
	}
	var from uint64 = 1
	if last != nil {
		b.from, from = last.Sequence+1, last.Sequence+1
	}
	if prepare != nil {
		from = prepare.Sequence
	}
	if from >= b.from {
		ready()
	}
	go b.log.whenBack(ctx, b.tellAll)
	return b.log.follow(ctx, from, []string{b.log.subjects.Commands()}, func(r message.Record) {
		b.take(r)
		switch {
		case r.Seq+1 == b.from:
			ready()
		case r.Seq >= b.from:
			b.push(r)
		}
	})
}

// take puts a record on the board.
func (b *board) take(r message.Record) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.Kind {
	case message.CommandAll:
		b.plain, b.members, b.toHost = nil, map[string]struct{}{}, map[string]message.Record{}
		command, err := message.DecodeCommand(r.Body)
		if err != nil {
			b.plain = r.Body
		}
		for _, host := range command.Hosts {
			b.members[host] = struct{}{}
		}
		b.command, b.prepare = command, r
		b.prepare.Body = nil
	case message.CommandHost:
		if b.toHost != nil {
			b.toHost[r.Host] = r
		}
	}
}

// push tells hosts of a new command: one of its own whole, all of a prepare
// that there is one.
func (b *board) push(r message.Record) {
	// A push that is lost is made up for: the connection was lost, too, and the
	// hosts ask again once they are back, or this one is.
	switch r.Kind {
	case message.CommandAll:
		b.tellAll()
	case message.CommandHost:
		body, err := json.Marshal(onTheWay(r, r.Body))
		if err == nil {
			_ = b.log.nats.Publish(b.log.subjects.Push(r.Host), body)
		}
	}
}

// tellAll has all hosts ask for the newest commands.
func (b *board) tellAll() { _ = b.log.nats.PublishMsg(&nats.Msg{Subject: b.log.subjects.News()}) }

// newest returns the newest prepare as one host needs it, and the newest
// command to that host.
func (b *board) newest(host string) []record {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.prepare.Seq == 0 {
		return nil
	}
	all := []record{onTheWay(b.prepare, b.part(host))}
	if r, ok := b.toHost[host]; ok {
		all = append(all, onTheWay(r, r.Body))
	}
	return all
}

// nobody are names that stand in the place of all others, for a host of one
// of them the other.
var nobody = [2]string{"another-host", "some-other-host"}

// part is the body of the prepare with no host but the one that asks. For one
// that is no member a name that tells nothing of others stands there, because a
// prepare names at least one, and a host must see that it is not meant.
func (b *board) part(host string) []byte {
	if b.plain != nil {
		return b.plain
	}
	c := b.command
	_, member := b.members[host]
	switch {
	case member:
		c.Hosts = []string{host}
	case host == nobody[0]:
		c.Hosts = nobody[1:]
	default:
		c.Hosts = nobody[:1]
	}
	return c.Encode()
}

// run is the newest run's number.
func (b *board) run() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.prepare.Seq
}
