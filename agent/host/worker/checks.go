package worker

import (
	"context"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// tasksWaiting is how many tasks wait for a decision. Further tasks are dropped
// until the controller sends them again.
const tasksWaiting = 16

// doTasks runs the controller's tasks until ctx ends, and then interrupts the
// running ones: the controller sends them again to the next holder of the lease.
func (w *Worker) doTasks(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	asked := make(chan message.Task, tasksWaiting)
	running.Go(func() {
		stop(w.HostLog.Tasks(ctx, func(t message.Task) {
			select {
			case asked <- t:
			default:
			}
		}))
	})
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case t := <-asked:
			w.takeTask(ctx, t, &running)
		}
	}
}

func (w *Worker) takeTask(ctx context.Context, t message.Task, running *sync.WaitGroup) {
	j := w.written.Load()
	if t.Run == j.Run && j.PastPrepare() {
		w.tasks.tooLate(t.Run)
	}
	switch verdict, outcome := w.tasks.take(t, w.Host, j.Run); verdict {
	case ignoreTask:
		w.ignoredCount.Add(1)
		w.Log.Debug("task ignored", "host", w.Host, "run", t.Run, "task", t.Kind, "of", t.Host, "ignored", w.ignoredCount.Load())
	case laterTask:
	case answerTask:
		w.sendOutcome(outcome)
	case runTask:
		running.Go(func() { w.runTask(ctx, t) })
	}
}

func (w *Worker) runTask(ctx context.Context, t message.Task) {
	limited, cancel := context.WithTimeout(ctx, t.Limit())
	defer cancel()
	outcome, known := t.Outcome(true, ""), *w.written.Load()
	if !known.Boots.PassedIn(t) {
		w.At("before task " + string(t.Kind))
		came := w.Checks.Run(limited, t)
		if ctx.Err() != nil {
			w.tasks.forget(t.Key())
			return
		}
		w.At("after task " + string(t.Kind))
		outcome = t.Outcome(came.OK, came.Text)
		outcome.Outputs, outcome.Results = came.Outputs, came.Results
	}
	if outcome.OK && t.Kind == message.AfterHost && w.confirms() {
		passed, told := w.afterPass(limited, t, known.Journal)
		if !told {
			w.tasks.forget(t.Key())
			return
		}
		if outcome.OK = passed.OK; !passed.OK {
			outcome = passed
		}
	}
	w.tasks.finish(outcome)
	w.Log.Info("task run", "host", w.Host, "run", t.Run, "task", t.Kind, "ok", outcome.OK, "text", outcome.Text)
	w.sendOutcome(outcome)
}

// afterPass has the loop confirm the system on which checks have passed, and returns the
// outcome for the site. False means that there is none: the site asks again.
func (w *Worker) afterPass(ctx context.Context, t message.Task, began decide.Journal) (message.Outcome, bool) {
	p := settling{decide.Pass{Task: t, Began: began}, make(chan message.Outcome, 1), ctx.Done()}
	select {
	case w.passes <- p:
		w.passDue.Set()
	case <-ctx.Done():
		return message.Outcome{}, false
	}
	select {
	case o, some := <-p.done:
		return o, some
	case <-ctx.Done():
		return message.Outcome{}, false
	}
}

func (w *Worker) sendOutcome(o message.Outcome) {
	if err := w.HostLog.Outcome(o); err != nil {
		w.Log.Warn("cannot send the outcome of a task", "host", w.Host, "run", o.Run, "task", o.Kind, "error", err)
	}
}
