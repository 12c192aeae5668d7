package worker

import (
	"slices"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

const (
	// tasksAtOnce is how many tasks run at once. One that comes beyond that is
	// left alone: the controller asks again.
	tasksAtOnce = 4
	// outcomesKept is how many outcomes are remembered, for a controller that
	// asks again because it did not hear them.
	outcomesKept = 16
)

// verdict is what is done with a task that was asked for.
type verdict int

const (
	// leaveTask leaves it alone for good, laterTask until it is asked for again.
	leaveTask verdict = iota
	laterTask
	// answerTask answers it without running it.
	answerTask
	// beginTask runs it.
	beginTask
)

// tasks decides which tasks are run. It does not run them.
type tasks struct {
	mu       sync.Mutex
	running  map[message.Key]bool
	finished []message.Outcome
	// undrained is the newest run whose undrain was asked for.
	undrained uint64
}

func newTasks() *tasks { return &tasks{running: map[message.Key]bool{}} }

// tooLateToDrain is the answer to a drain that was delayed on its way: the
// host would stay out of service with nobody there to undrain it.
const tooLateToDrain = "the host was upgraded or asked to undrain in this run before, so it is not drained"

// tooLate has no drain run in a run any more: a copy of one that comes after
// the upgrade, also after a restart of the worker, would take a host out of
// service that is undrained by then.
func (s *tasks) tooLate(run uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.undrained = max(s.undrained, run)
}

// take decides on a task, for a host whose journal is at a run, and takes note
// of it as running when it beginTask. The outcome is that of one that is answered.
func (s *tasks) take(t message.Task, host string, run uint64) (verdict, message.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Host != host || t.OnSite() || t.Run < run {
		return leaveTask, message.Outcome{}
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
	return beginTask, message.Outcome{}
}

// draining reports whether a drain runs: what it does last must not come after
// the undrain.
func (s *tasks) draining() bool {
	for key := range s.running {
		if key.Kind == message.Drain {
			return true
		}
	}
	return false
}

// finish remembers how a task came out.
func (s *tasks) finish(o message.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, o.Key())
	s.finished = append(s.finished, o)
	if len(s.finished) > outcomesKept {
		s.finished = slices.Delete(s.finished, 0, 1)
	}
}

// forget forgets a task that was broken off: it is run again when it is asked
// for again.
func (s *tasks) forget(key message.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, key)
}
