package worker

import (
	"context"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Checks runs the checks and hooks of a rollout on this host.
type Checks interface {
	// Run runs a task and returns how it came out, at the latest when ctx ends.
	Run(ctx context.Context, t message.Task) message.Outcome
}

// noChecks are those of a worker that has none.
type noChecks struct{}

func (noChecks) Run(_ context.Context, t message.Task) message.Outcome {
	return t.Outcome(false, "this worker runs no checks")
}

// tasksWaiting is how many tasks wait to be decided on; what comes beyond that
// is asked for again.
const tasksWaiting = 16

// doTasks runs the tasks that are asked for until ctx ends, and ends those
// that run then: the worker that holds the lease next is sent them again.
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
	if t.Run == w.run.Load() && w.begun.Load() {
		w.tasks.tooLate(t.Run)
	}
	switch verdict, outcome := w.tasks.take(t, w.Host, w.run.Load()); verdict {
	case leaveTask:
		w.count.Add(1)
		w.Log.Debug("task ignored", "host", w.Host, "run", t.Run, "task", t.Kind, "of", t.Host, "ignored", w.count.Load())
	case laterTask:
	case answerTask:
		w.tellOutcome(outcome)
	case beginTask:
		running.Go(func() { w.runTask(ctx, t) })
	}
}

func (w *Worker) runTask(ctx context.Context, t message.Task) {
	limited, cancel := context.WithTimeout(ctx, t.Limit())
	defer cancel()
	w.At("before task " + string(t.Kind))
	came := w.Checks.Run(limited, t)
	if ctx.Err() != nil {
		w.tasks.forget(t.Key())
		return
	}
	w.At("after task " + string(t.Kind))
	outcome := t.Outcome(came.OK, came.Text)
	w.tasks.finish(outcome)
	w.Log.Info("task run", "host", w.Host, "run", t.Run, "task", t.Kind, "ok", outcome.OK, "text", outcome.Text)
	w.tellOutcome(outcome)
}

func (w *Worker) tellOutcome(o message.Outcome) {
	if err := w.HostLog.Outcome(o); err != nil {
		w.Log.Warn("cannot tell how a task came out", "host", w.Host, "run", o.Run, "task", o.Kind, "error", err)
	}
}
