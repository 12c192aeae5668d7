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

// unknownPast is what a host answers when it cannot know whether it carried
// out a command.
const unknownPast = "this host has no journal, so " + pastUnknown

// anothersPast is what a host answers when another of its workers may have
// carried out a command.
const anothersPast = "another worker worked for this host meanwhile, so " + pastUnknown

// unknown reports whether a result tells that what was done in a run is not
// known. Such a run is not gone on with.
func unknown(result string) bool { return result == unknownPast || result == anothersPast }

// Blank returns the first journal of a host that has none, because it is new or
// because its journal is lost, from what the log holds for it (log.HostLog.Newest). None
// of those commands is carried out: the host may have done so before
// (design.md 5, invariant 2). Where one of them may still wait for its answer,
// the answer is an error, which the log refuses if there is one already.
func Blank(records []message.Record, host string, now time.Time) Journal {
	var position Journal
	for _, r := range records {
		if r.Seq > position.Seq {
			position.Seq, position.Log = r.Seq, r.Log
		}
	}
	open, ok := openRun(records, host, now)
	if !ok {
		return position
	}
	open.Seq, open.Log = position.Seq, position.Log
	open.Phase, open.Result = Answering, unknownPast
	return open
}

// TakeOver returns the journal of a worker that takes the lease over when another
// one may have held it meanwhile: that of a host without a journal, because what
// the other worker did is not known either. No position is given up.
func (j Journal) TakeOver(records []message.Record, host string, now time.Time) Journal {
	next := Blank(records, host, now)
	if next.Phase != Idle {
		next.Result = anothersPast
	}
	if next.Seq == 0 {
		next.Log = j.Log
	}
	if next.Log == j.Log {
		next.Seq = max(next.Seq, j.Seq)
	}
	return next
}

// takeOver begins anew: it writes the first journal of a host that has none, or
// the first one after another worker.
func (w *Worker) takeOver(ctx context.Context, now leaseTerm) error {
	w.At("before newest")
	newest, err := w.HostLog.Newest(now.ctx)
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
	if err := w.save(ctx, next); err != nil {
		return err
	}
	if w.blank {
		w.blank = false
		close(w.journaled)
	}
	return nil
}

// takeOverReason is the reason to begin anew, for an error.
func (w *Worker) takeOverReason() string {
	if w.blank {
		return ", which has no journal,"
	}
	return ", which had another worker,"
}

// openRun returns the run among the records that this host is a member of and
// that has not ended, with the host's newest command.
func openRun(records []message.Record, host string, now time.Time) (run Journal, ok bool) {
	for _, r := range records {
		command, err := message.DecodeCommand(r.Body)
		switch {
		case err != nil:
		case command.Action == message.Prepare:
			run = Journal{Run: r.Seq, NotAfter: command.NotAfter, Action: command.Action}
			ok = slices.Contains(command.Hosts, host) && now.Before(command.NotAfter)
		case ok && command.Host == host && r.Run == run.Run:
			run.Action = command.Action
		}
	}
	return run, ok
}
