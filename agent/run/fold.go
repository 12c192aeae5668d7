package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
)

// Fold takes in the next record of the log. An error means that the record
// changed nothing, and says why: it is late, of another run, malformed or
// forged (design.md 5, invariants 4 and 5). After the end of the run a host can
// still answer what it owes an answer to, be deleted and be released.
func (s *State) Fold(r message.Record) error {
	if !s.Over() {
		s.follow(r.Time)
	}
	err := s.takeIn(r)
	if err == nil {
		s.LastSeq = r.Seq
	}
	return err
}

func (s *State) takeIn(r message.Record) error {
	switch {
	case r.Kind == message.ReplyRecord:
		return s.foldReply(r)
	case r.Kind == message.EventRecord:
		return s.foldEvent(r)
	case s.Over():
		return fmt.Errorf("record %d belongs to no run under way", r.Seq)
	case r.Kind == message.CommandAll, r.Kind == message.CommandHost:
		return s.foldCommand(r)
	}
	return fmt.Errorf("record %d is of no kind that belongs to a run", r.Seq)
}

func (s *State) foldCommand(r message.Record) error {
	command, err := message.DecodeCommand(r.Body)
	if err != nil {
		return err
	}
	if command.Action == message.Prepare {
		return s.foldPrepare(r, command)
	}
	if r.Run != s.ID {
		return fmt.Errorf("%s for %s is of run %d, not of run %d", command.Action, command.Host, r.Run, s.ID)
	}
	i, err := s.member(command.Host)
	if err != nil {
		return err
	}
	if command.Action == message.Reboot {
		return s.move(i, rebooting, r.Time)
	}
	if err := s.move(i, upgrading, r.Time); err != nil {
		return err
	}
	s.takeSlot(i, r.Time)
	return nil
}

func (s *State) foldPrepare(r message.Record, command message.Command) error {
	if s.Phase != Open {
		return fmt.Errorf("run %d is prepared already", s.ID)
	}
	for _, host := range command.Hosts {
		if _, err := s.member(host); err != nil {
			return err
		}
	}
	s.ID, s.Phase, s.sentAt = r.Seq, Preparing, r.Time
	s.lineUp()
	for _, host := range command.Hosts {
		// A host named twice has gone there already.
		_ = s.move(s.indexOf(host), preparing, r.Time)
	}
	return nil
}

// foldReply counts a reply only as the answer to the host's last command
// (design.md 5, invariant 4).
func (s *State) foldReply(r message.Record) error {
	if r.Run != s.ID {
		return fmt.Errorf("reply of %s is to run %d, not to run %d", r.Host, r.Run, s.ID)
	}
	i, err := s.member(r.Host)
	if err != nil {
		return err
	}
	m := &s.members[i]
	result := answerOf(r)
	ashore := s.comesAshore(i, r.Action, result, r.Time)
	if asked := m.asked(); asked == "" || asked != r.Action {
		if ashore {
			return nil
		}
		return fmt.Errorf("%s was not asked to %s: it is %s", r.Host, r.Action, m.status())
	}
	s.changed = r.Time
	switch {
	case m.Owes.Answer != "":
		s.answerLate(i, result, r.Time)
	case r.Action != message.Prepare && pastUnknown(result):
		// Another worker of the host, or what it left behind, may be at work.
		s.edit(i, r.Time, func(m *member) { m.Answered(true) })
		s.fail(i, result, r.Time)
	case result == message.Done && r.Action == message.Prepare:
		return s.move(i, idle, r.Time)
	case result == message.Done:
		s.isUpgraded(i, r.Time)
	case result == message.RebootRequired && r.Action == message.Upgrade:
		s.needsReboot(i, r.Time)
	default:
		s.fail(i, result, r.Time)
	}
	return nil
}

// comesAshore takes in that a host which never answered the run before answers
// this one, be it too late: it is at work on nothing that came before, unless it
// says that it does not know. It reports whether that was news.
func (s *State) comesAshore(i int, action message.Action, result string, at time.Time) bool {
	if m := &s.members[i]; m.Owes.Answer == "" || !m.Before || action != message.Prepare {
		return false
	}
	s.edit(i, at, func(m *member) {
		m.Answered(pastUnknown(result))
		m.Before = m.final != HostFailed
	})
	return true
}

// pastUnknown reports whether a host answered that it does not know what it did.
func pastUnknown(result string) bool { return strings.HasSuffix(result, message.PastUnknown) }

// answerOf returns a reply's result. A reply that cannot be read is a failure:
// the host has used up its one answer, so waiting for another is vain.
func answerOf(r message.Record) string {
	reply, err := message.DecodeReply(r.Body)
	switch {
	case err != nil:
		return fmt.Sprintf("its reply to %s cannot be read: %v", r.Action, err)
	case reply.Action != r.Action:
		return fmt.Sprintf("its reply to %s speaks of %s", r.Action, reply.Action)
	}
	return reply.Result
}

