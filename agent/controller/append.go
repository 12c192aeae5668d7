package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/throttle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const (
	// firstPause and longestPause bound the wait after a failed write.
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
	// stuckAfter is how long the log may take no record before the controller says
	// that it is not ready.
	stuckAfter = 30 * time.Second
)

// appender writes to the log, one record at a time: the next one is written
// only after the last has come back through the log, so that all is folded in
// the order of the log. After a failure it waits, longer each time.
type appender struct {
	log    log.Log
	tenant string
	logger *slog.Logger
	now    func() time.Time
	at     func(label string)
	// last is the sequence up to which the log must be folded before the next
	// decision: what stood there at the start, and what was appended since.
	last uint64
	// pause is the wait before a failed append is tried again, retryAt its end.
	pause   time.Duration
	retryAt time.Time
	// failed is why the last append failed, failing since when none has come
	// through; zero while they do.
	failed  error
	failing time.Time
	// writing and asking are the troubles with writing and with asking for the
	// end of the log.
	writing, asking throttle.Failing
}

func newAppender(o Options) appender {
	return appender{log: o.Log, tenant: o.Tenant, logger: o.Logger, now: o.Now, at: o.At}
}

// entry is a record that is to be appended.
type entry struct {
	message.Record
	// label is what tests know the append by.
	label string
	// afterAll tells that the record depends on every record before it, replies
	// included.
	afterAll bool
}

func commandEntry(env *run.Environment, c message.Command) entry {
	current, kind, environment := env.Current(), message.CommandHost, ""
	if c.Action == message.Prepare {
		kind, environment = message.CommandAll, env.Name
	}
	back := ""
	if c.Action == message.Prepare {
		back = current.RollsBack.String()
	}
	return entry{
		Record: message.Record{Kind: kind, Release: pinOf(current, c), Rollback: back, Environment: environment, Host: c.Host, Run: current.ID, Epoch: current.Epoch(c.Host), Checks: current.ChecksHosts(), Body: c.Encode()}, label: string(c.Action),
	}
}

// pinOf is the release that a command names: that of the run, for prepare; empty for none.
func pinOf(current *run.State, c message.Command) string {
	if c.Action != message.Prepare || current.Release == nil {
		return ""
	}
	return current.Release.Ref().String()
}

// eventEntry is an event of a run; 0 is none. What opens a run depends on who is
// out of service, and so on every answer before it, unless it says as of which record it is.
func eventEntry(id uint64, e message.Event) entry {
	opened, opens := e.(message.Opened)
	return entry{
		Record: message.Record{Kind: message.EventRecord, Run: id, Body: message.EncodeEvent(e)}, label: message.Name(e), afterAll: opens && opened.RosterAsOf == 0,
	}
}

// append writes an entry after all that a ledger has folded, and reports whether it
// is on the log.
func (a *appender) append(ctx context.Context, e entry, after *run.Ledger) bool {
	a.at("before " + e.label)
	seq, err := a.write(ctx, e, after)
	if err == nil {
		a.at("after " + e.label)
		a.last = seq
		a.works()
		return true
	}
	a.failed = err
	if a.failing.IsZero() && !errors.Is(err, log.ErrBehind) {
		a.failing = a.now()
	}
	a.catchUp(ctx, err)
	a.pause = min(max(2*a.pause, firstPause), longestPause)
	a.retryAt = a.now().Add(a.pause)
	return false
}

func (a *appender) write(ctx context.Context, e entry, after *run.Ledger) (seq uint64, err error) {
	if e.afterAll {
		seq, err = a.log.AppendNext(ctx, e.Record, after.LastCommand, after.LastSeq)
	} else {
		seq, err = a.log.Append(ctx, e.Record, after.LastCommand)
	}
	if !errors.Is(err, log.ErrBehind) {
		a.writing.Note(a.logger, a.now(), err, "cannot write to the log; trying again", "the log can be written to again", "tenant", a.tenant)
	}
	return seq, err
}

// catchUp has the next decision wait for what is on the log already: after
// ErrBehind there is a command that was not seen, and after any other error
// the record itself may be there.
func (a *appender) catchUp(ctx context.Context, cause error) {
	last, err := a.log.Last(ctx)
	a.asking.Note(a.logger, a.now(), err, "cannot ask for the end of the log; trying again", "the end of the log can be asked for again", "tenant", a.tenant)
	if err != nil {
		return
	}
	if errors.Is(cause, log.ErrBehind) {
		a.logger.Info("another controller has written to the log", "tenant", a.tenant, "last", last)
	}
	a.last = max(a.last, last)
}

// works notes that a record was written, or that none has to be any more.
func (a *appender) works() { a.pause, a.retryAt, a.failing = 0, time.Time{}, time.Time{} }

// alive notes that a record of a controller has come back through the log.
func (a *appender) alive() { a.failing = time.Time{} }

// stuck returns why the log has taken no record for too long.
func (a *appender) stuck() error {
	if a.failing.IsZero() || a.now().Sub(a.failing) < stuckAfter {
		return nil
	}
	return fmt.Errorf("the log has taken no record since %s: %w", a.failing.UTC().Format(time.RFC3339), a.failed)
}

// jump follows a jump of the clock: the log fails for as long as before it.
func (a *appender) jump(c clockJump) {
	a.retryAt = time.Time{}
	if !a.failing.IsZero() {
		a.failing = a.failing.Add(c.by())
	}
}
