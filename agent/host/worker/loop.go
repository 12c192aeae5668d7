package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// loop takes one action after the other, as the state decides by what the worker sees. What the
// action needs to be on disk is written before.
func (w *Worker) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		now := w.lease.now()
		before := w.state
		decision := before.Next(w.Now(), w.see(now))
		w.promiseAction(decision.Do)
		if err := w.remember(ctx, decision.State); err != nil {
			return err
		}
		if err := w.do(ctx, now, decision.Do, before); err != nil && !errors.Is(err, errMoved) {
			return err
		}
	}
	return ctx.Err()
}

func (w *Worker) do(ctx context.Context, now leaseTerm, do decide.Do, before decide.State) error {
	switch do {
	case decide.DoNote:
		return nil
	case decide.DoInterrupted:
		w.tellInterrupted(before)
		return nil
	case decide.DoAccept:
		for _, v := range before.Boots.Waits() {
			if !slices.Contains(w.state.Boots.Waits(), v) {
				w.Log.Info("somebody has accepted the version, which is not on trial any more", "host", w.Host, "version", v)
			}
		}
		return nil
	case decide.DoConfirm:
		return w.confirmBoot(ctx, now)
	case decide.DoSettle, decide.DoDrop:
		p := *w.passed
		w.passed = nil
		if do == decide.DoDrop {
			close(p.done)
			return nil
		}
		return w.settle(ctx, p)
	case decide.DoRetire:
		return ErrReplaced
	case decide.DoWait:
		return w.waitForLease(ctx, now)
	case decide.DoTakeOver:
		return w.takeOver(ctx, now)
	case decide.Nothing:
		return w.receive(ctx, now)
	case decide.DoAwaitReboot:
		return w.awaitReboot(ctx)
	case decide.DoAwaitRetry:
		return w.awaitRetry(ctx, now)
	case decide.DoAwaitIdle:
		return w.awaitIdle(ctx, now)
	case decide.DoUpgrade:
		w.given = w.askOutputs(ctx)
		defer func() { w.given = nil }()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if next, deferred := before.Deferred(w.notNow()); deferred {
			return w.remember(ctx, next) // It was idle before the state was written and the site asked, which may take long.
		}
	case decide.DoReboot:
		if before.Reboot != decide.NotAsked {
			w.Log.Warn("the worker was ended while it asked for the reboot, and the machine is still up: it asks once more", "host", w.Host, "run", before.Run)
		}
	}
	return w.act(ctx, now, do)
}

// waitForLease waits until the state of the lease changes.
func (w *Worker) waitForLease(ctx context.Context, now leaseTerm) error {
	if j := w.state; now.state == decide.Taken && j.Phase == decide.Answering {
		w.Log.Warn("the reply was refused", "host", w.Host, "run", j.Run, "action", j.Action, "result", j.Result.String(), "error", log.ErrTaken)
	}
	waiting, end := w.waiting(now.ctx)
	defer end()
	<-waiting.Done()
	return ctx.Err()
}

// receive waits for a command and writes its first phase to the journal. It returns without
// one when there is something else to decide by.
func (w *Worker) receive(ctx context.Context, now leaseTerm) error {
	waiting, end := w.waiting(now.ctx)
	defer end()
	r, found := w.commands.take(waiting, w.passDue)
	if !found {
		return ctx.Err()
	}
	if w.state.Foreign(r) && w.foreignLog != r.Log {
		w.foreignLog = r.Log
		w.Log.Warn("the log is not the one in this host's journal", "host", w.Host, "log", r.Log, "known", w.state.Log, "run", w.state.Run)
	}
	seen := w.see(now)
	if seen.Confirms && r.Checks {
		seen.Prepared, _ = readKeptPlan(w.planPath()) // Without its plan an upgrade does not begin.
	}
	next, refused := w.state.Receive(r, seen, w.Now())
	if refused != nil {
		w.ignore(r, refused)
		return nil
	}
	w.Log.Info("command accepted", "host", w.Host, "run", next.Run, "action", next.Action)
	return w.remember(ctx, next)
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
	next := w.state.TakeOver(newest, w.see(now), w.Now())
	switch {
	case w.state.Blank && next.Phase != decide.Idle:
		w.Log.Warn("no journal found in a run", "host", w.Host, "run", next.Run, "action", next.Action, "dir", w.Dir)
	case !w.state.Blank:
		w.Log.Warn("this worker works for the host again, after another one", "host", w.Host, "run", next.Run, "action", next.Action, "left", w.state.Phase)
	}
	return w.remember(ctx, next)
}

// takeOverReason is the reason to take over, for an error.
func (w *Worker) takeOverReason() string {
	if w.state.Blank {
		return ", which has no journal,"
	}
	return ", which had another worker,"
}

// Ignored returns the number of ignored commands and tasks.
func (w *Worker) Ignored() uint64 { return w.ignoredCount.Load() }

// ignore logs once per command why it is ignored: as a warning if somebody may
// wait for its answer.
func (w *Worker) ignore(r message.Record, reason error) {
	level := slog.LevelWarn
	this := position{r.Log, r.Seq}
	if errors.Is(reason, decide.ErrAccepted) || errors.Is(reason, decide.ErrOtherHosts) || w.ignored[r.Kind] == this {
		level = slog.LevelDebug
	}
	w.ignored[r.Kind] = this
	// The reason may quote the command, so bound its length.
	text := message.CleanText(reason.Error())
	w.Log.Log(context.Background(), level, "command ignored", "host", w.Host, "command", r.Seq, "reason", text, "ignored", w.ignoredCount.Add(1))
}
