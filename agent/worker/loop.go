package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"

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
	next, refused := w.journal.Receive(r, w.Host, w.bootID, w.Now())
	if refused != nil {
		w.ignored[refused.Error()]++
		w.Log.Debug("command ignored", "host", w.Host, "command", r.Seq, "reason", refused)
		return nil
	}
	w.Log.Info("command taken up", "host", w.Host, "run", next.Run, "action", next.Action)
	return w.save(next)
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

// reply sends the reply that the journal holds. Versions go first, so that
// whoever sees the run end sees what it came to.
func (w *Worker) reply(ctx context.Context) error {
	if w.journal.Action != message.Prepare {
		w.reportVersions(ctx)
	}
	err := w.Station.Reply(ctx, w.journal.Run, message.Reply{Action: w.journal.Action, Result: w.journal.Result})
	if errors.Is(err, topic.ErrAnswered) {
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

// loadReported asks what the log has of this host's versions (AV-76).
func (w *Worker) loadReported(ctx context.Context) {
	body, err := w.Station.LastVersions(ctx)
	if err != nil {
		w.Log.Debug("cannot read the versions reported before", "host", w.Host, "error", err)
	}
	w.reported = body
}

// reportVersions reports the host's versions when they have changed (AV-74).
// A host whose versions cannot be had still answers its commands.
func (w *Worker) reportVersions(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, w.Limits.Step)
	defer cancel()
	versions, err := w.Strategy.Versions(limited)
	if err != nil {
		w.Log.Warn("cannot detect versions", "host", w.Host, "error", err)
		return
	}
	body := message.EncodeVersions(versions)
	if bytes.Equal(body, w.reported) {
		return
	}
	if err := w.Station.Versions(ctx, body); err != nil {
		w.Log.Warn("cannot report versions", "host", w.Host, "error", err)
		return
	}
	w.reported = body
}
