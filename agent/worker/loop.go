package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/topic"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// loop does what the journal says, one thing after the other, and takes a
// command only when there is nothing to do.
func (w *Worker) loop(ctx context.Context) error {
	for {
		do := w.journal.Next(w.fresh, w.bootID)
		var err error
		if do == Nothing {
			err = w.receive(ctx)
		} else {
			err = w.step(ctx, do)
		}
		if err != nil {
			return err
		}
	}
}

// receive waits for a command and writes down that it is taken up.
func (w *Worker) receive(ctx context.Context) error {
	r, err := w.box.take(ctx)
	if err != nil {
		return err
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
	return w.save(next)
}

// ignore says once per command why it is left alone, and loud where somebody
// waits for an answer.
func (w *Worker) ignore(r message.Record, reason error) {
	level := slog.LevelWarn
	this := place{r.Log, r.Seq}
	if errors.Is(reason, errTakenUp) || errors.Is(reason, errOtherHosts) || w.ignored[r.Kind] == this {
		level = slog.LevelDebug
	}
	w.ignored[r.Kind] = this
	w.Log.Log(context.Background(), level, "command ignored", "host", w.Host, "command", r.Seq, "reason", reason)
}

// step does one thing and writes down what came of it. When ctx ends in the
// middle nothing is written: the journal's phase stands, and what really
// happened is asked for at the next start.
func (w *Worker) step(ctx context.Context, do Do) error {
	if do == DoReboot {
		return w.reboot(ctx)
	}
	w.At("before " + string(do))
	outcome, err := w.perform(ctx, do)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if do == DoReply && err != nil {
		// The journal must not call it answered.
		return err
	}
	w.At("after " + string(do))
	next := w.journal.After(do, outcome, err, w.Now())
	if err != nil {
		w.Log.Warn("step failed", "host", w.Host, "run", next.Run, "step", do, "error", err)
	}
	return w.save(next)
}

func (w *Worker) perform(ctx context.Context, do Do) (strategy.Outcome, error) {
	if do == DoBooted {
		return 0, nil
	}
	if do == DoReply {
		return 0, w.reply(ctx)
	}
	limited, cancel := context.WithTimeoutCause(ctx, w.Limits.Step, fmt.Errorf("%s took longer than %s", do, w.Limits.Step))
	defer cancel()
	outcome, err := w.call(limited, do)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return 0, context.Cause(limited)
	}
	return outcome, err
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
			if err := w.Station.Progress(message.Progress{Run: run, Percent: percent, Message: text}); err != nil {
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
	err := w.Station.Reply(ctx, w.journal.Run, message.Reply{Action: w.journal.Action, Result: w.journal.Result})
	switch {
	case errors.Is(err, topic.ErrAnswered):
		return nil
	case errors.Is(err, topic.ErrRefused):
		w.Log.Warn("the reply was refused", "host", w.Host, "run", w.journal.Run, "action", w.journal.Action, "result", w.journal.Result, "error", err)
		return nil
	}
	return err
}

// save writes the journal and begins its phase.
func (w *Worker) save(next Journal) error {
	w.At("before journal")
	if err := next.write(w.journalPath()); err != nil {
		return err
	}
	w.At("after journal")
	w.journal, w.fresh = next, true
	return nil
}
