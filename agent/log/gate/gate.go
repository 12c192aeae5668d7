package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
)

// MaxReply bounds a reply, in bytes: its text and what JSON makes of it.
const MaxReply = 8 * message.MaxText

// CallTimeout bounds how long a gate works on one call. A host waits twice as
// long for the response.
const CallTimeout = 5 * time.Second

// OpenCalls is how many calls a process of a host may have open. A site may drop calls
// beyond twice as many.
const OpenCalls = 8

// Log is what a gate needs of a tenant's log.
type Log interface {
	// Identity returns the identity of the log (log.Log).
	Identity() string
	// AppendReply writes a reply; log.ErrAnswered means that the log
	// has a reply of this host to this command.
	AppendReply(ctx context.Context, r message.Record) error
	// NewestCommand returns the sequence of the newest command or event, and
	// OldestPrepare that of the oldest of the newest prepares of the environments; 0
	// when there is none. Both ask the log itself, because this gate may be behind.
	NewestCommand(ctx context.Context) (uint64, error)
	OldestPrepare(ctx context.Context) (uint64, error)
	// FollowCommands delivers each command and event from a sequence on, in
	// order, then each later one. log.ErrStale means that some may be missing.
	FollowCommands(ctx context.Context, from uint64, deliver func(message.Record)) error
	// Read delivers the records from one sequence to another (log.Log).
	Read(ctx context.Context, from, to uint64, deliver func(message.Record)) error
}

// Keeper stores the reports and the lease of each host. Of each kind of report and of the lease
// there is a single entry per host, so that a host cannot fill the store; the reports of a run
// go when there are newer ones. The key is the host's name as one subject token.
type Keeper interface {
	// PutReport stores a report in place of an earlier one.
	PutReport(ctx context.Context, tenant, key string, r report.Report) error
	// Report returns the report that is stored; report.ErrNotFound when there is none, and
	// report.ErrDamaged when it cannot be read.
	Report(ctx context.Context, tenant, key string, id report.ID) (report.Kept, error)
	// PutLease writes an entry if its revision is still base (0: there never was an
	// entry), and returns the new revision. An error means that the write was
	// refused, or that its result is unknown: the caller reads the entry before it
	// writes again.
	PutLease(ctx context.Context, tenant, key string, body []byte, base uint64) (revision uint64, err error)
	// Lease reads an entry and its revision as they were last written, not from a
	// copy that may be behind. The body is empty when there is no entry.
	Lease(ctx context.Context, tenant, key string) (body []byte, revision uint64, err error)
	// WatchLeases calls see with each entry, now and after each change. It calls see
	// with an empty key after the entries that existed at the start, and with no
	// body when an entry was deleted. It returns when ctx ends or the watch fails;
	// log.ErrStale means that some changes may be missing.
	WatchLeases(ctx context.Context, tenant string, see func(key string, body []byte, revision uint64)) error
}

// Options are the parts that a gate needs.
type Options struct {
	Tenant string
	Log    Log
	Keeper Keeper
	// Secrets opens the outputs of steps; nil means that this site has none.
	Secrets Secrets
	// Push sends a Push to all workers of a host, or to all hosts if it names
	// none. It may be lost.
	Push func(host string, body []byte)
	// Warn is called with the reason when the gate starts a watch again; it may be
	// nil.
	Warn func(error)
	// Refused is called when a worker is refused the lease of its host, with what an
	// operator should do; it may be nil.
	Refused func(host string, kind message.WarningKind, why string)
	// Stored is called once a report of a host is stored, also if it was before; it may be nil.
	Stored func(host string, id report.ID)
}

// Gate is a gate of one tenant.
type Gate struct {
	Options
	leases leases
	cache  cache
	daily  daily
	ready  chan struct{}
}

// New makes a gate. It answers calls once it is ready.
func New(o Options) *Gate {
	if o.Refused == nil {
		o.Refused = func(string, message.WarningKind, string) {}
	}
	if o.Stored == nil {
		o.Stored = func(string, report.ID) {}
	}
	g := &Gate{Options: o, ready: make(chan struct{})}
	g.leases = leases{gate: g, byHost: map[string]*held{}, listening: time.Now()}
	g.cache = cache{gate: g}
	return g
}

// Ready is closed once the gate has read the leases and commands that existed when it
// started.
func (g *Gate) Ready() <-chan struct{} { return g.ready }

