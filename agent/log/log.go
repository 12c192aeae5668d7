// Package log defines the interfaces of the log: append a record, follow the records
// from a position, reply. Its folders carry the log over NATS, keep it in memory for
// tests, and check that it is still the same log.
//
// It decides the subjects and who may write to which. It never interprets a body and
// knows nothing about runs.
package log

import (
	"context"
	"errors"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// ErrBehind means that the log holds a command that the writer had not seen:
// nothing was appended (design.md 4, "one writer").
var ErrBehind = errors.New("the log has moved on")

// ErrAnswered means that the log holds a reply of this host to this command
// already: nothing was appended (design.md 4, "one answer").
var ErrAnswered = errors.New("answered already")

// ErrRefused means that the site refuses what a host sent, and would refuse it
// again: trying once more is vain.
var ErrRefused = errors.New("refused by the site")

// ErrTaken means that another worker holds the host's lease (AV-15).
var ErrTaken = errors.New("another worker works for this host")

// ErrProtocol means that site and worker have no protocol in common: one of them
// is to be upgraded (package format).
var ErrProtocol = errors.New("the site speaks another protocol")

// Log is one tenant's log as its controller sees it.
type Log interface {
	// Append writes a command or an event and returns its sequence, once it is
	// on disk. The last command or event must have the sequence expect, or it
	// fails with ErrBehind. After any other error the record may be on the log
	// or not.
	Append(ctx context.Context, r message.Record, expect uint64) (uint64, error)
	// AppendNext is Append for a record that depends on all before it: the last
	// record of any kind must have the sequence last, too.
	AppendNext(ctx context.Context, r message.Record, expect, last uint64) (uint64, error)
	// Follow delivers each record from a sequence on, in order, then those to
	// come. It returns when ctx ends or the log cannot be read; with ErrStale when
	// it has to be called again from the last sequence that was seen.
	Follow(ctx context.Context, from uint64, deliver func(message.Record)) error
	// Read delivers the records from one sequence to another, both included.
	Read(ctx context.Context, from, to uint64, deliver func(message.Record)) error
	// Last returns the sequence of the newest record; 0 when there is none.
	Last(ctx context.Context) (uint64, error)
	// First returns the sequence of the oldest record that is there; one more
	// than Last when there is none.
	First(ctx context.Context) (uint64, error)
	// Trim removes the records up to a sequence, which must be before the newest
	// command or event: one writer is known by that.
	Trim(ctx context.Context, upTo uint64) error
}

// HostLog is the log as one host sees it: what it may read and write under its
// own credentials. Its calls try until ctx ends, but for ErrRefused and
// ErrTaken.
type HostLog interface {
	// Lease asks for the host's one lease for a worker of this identity, which is
	// used for all calls from then on. ErrProtocol means that the site is of
	// another version, which may change. ErrTaken means that another worker holds it
	// and was heard of lately. A worker that loses the lease is refused whatever
	// else it calls with ErrTaken. The epoch grows each time that the lease passes
	// to another worker, and only then: a worker that was away learns from it
	// whether another one held the lease meanwhile.
	Lease(ctx context.Context, worker string) (epoch uint64, err error)
	// GiveBack gives the lease back, so that another worker need not wait until
	// this one is silent for long enough. Whoever asks first has it then, this
	// worker in the epoch that it had. It tries once: nobody waits for a site that
	// is not there. What comes late, or twice, takes the lease from nobody who
	// asked for it since.
	GiveBack(ctx context.Context) error
	// Vacated delivers when another worker has given the lease back, so that it is
	// to be asked for again. It may be lost, and it may come for nothing.
	Vacated() <-chan struct{}
	// Newest returns the newest prepare and the newest command to this host,
	// oldest first; fewer when there are fewer. It is never behind the log: a worker
	// that begins anew would execute a command once more that it does not learn of.
	Newest(ctx context.Context) ([]message.Record, error)
	// Commands delivers the newest prepare and command as well, and then each new
	// command. Some may come twice. It returns when ctx ends.
	Commands(ctx context.Context, deliver func(message.Record)) error
	// Reply writes the one reply to a command and returns once it is on disk.
	// ErrAnswered means that a reply is there; ErrRefused that the run is over
	// or the reply cannot be taken.
	Reply(ctx context.Context, run uint64, reply message.Reply) error
	// Versions keeps what DecodeVersions reads.
	Versions(ctx context.Context, body []byte) error
	// LastVersions returns the body that Versions kept last; nil when there is
	// none (AV-76).
	LastVersions(ctx context.Context) ([]byte, error)
	// Alive and Progress are telemetry: they are kept nowhere and may be lost.
	Alive(a message.Alive) error
	Progress(p message.Progress) error
	// Pings delivers each request of the controller to say Alive at once: one at
	// first, in the place of those that came before, and one after each time that
	// the connection was lost.
	Pings(ctx context.Context, deliver func()) error
	// Tasks delivers the tasks that the controller wants done; the same one
	// again until it has its outcome.
	Tasks(ctx context.Context, deliver func(message.Task)) error
	// Outcome tells how a task came out; it may be lost.
	Outcome(o message.Outcome) error
}

// HostEvents is how a controller hears of hosts, and sends them tasks, beside
// the log.
type HostEvents interface {
	// Listen delivers the telemetry of a tenant's hosts, and pings each host. It
	// returns when ctx ends.
	Listen(ctx context.Context, to Listener) error
	// Send sends a task to its host; it may be lost.
	Send(t message.Task) error
}

// Listener takes the telemetry of hosts. The host is the one whose
// credentials sent it, whatever the body says. None may block.
type Listener struct {
	Alive    func(host string, a message.Alive)
	Progress func(host string, p message.Progress)
	Outcome  func(host string, o message.Outcome)
}