// answerLate takes in that a host which was given up is at work no more. It
// stays failed, and may be well again.
func (s *State) answerLate(i int, result string, at time.Time) {
	s.edit(i, at, func(m *member) {
		m.text += fmt.Sprintf("; its late answer to %s was: %s", m.Owes.Answer, result)
		m.Answered(pastUnknown(result))
	})
}

func (s *State) needsReboot(i int, at time.Time) {
	reason, skip := s.noReboot[s.members[i].Name]
	if !skip {
		_ = s.move(i, rebootDue, at)
		return
	}
	s.edit(i, at, func(m *member) { m.note = "its reboot was skipped: " + reason })
	s.isUpgraded(i, at)
}

// isUpgraded takes in that the host says it is done: what is left are its
// checks and its way back into service.
func (s *State) isUpgraded(i int, at time.Time) {
	if len(s.policy.Checks.AfterHost) > 0 {
		_ = s.move(i, checkingAfter, at)
		return
	}
	s.isWell(i, at)
}

// isWell takes in that the host is done and its checks have passed.
func (s *State) isWell(i int, at time.Time) {
	m := &s.members[i]
	if m.Owes.Undrain {
		_ = s.move(i, undraining, at)
		return
	}
	took := at.Sub(m.takenAt)
	s.measure(took)
	s.edit(i, at, func(m *member) {
		m.step, m.since, m.final, m.InHand, m.Owes.Checks, m.took = done, at, Upgraded, false, "", took
	})
}

// fail takes in what went wrong with a host. One that is out of service stays
// so until it is well again: its late answer has come, it is undrained, and
// the checks that failed pass. It is undrained at once.
func (s *State) fail(i int, text string, at time.Time) {
	s.failures++
	s.judge(s.members[i].Name, text, at)
	s.fleet.stale()
	s.edit(i, at, func(m *member) {
		if m.step == checkingBefore && !m.Held() {
			m.takenAt = at
		}
		m.Owes.Checks = s.proof(m)
		m.Before = m.Before && m.Owes.Answer != ""
		m.ends(HostFailed, text, at)
	})
}

// ends gives the host its final status. One that was drained is undrained.
func (m *member) ends(status Status, text string, at time.Time) {
	m.InHand = false
	m.final, m.text, m.since = status, text, at
	if m.Owes.Undrain && m.step != undraining {
		m.step, m.ranAt = undraining, time.Time{}
		return
	}
	m.step = done
}

// proof returns the kind of checks that show that a host which fails now is
// well again; none when there are none, or it was not touched.
func (s *State) proof(m *member) message.TaskKind {
	switch {
	case m.step <= ready && m.Owes.Checks != "":
		return m.Owes.Checks // Since a run before.
	case m.step == checkingBefore:
		return message.BeforeHost
	case m.Held() && len(s.policy.Checks.AfterHost) > 0:
		return message.AfterHost
	}
	return ""
}

// judge stops or pauses the run once too many hosts have failed (AV-77).
func (s *State) judge(host, text string, at time.Time) {
	if s.failures-s.forgiven < s.policy.MaxFailures || s.halt != "" {
		return
	}
	why := fmt.Sprintf("host %s failed: %s", host, text)
	if s.policy.MaxFailures > 1 {
		why = fmt.Sprintf("%d hosts failed, the last one was %s: %s", s.failures-s.forgiven, host, text)
	}
	switch s.policy.OnFailure {
	case policy.Stop:
		s.stop(why, at)
	case policy.Pause:
		s.pauseByPolicy(why, at)
	}
}

// pauseByPolicy pauses the run because of what failed. A person who has paused
// it will see that before resuming it; the rollout and the agent do not look.
func (s *State) pauseByPolicy(why string, at time.Time) {
	if s.Paused == nil || message.GoesOn(s.Paused.By) {
		s.Paused = &Pausing{By: byPolicy, Why: message.CleanText(why), At: at}
	}
}

// takeSlot has a host count as out of service for this run.
func (s *State) takeSlot(i int, at time.Time) {
	if !s.members[i].takenAt.IsZero() {
		return
	}
	s.edit(i, at, func(m *member) { m.takenAt, m.InHand, m.Before = at, true, false })
}

func (s *State) member(host string) (int, error) {
	i, known := s.roster.Index(host)
	if !known || !s.isMember(i) {
		return 0, fmt.Errorf("%s is not in run %d", host, s.Key())
	}
	return i, nil
}

// isMember reports whether a host of the roster is a member: these come first.
func (s *State) isMember(i int) bool { return i < len(s.members) }

// move brings a host to another step, if the table of moves has it.
func (s *State) move(i int, to step, at time.Time) error {
	m := &s.members[i]
	if !m.step.mayBecome(to) {
		return fmt.Errorf("host %s cannot go from %s to %s", m.Name, m.status(), statuses[to])
	}
	g := &s.stages[m.stage]
	if to == checkingBefore || to == draining || to == upgrading {
		g.begun, s.Phase = true, Upgrading
	}
	s.edit(i, at, func(m *member) { m.step, m.since = to, at })
	return nil
}