// Run keeps the leases and the command cache up to date until ctx ends.
func (g *Gate) Run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	follow := []func(context.Context, func()) error{g.leases.follow, g.cache.follow}
	var parts sync.WaitGroup
	var behind atomic.Int32
	behind.Store(int32(len(follow)))
	for _, part := range follow {
		loaded := sync.OnceFunc(func() {
			if behind.Add(-1) == 0 {
				close(g.ready)
			}
		})
		parts.Go(func() { stop(log.Again(ctx, func() error { return part(ctx, loaded) }, g.Warn)) })
	}
	parts.Wait()
	return context.Cause(ctx)
}

// Reconnected is called when the connection to the hosts is back after it was lost:
// the gate has not heard the hosts in between, and they may have missed pushes.
func (g *Gate) Reconnected() {
	g.leases.deaf()
	g.hint()
}

// Heard notes a heartbeat and reports whether it counts. To a worker without the
// lease it pushes the lease.
func (g *Gate) Heard(host, worker, incarnation string) bool {
	l, holds := g.leases.check(host, worker, incarnation)
	if !holds {
		g.push(host, Push{Lease: &l})
	}
	return holds
}

// Answer carries out a call of a host. Calls other than lease are refused unless the
// caller holds the host's lease.
func (g *Gate) Answer(ctx context.Context, host string, q Request) Response {
	verb := q.Verb[0]
	if verb == verbLease && len(q.Verb) == 2 {
		return g.acquire(ctx, host, q)
	}
	l, holds, err := g.leases.holder(ctx, host, q.Worker, q.Incarnation)
	switch {
	case err != nil:
		return failed(err)
	case !holds:
		return taken(l.refusal(q.Worker))
	}
	switch {
	case verb == verbGiveBack && len(q.Verb) == 2:
		return g.leases.giveBack(ctx, host, q.Worker, q.Incarnation, q.Verb[1])
	case verb == verbReply && q.Log != "" && q.Log != g.Log.Identity():
		return refused("the command is of log %.80q, and this is log %s", q.Log, g.Log.Identity())
	case verb == verbReply && len(q.Verb) == 3:
		return g.reply(ctx, message.Record{
			Kind: message.ReplyRecord, Host: host, Action: message.Action(q.Verb[2]), Epoch: l.Epoch, Outcome: q.Outcome.Beside(), Class: q.Class, UpToDate: q.UpToDate, Body: q.Body,
		}, q.Verb[1])
	case verb == verbReport && len(q.Verb) > 1:
		return g.report(ctx, host, q.Verb[1:], q.Body)
	case verb == verbLastReport && len(q.Verb) == 2:
		return g.lastReport(ctx, host, q.Verb[1])
	case verb == verbRelease && len(q.Verb) == 2:
		return g.release(ctx, host, q.Verb[1])
	case verb == verbOutputs && len(q.Verb) == 2:
		return g.outputs(ctx, host, q.Verb[1])
	case verb == verbNewest && len(q.Verb) == 1:
		return g.newest(ctx, host, q)
	case verb == verbNewest && len(q.Verb) == 2 && q.Verb[1] == current:
		if err := g.cache.current(ctx); err != nil {
			return failed(err)
		}
		return g.newest(ctx, host, q)
	}
	return refused("there is no call %q", strings.Join(q.Verb, "."))
}

// acquire grants the lease if this site speaks a protocol of the worker.
func (g *Gate) acquire(ctx context.Context, host string, q Request) Response {
	r := Response{Refused: true}
	if _, err := format.Agree(q.Protocol); err == nil {
		r = g.leases.acquire(ctx, host, q.Worker, q.Incarnation, q.Verb[1])
	} else {
		r.Error = err.Error()
		g.Incompatible(host, err)
	}
	r.Protocol = format.Protocol
	return r
}

// newest returns the newest commands to a host. A worker that would misread those of its run has taken
// the place of a newer one since the run was opened.
func (g *Gate) newest(ctx context.Context, host string, q Request) Response {
	commands, misread := g.cache.newest(host, q)
	if misread != "" {
		g.Refused(host, message.WarnProtocol, misread+"; upgrade the agent")
	}
	for i := range commands {
		if c := &commands[i]; c.Kind == message.CommandHost {
			c.Outputs = g.hasOutputs(ctx, c.Run)
		}
	}
	return Response{Log: g.Log.Identity(), Commands: commands}
}

// Incompatible is called for a host whose worker has no protocol in common with this
// site.
func (g *Gate) Incompatible(host string, why error) {
	g.Refused(host, message.WarnProtocol, why.Error()+"; upgrade the older of the two, worker or site")
}

