package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// pastUnknown ends the text of both answers below.
const pastUnknown = "what it did before is unknown"

// unknownPast is the reply of a host that cannot know whether it has executed a
// command, because it has no journal.
const unknownPast = "this host has no journal, so " + pastUnknown

// anothersPast is the reply of a host when another of its workers may have executed
// a command.
const anothersPast = "another worker worked for this host meanwhile, so " + pastUnknown

// lostPast is the reply of a host to a run of a log whose end was lost, unless the run
// is the one of the host's journal.
const lostPast = "the site was restored from a backup and does not know all that this host did, so " + pastUnknown

// unknown reports whether a result says that the host does not know what was done
// in a run. The host executes no further command of such a run.
func unknown(result string) bool {
	return result == unknownPast || result == anothersPast || result == lostPast || isLostPlan(result)
}

// Blank returns the first journal of a host that is new or has lost its journal.
// records are the newest commands to the host on the log (log.HostLog.Newest). The
// host executes none of them, because it may have executed them before (design.md 5,
// invariant 2). If a run may still wait for the host's reply, the reply is an error;
// the log refuses it if the host has replied already.
func Blank(records []message.Record, host string, now time.Time) Journal {
	var position Journal
	for _, r := range records {
		if r.Seq > position.Seq {
			position.Seq, position.At, position.Log = r.Seq, timeOf(r), r.Log
		}
	}
	open, ok := openRun(records, host, now)
	if !ok {
		return position
	}
	open.Seq, open.At, open.Log = position.Seq, position.At, position.Log
	open.Phase, open.Result = Answering, unknownPast
	return open
}

// TakeOver returns the journal of a worker that gets the lease when another worker
// may have held it in between. It is the journal of a host without one, because this
// worker does not know what the other worker did. The position never goes back.
func (j Journal) TakeOver(records []message.Record, host string, now time.Time) Journal {
	next := Blank(records, host, now)
	if next.Phase != Idle {
		next.Result = anothersPast
	}
	if next.Seq == 0 {
		next.Log = j.Log
	}
	if next.Log == j.Log && next.Seq < j.Seq {
		next.Seq, next.At = j.Seq, j.At
	}
	return next
}

// takeOver writes the first journal of a host that has none, or the first journal
// after another worker.
func (w *Worker) takeOver(ctx context.Context, now leaseTerm) error {
	w.At("before newest")
	var newest []message.Record
	err := w.bounded(now.ctx, func(ctx context.Context) (err error) {
		newest, err = w.HostLog.Newest(ctx)
		return err
	})
	if err != nil {
		return w.yield(now, fmt.Errorf("cannot ask the log where this host%s begins: %w", w.takeOverReason(), err))
	}
	w.At("after newest")
	next := w.journal.TakeOver(newest, w.Host, w.Now())
	if w.blank {
		next = Blank(newest, w.Host, w.Now())
	}
	next.Epoch = now.epoch
	switch {
	case w.blank && next.Phase != Idle:
		w.Log.Warn("no journal found in a run", "host", w.Host, "run", next.Run, "action", next.Action, "dir", w.Dir)
	case !w.blank:
		w.Log.Warn("this worker works for the host again, after another one", "host", w.Host, "run", next.Run, "action", next.Action, "left", w.journal.Phase)
	}
	if w.confirms() && (!w.blank || w.boots.Trial == nil) {
		if err := w.keepTrial(ctx, w.boots.takenOver(checkedUntil(newest, w.Host, w.Now()))); err != nil {
			return err
		}
	}
	if err := w.save(ctx, next); err != nil {
		return err
	}
	if w.blank {
		w.blank = false
		close(w.journaled)
	}
	return nil
}

// takeOverReason is the reason to take over, for an error.
func (w *Worker) takeOverReason() string {
	if w.blank {
		return ", which has no journal,"
	}
	return ", which had another worker,"
}

// checkedUntil returns the not-after of the run under way if it has sent this host an
// upgrade and checks the host after that; zero otherwise.
func checkedUntil(records []message.Record, host string, now time.Time) time.Time {
	run, open := openRun(records, host, now)
	upgraded := func(r message.Record) bool { return r.Kind == message.CommandHost && r.Run == run.Run && r.Checks }
	if !open || run.Action == message.Prepare || !slices.ContainsFunc(records, upgraded) {
		return time.Time{}
	}
	return run.NotAfter
}

// openRun returns the journal of the newest run if this host is a member and the
// run has not ended; its action is that of the host's newest command.
func openRun(records []message.Record, host string, now time.Time) (run Journal, ok bool) {
	for _, r := range records {
		command, err := message.DecodeCommand(r.Body)
		switch {
		case err != nil:
		case command.Action == message.Prepare:
			run = Journal{Run: r.Seq, NotAfter: command.NotAfter, RunAt: timeOf(r), Action: command.Action}
			ok = slices.Contains(command.Hosts, host) && now.Before(command.NotAfter)
		case ok && command.Host == host && r.Run == run.Run:
			run.Action = command.Action
		}
	}
	return run, ok
}
