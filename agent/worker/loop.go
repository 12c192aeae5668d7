package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// loop does what the journal says and the lease allows, one thing after the
// other, and takes a command only when there is nothing to do.
func (w *Worker) loop(ctx context.Context) error {
	for ctx.Err() == nil {
		now := w.lease.now()
		if err := w.noteAway(ctx, now); err != nil {
			return err
		}
		do := w.journal.allow(w.journal.Next(w.fresh, w.bootID), now.state, w.away(now))
		if err := w.do(ctx, now, do); err != nil && !errors.Is(err, errMoved) {
			return err
		}
	}
	return ctx.Err()
}

// away reports whether another worker has held the lease since the journal was
// written under it. A worker without a journal cannot know better.
func (w *Worker) away(now leaseTerm) bool {
	return w.blank || w.journal.Away || now.state == held && now.epoch != w.journal.Epoch
}

// noteAway writes down that another worker holds the lease, so that a worker that
// is started again when the lease is free knows. The phase in hand stays as it was,
// interrupted or not.
func (w *Worker) noteAway(ctx context.Context, now leaseTerm) error {
	if now.state != taken || w.blank || w.journal.Away {
		return nil
	}
	next := w.journal
	next.Away = true
	return w.write(ctx, next)
}

func (w *Worker) do(ctx context.Context, now leaseTerm, do Do) error {
	switch do {
	case DoWait:
		return w.stand(ctx, now)
	case DoTakeOver:
		return w.takeOver(ctx, now)
	case Nothing:
		return w.receive(ctx, now)
	case DoReboot:
		return w.reboot(ctx)
	default:
		return w.step(ctx, now, do)
	}
}

// stand waits for the worker to stand otherwise.
func (w *Worker) stand(ctx context.Context, now leaseTerm) error {
	if j := w.journal; now.state == taken && j.Phase == Answering {
		w.Log.Warn("the reply was refused", "host", w.Host, "run", j.Run, "action", j.Action, "result", j.Result, "error", log.ErrTaken)
	}
	<-now.ctx.Done()
	return ctx.Err()
}

// yield returns what a failed call to the site means: errMoved when the lease
// is lost, be it by this call or during it.
func (w *Worker) yield(now leaseTerm, err error) error {
	if now.ctx.Err() == nil && errors.Is(err, log.ErrTaken) {
		w.standBy(err)
	}
	if now.ctx.Err() != nil {
		return errMoved
	}
	return err
}

// receive waits for a command and writes down that it is taken up.
func (w *Worker) receive(ctx context.Context, now leaseTerm) error {
	r, err := w.commands.take(now.ctx)
	if err != nil {
		return w.yield(now, err)
	}
	if w.journal.foreign(r) && w.strange != r.Log {
		w.strange = r.Log
		w.Log.Warn("this host knew another log", "host", w.Host, "log", r.Log, "known", w.journal.Log, "run", w.journal.Run)
	}
	next, refused := w.journal.Receive(r, w.Host, w.bootID, w.Now())
	if refused != nil {
		w.ignore(r, refused)
		return nil
	}
	w.Log.Info("command taken up", "host", w.Host, "run", next.Run, "action", next.Action)
	return w.save(ctx, next)
}

// Ignored returns how many commands and tasks were left alone.
func (w *Worker) Ignored() uint64 { return w.count.Load() }

// ignore says once per command why it is left alone, and loud where somebody
// waits for an answer.
func (w *Worker) ignore(r message.Record, reason error) {
	level := slog.LevelWarn
	this := place{r.Log, r.Seq}
	if errors.Is(reason, errTakenUp) || errors.Is(reason, errOtherHosts) || w.ignored[r.Kind] == this {
		level = slog.LevelDebug
	}
	w.ignored[r.Kind] = this
	// What was sent must not fill the log.
	text := message.CleanText(reason.Error())
	w.Log.Log(context.Background(), level, "command ignored", "host", w.Host, "command", r.Seq, "reason", text, "ignored", w.count.Add(1))
}

// step does one thing and writes down what came of it. When ctx ends in the
// middle nothing is written: the journal's phase stands, and what really
// happened is asked for at the next start.
func (w *Worker) step(ctx context.Context, now leaseTerm, do Do) error {
	w.At("before " + string(do))
	outcome, err := w.perform(ctx, now, do)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if do == DoReply && err != nil {
		// The journal must not call it answered.
		return w.yield(now, err)
	}
	w.At("after " + string(do))
	next := w.journal.After(do, outcome, err, w.Now())
	if err != nil {
		w.Log.Warn("step failed", "host", w.Host, "run", next.Run, "step", do, "error", err)
	}
	return w.save(ctx, next)
}

func (w *Worker) perform(ctx context.Context, now leaseTerm, do Do) (strategy.Outcome, error) {
	if do == DoBooted {
		return 0, nil
	}
	if do == DoReply {
		return 0, w.reply(now.ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, w.Limits.Step, fmt.Errorf("%s took longer than %s", do, w.Limits.Step))
	defer cancel()
	outcome, err := w.call(limited, do)
	return outcome, overdue(limited, err)
}

// overdue says in the words of a limit what it ended. What came of a call
// otherwise counts however late it is known: this process may have been stopped
// while the call ended.
func overdue(limited context.Context, err error) error {
	if err != nil && errors.Is(err, limited.Err()) {
		err = context.Cause(limited)
	}
	return err
}

func (w *Worker) call(ctx context.Context, do Do) (strategy.Outcome, error) {
	job := w.job()
	switch do {
	case DoPrepare:
		return 0, w.Strategy.Prepare(ctx, job)
	case DoUpgrade:
		return w.Strategy.Upgrade(ctx, job)
	case DoResume:
		return w.Strategy.Resume(ctx, job)
	case DoVerify:
		return 0, w.Strategy.Verify(ctx, job)
	case DoRollback:
		return 0, w.Strategy.Rollback(ctx, job)
	default:
		return 0, fmt.Errorf("%s is no call of a strategy", do)
	}
}

func (w *Worker) job() strategy.Job {
	run := w.journal.Run
	return strategy.Job{
		Tenant: w.Tenant, Host: w.Host, Run: run, NotAfter: w.journal.NotAfter, BootID: w.bootID,
		Progress: func(percent int, text string) {
			if err := w.HostLog.Progress(message.Progress{Run: run, Percent: percent, Message: text}); err != nil {
				w.Log.Debug("cannot send progress", "host", w.Host, "error", err)
			}
		},
	}
}

// reply sends the reply that the journal holds. One that the site refuses
// counts as sent: it would be refused again.
func (w *Worker) reply(ctx context.Context) error {
	if w.journal.Action != message.Prepare {
		w.versionsBeforeReply(ctx)
	}
	err := w.HostLog.Reply(ctx, w.journal.Run, message.Reply{
		Action: w.journal.Action, Result: w.journal.Result, Unknown: unknown(w.journal.Result),
	})
	switch {
	case errors.Is(err, log.ErrAnswered):
		return nil
	case errors.Is(err, log.ErrRefused):
		w.Log.Warn("the reply was refused", "host", w.Host, "run", w.journal.Run, "action", w.journal.Action, "result", w.journal.Result, "error", err)
		return nil
	}
	return err
}
