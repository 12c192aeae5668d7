package log

import (
	"context"
	"errors"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// ErrBehind means that the log holds a command that the writer had not seen:
// nothing was appended. So two controllers at once do no harm.
var ErrBehind = errors.New("the log has moved on")

// ErrAnswered means that the log holds a reply of this host to this command
// already, and it takes one: nothing was appended.
var ErrAnswered = errors.New("answered already")

// ErrRefused means that the site refuses a message of a host, and would refuse it
// again: the host need not retry.
var ErrRefused = errors.New("refused by the site")

// ErrTaken means that another worker holds the host's lease.
var ErrTaken = errors.New("another worker works for this host")

// ErrProtocol means that site and worker have no protocol in common: one of them must
// be upgraded (package format).
var ErrProtocol = errors.New("the site speaks another protocol")

// Log is one tenant's log as its controller sees it.
type Log interface {
	// Identity returns the identity of the log. A log that was deleted and made again,
	// or restored from a backup, has another identity.
	Identity() string
	// Append writes a command or an event and returns its sequence once it is on
	// disk. It fails with ErrBehind unless the last command or event has the
	// sequence expect. After any other error the record may be on the log or not.
	Append(ctx context.Context, r message.Record, expect uint64) (uint64, error)
	// AppendNext is Append for a record that depends on all records before it: the
	// last record of any kind must also have the sequence last.
	AppendNext(ctx context.Context, r message.Record, expect, last uint64) (uint64, error)
	// Follow delivers each record from a sequence on, in order, then each later one.
	// It returns when ctx ends or the log cannot be read. ErrStale means that it is
	// to be called again from the last sequence that was delivered.
	Follow(ctx context.Context, from uint64, deliver func(message.Record)) error
	// Read delivers the records from one sequence to another, both included.
	Read(ctx context.Context, from, to uint64, deliver func(message.Record)) error
	// Last returns the sequence of the newest record; 0 when there is none.
	Last(ctx context.Context) (uint64, error)
	// First returns the sequence of the oldest record; Last + 1 when there is none.
	First(ctx context.Context) (uint64, error)
	// Trim removes the records up to a sequence. The newest command or event must
	// remain: Append compares its sequence.
	Trim(ctx context.Context, upTo uint64) error
}

// HostLog is the log as one host sees it: what the host may read and write under its
// own credentials. Its calls retry until ctx ends, except after ErrRefused and
// ErrTaken.
type HostLog interface {
	// Lease asks for the host's one lease for a worker of this identity; all later
	// calls have this identity. ErrProtocol means that the site is of another
	// version, which may change. ErrTaken means that another worker holds the lease
	// and is not silent. All other calls of a worker that has lost the lease fail
	// with ErrTaken. The epoch grows each time that the lease passes to another
	// worker, and only then. By the epoch a worker that was away knows whether
	// another worker held the lease in between.
	Lease(ctx context.Context, worker string) (epoch uint64, err error)
	// GiveBack gives the lease back, so that another worker need not wait until this
	// worker is silent. The next worker that asks gets the lease; if that is this
	// worker, in the same epoch. GiveBack calls once, because a worker that ends
	// does not wait for a site. A late or repeated call takes the lease from no
	// later holder.
	GiveBack(ctx context.Context) error
	// Vacated delivers when another worker has given the lease back: it is time to
	// call Lease. A delivery may be lost, and there may be one too many.
	Vacated() <-chan struct{}
	// Newest returns the newest prepare of the environment of this host and the newest
	// command to the host, oldest first; fewer when there are fewer. It is never behind the log: a worker without
	// a journal would later execute again a command that is missing here.
	Newest(ctx context.Context) ([]message.Record, error)
	// Commands delivers the records of Newest, and then each new command. It may
	// deliver a command twice. It returns when ctx ends.
	Commands(ctx context.Context, deliver func(message.Record)) error
	// Reply writes the one reply to a command and returns once it is on disk.
	// ErrAnswered means that the log has a reply already; ErrRefused, that the run
	// is over or the reply is not acceptable.
	Reply(ctx context.Context, run uint64, reply message.Reply) error
	// Report stores a report in place of an earlier one. ErrRefused means that it is not
	// well-formed or not of the newest run, or that an older site does not know its kind.
	Report(ctx context.Context, r report.Report) error
	// LastReport says which report of a kind that is of no run was stored last.
	LastReport(ctx context.Context, kind *report.Kind) (report.Told, error)
	// Release returns the text of the release of a run that this host is a member of. The
	// caller compares it with the digest of the prepare.
	Release(ctx context.Context, run uint64) ([]byte, error)
	// Outputs returns the outputs of the steps that a run of which this host is a member has done.
	Outputs(ctx context.Context, run uint64) (map[string]string, error)
	// Alive and Progress send telemetry: it is stored nowhere and may be lost.
	Alive(a message.Alive) error
	Progress(p message.Progress) error
	// Pings delivers each request of the controller to call Alive at once. It delivers
	// one at the start, and one each time the connection was lost, in place of those
	// that were missed.
	Pings(ctx context.Context, deliver func()) error
	// Tasks delivers the tasks of the controller; the same task again until the
	// controller has its outcome.
	Tasks(ctx context.Context, deliver func(message.Task)) error
	// Outcome sends the outcome of a task; it may be lost.
	Outcome(o message.Outcome) error
	// Asked delivers each request of the controller for a report. It returns when ctx ends.
	Asked(ctx context.Context, deliver func(Ask)) error
}

// Ask is the request for a report of a kind now, of somebody who looks. Nothing depends on
// it, and it may be lost.
type Ask struct {
	Kind *report.Kind
	// Within is by when the host does so, at a moment of its own: hosts that are asked
	// together do not all fetch from a mirror at once.
	Within time.Duration
	// ByRelease means that the host makes its offers for Release from now on, or for the newest
	// that it finds if that is nil.
	ByRelease bool
	Release   *release.Pin
}

// HostEvents is the controller's side of telemetry and tasks, which are not on the
// log.
type HostEvents interface {
	// Listen delivers the telemetry of a tenant's hosts, and pings each host. It
	// returns when ctx ends.
	Listen(ctx context.Context, to Listener) error
	// Addressed returns a task for the process that holds the lease of its host; false while
	// this site knows of no such process.
	Addressed(t message.Task) (message.Task, bool)
	// Send sends a task to the process that it is addressed to; it may be lost.
	Send(t message.Task) error
	// Ask asks a host for a report; it may be lost.
	Ask(host string, a Ask) error
}

// Listener receives the telemetry of hosts. host is the host whose credentials sent
// it, whatever the body says. No method may block.
type Listener struct {
	Alive    func(host string, a message.Alive)
	Progress func(host string, p message.Progress)
	Outcome  func(host string, o message.Outcome)
}