// reply appends a host's reply to a command of the newest run. Older runs take
// no more replies, so that a host adds at most three records to a run.
func (g *Gate) reply(ctx context.Context, r message.Record, run string) Response {
	id, err := strconv.ParseUint(run, 10, 64)
	switch {
	case err != nil || !r.Action.Known():
		return refused("%q of run %q is no command", r.Action, run)
	case len(r.Body) > MaxReply:
		return refused("a reply has at most %d bytes, this one has %d", MaxReply, len(r.Body))
	}
	r.Run = id
	switch commanded, err := g.commanded(ctx, r); {
	case err != nil:
		return failed(err)
	case !commanded:
		// It is a run before, or a copy of the site was put back that lacks the command:
		// there the reply would stand in the way of the one that the host gives when it is
		// commanded again.
		return refused("the newest run has no command %s to this host under number %d", r.Action, id)
	}
	switch err := g.Log.AppendReply(ctx, r); {
	case errors.Is(err, log.ErrAnswered):
		return Response{Answered: true}
	case err != nil:
		return failed(err)
	}
	return Response{}
}

// isNewest reports whether a run is the newest of the environment of a host. The cache may be
// behind.
func (g *Gate) isNewest(ctx context.Context, host string, run uint64) (bool, error) {
	newest, known := g.cache.isNewest(host, run)
	if newest || known {
		return newest, nil
	}
	if err := g.cache.current(ctx); err != nil {
		return false, err
	}
	newest, _ = g.cache.isNewest(host, run)
	return newest, nil
}

// commanded reports whether the log has the command of a reply. The cache may be behind.
func (g *Gate) commanded(ctx context.Context, r message.Record) (bool, error) {
	if g.cache.commanded(r) {
		return true, nil
	}
	if err := g.cache.current(ctx); err != nil {
		return false, err
	}
	return g.cache.commanded(r), nil
}

// takesOfRun reports whether a report of a run is stored: one of the newest run, or an output in
// place of one that is kept, as of a host that was released and still carries out an earlier run.
// So a host cannot fill the store, nor change what it has planned.
func (g *Gate) takesOfRun(ctx context.Context, host string, id report.ID) (bool, error) {
	if newest, err := g.isNewest(ctx, host, id.Run); newest || err != nil || id.Kind != report.Output {
		return newest, err
	}
	switch _, err := g.Keeper.Report(ctx, g.Tenant, log.Token(host), id); {
	case err == nil, errors.Is(err, report.ErrDamaged):
		return true, nil
	case errors.Is(err, report.ErrNotFound):
		return false, nil
	default:
		return false, err
	}
}

// report stores a report of a host.
func (g *Gate) report(ctx context.Context, host string, words []string, body []byte) Response {
	r, err := report.Parse(words, body)
	if err != nil {
		return refused("%v", err)
	}
	if r.Kind.OfRun {
		switch takes, err := g.takesOfRun(ctx, host, r.ID); {
		case err != nil:
			return failed(err)
		case !takes:
			return refused("run %d is not the newest", r.Run)
		}
	}
	if !g.daily.takes(host, r, time.Now()) {
		return refused("the host reports too much: at most %d bytes of its %s in a day", r.Kind.MaxDay, r.Kind.Name)
	}
	if err := g.Keeper.PutReport(ctx, g.Tenant, log.Token(host), r); err != nil {
		return failed(err)
	}
	g.Stored(host, r.ID)
	return Response{}
}

// lastReport says which report of a kind is stored. The host does not need the report itself.
func (g *Gate) lastReport(ctx context.Context, host, name string) Response {
	kind := report.Named(name)
	if kind == nil || kind.OfRun {
		return refused("there is no report %.20q of a host", name)
	}
	var told report.Told
	switch kept, err := g.Keeper.Report(ctx, g.Tenant, log.Token(host), report.ID{Kind: kind}); {
	case err == nil:
		told = kept.Told()
	case !errors.Is(err, report.ErrNotFound) && !errors.Is(err, report.ErrDamaged):
		return failed(err)
	}
	body, err := json.Marshal(told)
	if err != nil {
		return failed(err)
	}
	return Response{Body: body}
}

// push sends a push to the workers of a host, or of all hosts. A push may be lost:
// each host asks for its commands again when it or a gate has reconnected.
func (g *Gate) push(host string, p Push) { g.Push(host, p.encode()) }

// hint makes all hosts ask for the newest commands.
func (g *Gate) hint() { g.push("", Push{Hint: true}) }

func failed(err error) Response { return Response{Error: err.Error()} }

func refused(format string, args ...any) Response {
	return Response{Refused: true, Error: fmt.Sprintf(format, args...)}
}

func taken(why string) Response { return Response{Taken: true, Error: why} }
