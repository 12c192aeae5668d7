package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// recheck is the wait before a task that failed is tried again.
const recheck = 30 * time.Second

// Task returns the task that has to be run for a host, and from when on; false when
// there is none. The task is wanted until its outcome is on the log.
func (s *State) Task(host string) (task message.Task, from time.Time, wanted bool) {
	i, err := s.member(host)
	if err != nil || s.Over() {
		return message.Task{}, time.Time{}, false
	}
	m := &s.members[i]
	if p := s.start.waiting(host); p != nil && s.Phase == Open {
		return p.task(s.OpenedSeq), time.Time{}, true
	}
	kind := m.wants()
	if kind == "" {
		return message.Task{}, time.Time{}, false
	}
	task = s.hostTask(m, kind)
	if !m.ranAt.IsZero() {
		from = m.ranAt.Add(recheck)
	}
	return task, from, true
}

// hostTask makes the next task of a host.
func (s *State) hostTask(m *member, kind message.TaskKind) message.Task {
	t := s.rollout.task(kind)
	t.Run, t.Host, t.Attempt = s.ID, m.Name, m.attempt
	return t
}

// wants returns the kind of the task that the host waits for; empty for none.
func (m *member) wants() message.TaskKind {
	switch {
	case m.phase != done:
		return taskAt[m.phase]
	case m.Owes().Undrain:
		return message.Undrain
	case m.Owes().Answer == "" && !m.Owes().Look:
		return m.Owes().Checks
	}
	return ""
}

// taskAt are the tasks for which a host waits in its phases.
var taskAt = [done]message.TaskKind{
	checkingBefore: message.BeforeHost, draining: message.Drain, checkingAfter: message.AfterHost, undraining: message.Undrain,
}

// Awaits reports whether the run waits for an outcome.
func (s *State) Awaits(o message.Outcome) bool {
	if o.Kind == message.Start {
		return s.awaitsStart(o)
	}
	if o.Run != s.ID || s.Over() {
		return false
	}
	switch o.Kind {
	case message.Fleet:
		return s.awaitsFleet(o)
	case message.Step, message.Undo:
		return s.awaitsStepOf(o)
	}
	t, _, wanted := s.Task(o.Host)
	return wanted && t.Key() == o.Key()
}

// ran applies the outcome of a task. An outcome that the run does not wait for, such
// as a second one of the same task, changes nothing.
func (s *State) ran(o message.Outcome, at time.Time) error {
	if o.Kind == message.Start {
		return s.startRan(o, at)
	}
	if o.Run != s.ID {
		return fmt.Errorf("the outcome of %s is of run %d, not of run %d", o.Kind, o.Run, s.ID)
	}
	switch o.Kind {
	case message.Fleet:
		return s.fleetRan(o, at)
	case message.Step, message.Undo:
		return s.stepRan(o, at)
	}
	i, err := s.member(o.Host)
	if err != nil {
		return err
	}
	if m := &s.members[i]; !o.Kind.Known() || m.wants() != o.Kind || m.attempt != o.Attempt {
		return fmt.Errorf("%s does not wait for the outcome of %s %d", o.Host, o.Kind, o.Attempt)
	}
	s.taskEnded(i, o, at)
	return nil
}

// taskEnded applies the outcome of the task that a host waits for.
func (s *State) taskEnded(i int, o message.Outcome, at time.Time) {
	s.edit(i, at, func(m *member) {
		m.attempt, m.ranAt, m.trouble = m.attempt+1, time.Time{}, ""
		if o.OK {
			s.roster.Pass(i, o.Kind, at)
		} else {
			m.ranAt, m.trouble = at, problem(o)
		}
		if m.final != "" {
			m.phase = done
		}
	})
	switch {
	case s.members[i].final != "":
	case !o.OK:
		s.fail(i, problem(o), at)
	default:
		s.passed(i, o.Kind, at)
	}
}

// passed moves a host on after a task has passed.
func (s *State) passed(i int, kind message.TaskKind, at time.Time) {
	switch kind {
	case message.BeforeHost:
		s.members[i].passedAt = at
		_ = s.move(i, ready, at)
	case message.Drain:
		_ = s.move(i, drained, at)
	case message.AfterHost, message.Undrain:
		s.isWell(i, at)
	}
}

func problem(o message.Outcome) string {
	return fmt.Sprintf("%s failed: %s", o.Kind.Words(), o.Text)
}

func (s *State) fleetRan(o message.Outcome, at time.Time) error {
	if !s.awaitsFleet(o) {
		return fmt.Errorf("nobody waits for the outcome of fleet %d", o.Attempt)
	}
	s.changed = at
	s.fleet.ended(o, at)
	if !o.OK {
		s.onFailure(problem(o), at)
	}
	return nil
}

// awaitsFleet reports whether an outcome is that of the next checks of the fleet. The
// controller that asked for them has decided by its clock that they were due.
func (s *State) awaitsFleet(o message.Outcome) bool {
	return len(s.rollout.Checks.Fleet) > 0 && o.Attempt == s.fleet.attempt
}

// fleetTask returns the checks of the fleet if they have to pass before the
// next host starts; false when they have, or there are none.
func (s *State) fleetTask(now time.Time) (message.Task, bool) {
	passed := s.fleet.passedAt
	if len(s.rollout.Checks.Fleet) == 0 || s.rollout.stillCounts(passed, now) && !passed.Before(s.stages.reached()) {
		return message.Task{}, false
	}
	t := s.rollout.task(message.Fleet)
	t.Run, t.Attempt = s.ID, s.fleet.attempt
	return t, true
}
