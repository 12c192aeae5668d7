package worker

import (
	"slices"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
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
	if t.Host != host || t.OnSite() || t.Run < run && !t.OfNoRun() {
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
	case t.Kind == message.Undrain && s.runs(message.Drain), t.Kind.OfStage() && (s.runs(message.Step) || s.runs(message.Undo)):
		return laterTask, message.Outcome{}
	case t.Kind == message.Drain && t.Run <= s.undrained:
		return answerTask, t.Outcome(false, tooLateToDrain)
	}
	s.running[t.Key()] = true
	return runTask, message.Outcome{}
}

// runs reports whether a task of a kind runs. The end of a drain must not overlap the undrain, nor the
// end of a step, for which nobody waits any more, the next one or its undo.
func (s *tasks) runs(kind message.TaskKind) bool {
	for key := range s.running {
		if key.Kind == kind {
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

// settling are checks that have passed, on their way to the loop.
type settling struct {
	decide.Pass
	// done gets the outcome; it is closed without one when nothing can be said now.
	done chan message.Outcome
	// left is closed once nobody waits for the outcome any more.
	left <-chan struct{}
}

// busy reports whether a check or hook is under way, or its outcome is to be sent.
func (t *tasks) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.running) > 0
}
