package worker

import (
	"context"
	"slices"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

const (
	// tasksAtOnce is how many tasks run concurrently. The worker ignores a further
	// task until the controller sends it again.
	tasksAtOnce = 4
	// outcomesKept is how many outcomes are kept, for a controller that sends a
	// task again because it did not receive the outcome.
	outcomesKept = 16
)

// verdict is the decision on a task.
type verdict int

const (
	// ignoreTask ignores the task, laterTask until the controller sends it again.
	ignoreTask verdict = iota
	laterTask
	// answerTask answers with an outcome without running the task.
	answerTask
	// runTask runs the task.
	runTask
)

// tasks decides which tasks to run. It does not run them.
type tasks struct {
	mu       sync.Mutex
	running  map[message.Key]bool
	finished []message.Outcome
	// undrained is the newest run for which a drain is refused.
	undrained uint64
}

func newTasks() *tasks { return &tasks{running: map[message.Key]bool{}} }

// tooLateToDrain is the answer to a delayed drain. The host would stay out of
// service, because no undrain follows.
const tooLateToDrain = "the host was upgraded or asked to undrain in this run before, so it is not drained"

// tooLate refuses all further drains in a run. A duplicate drain after the
// upgrade, also after a restart of the worker, could take an undrained host out of
// service.
func (s *tasks) tooLate(run uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undrained = max(s.undrained, run)
}

// take decides on a task, for a host whose journal is at a run. It records a task
// with the verdict runTask as running. The outcome belongs to answerTask.
func (s *tasks) take(t message.Task, host string, run uint64) (verdict, message.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Host != host || t.OnSite() || t.Run < run {
		return ignoreTask, message.Outcome{}
	}
	if t.Kind == message.Undrain {
		s.undrained = max(s.undrained, t.Run)
	}
	if i := slices.IndexFunc(s.finished, func(o message.Outcome) bool { return o.Key() == t.Key() }); i >= 0 {
		return answerTask, s.finished[i]
	}
	switch {
	case s.running[t.Key()] || len(s.running) >= tasksAtOnce:
		return laterTask, message.Outcome{}
	case t.Kind == message.Undrain && s.draining():
		return laterTask, message.Outcome{}
	case t.Kind == message.Drain && t.Run <= s.undrained:
		return answerTask, t.Outcome(false, tooLateToDrain)
	}
	s.running[t.Key()] = true
	return runTask, message.Outcome{}
}

// draining reports whether a drain runs: the end of a drain must not overlap the
// undrain.
func (s *tasks) draining() bool {
	for key := range s.running {
		if key.Kind == message.Drain {
			return true
		}
	}
	return false
}

// finish records the outcome of a task.
func (s *tasks) finish(o message.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, o.Key())
	s.finished = append(s.finished, o)
	if len(s.finished) > outcomesKept {
		s.finished = slices.Delete(s.finished, 0, 1)
	}
}

// forget removes an interrupted task: it runs again when the controller sends it
// again.
func (s *tasks) forget(key message.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, key)
}

// Checks runs the checks and hooks of a rollout on this host.
type Checks interface {
	// Run runs a task and returns its outcome, at the latest when ctx ends.
	Run(ctx context.Context, t message.Task) message.Outcome
	// Baseline notes durably what the checks after the upgrade of a run compare the host
	// with. If the run has a baseline, it keeps that.
	Baseline(ctx context.Context, run uint64) error
}

// noChecks are the Checks of a worker without checks.
type noChecks struct{}

func (noChecks) Run(_ context.Context, t message.Task) message.Outcome {
	return t.Outcome(false, "this worker runs no checks")
}

func (noChecks) Baseline(context.Context, uint64) error { return nil }

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
	if t.Run == j.Run && j.pastPrepare() {
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
	outcome, began := t.Outcome(true, ""), *w.written.Load()
	if !w.keptBoots.Load().passedIn(t) {
		w.At("before task " + string(t.Kind))
		came := w.Checks.Run(limited, t)
		if ctx.Err() != nil {
			w.tasks.forget(t.Key())
			return
		}
		w.At("after task " + string(t.Kind))
		outcome = t.Outcome(came.OK, came.Text)
	}
	if outcome.OK && t.Kind == message.AfterHost && w.confirms() {
		passed, known := w.afterPass(limited, t, began)
		if !known {
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

func (w *Worker) sendOutcome(o message.Outcome) {
	if err := w.HostLog.Outcome(o); err != nil {
		w.Log.Warn("cannot send the outcome of a task", "host", w.Host, "run", o.Run, "task", o.Kind, "error", err)
	}
}
