package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// unknownPast is what a host answers when it cannot know whether it carried
// out a command.
const unknownPast = "this host has no journal, so " + message.PastUnknown

// anothersPast is what a host answers when another of its workers may have
// carried out a command.
const anothersPast = "another worker worked for this host meanwhile, so " + message.PastUnknown

// unknown reports whether a result tells that what was done in a run is not
// known. Such a run is not gone on with.
func unknown(result string) bool { return result == unknownPast || result == anothersPast }

// Newborn returns the first journal of a host that has none, be it new or be
// its journal lost, from what the log holds for it (log.HostLog.Newest). None
// of those commands is carried out: the host may have done so before
// (design.md 5, invariant 2). Where one of them may still wait for its answer,
// the answer is an error, which the log refuses if there is one already.
func Newborn(records []message.Record, host string, now time.Time) Journal {
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

// Succeed returns the journal of a worker that comes into the seat when another
// one may have had it meanwhile: that of a newborn host, because what the
// other did is not known either. No position is given up.
func (j Journal) Succeed(records []message.Record, host string, now time.Time) Journal {
	next := Newborn(records, host, now)
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

// succeed begins anew: it writes the first journal of a host that has none, or
// the first one after another worker.
func (w *Worker) succeed(ctx context.Context, now seating) error {
	w.At("before newest")
	newest, err := w.Station.Newest(now.ctx)
	if err != nil {
		return w.yield(now, fmt.Errorf("cannot ask the log where this host%s begins: %w", w.orphan(), err))
	}
	w.At("after newest")
	next := w.journal.Succeed(newest, w.Host, w.Now())
	if w.newborn {
		next = Newborn(newest, w.Host, w.Now())
	}
	next.Tenure = now.tenure
	switch {
	case w.newborn && next.Phase != Idle:
		w.Log.Warn("no journal found in a run", "host", w.Host, "run", next.Run, "action", next.Action, "dir", w.Dir)
	case !w.newborn:
		w.Log.Warn("this worker works for the host again, after another one", "host", w.Host, "run", next.Run, "action", next.Action, "left", w.journal.Phase)
	}
	if err := w.save(ctx, next); err != nil {
		return err
	}
	if w.newborn {
		w.newborn = false
		close(w.born)
	}
	return nil
}

// orphan is the reason to begin anew, for an error.
func (w *Worker) orphan() string {
	if w.newborn {
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
