package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Fold applies the next record of the log. An error means that the record changed
// nothing, and says why: it is late, malformed, forged or belongs to another run. After the
// end of the run a host can still give an answer that it owes, recover, be deleted and be
// released.
func (s *State) Fold(r *message.Decoded) error {
	err := s.apply(r)
	if err == nil {
		s.LastSeq = r.Seq
	}
	return err
}

func (s *State) apply(r *message.Decoded) error {
	switch {
	case r.Kind == message.ReplyRecord:
		return s.foldReply(r)
	case r.Kind == message.EventRecord:
		return s.foldEvent(r)
	case s.Over():
		return fmt.Errorf("no run is active that record %d could change", r.Seq)
	case r.Kind == message.CommandAll, r.Kind == message.CommandHost:
		return s.foldCommand(r)
	}
	return fmt.Errorf("record %d is neither a command, nor a reply, nor an event", r.Seq)
}

func (s *State) foldCommand(r *message.Decoded) error {
	command := r.Command
	if command == nil {
		return r.Err
	}
	if command.Action == message.Prepare {
		return s.foldPrepare(r, command)
	}
	if r.Run != s.ID {
		return fmt.Errorf("%s for %s belongs to run %d, not to run %d", command.Action, command.Host, r.Run, s.ID)
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
	if s.members[i].takenAt.IsZero() {
		s.TakenSeq = r.Seq
	}
	s.members[i].told = true
	s.takeSlot(i, r.Time)
	return nil
}

func (s *State) foldPrepare(r *message.Decoded, command *message.Command) error {
	if s.Phase != Open {
		return fmt.Errorf("run %d has its prepare already", s.ID)
	}
	for _, host := range command.Hosts {
		if _, err := s.member(host); err != nil {
			return err
		}
	}
	if len(command.Hosts) == 0 && s.counts.unstarted > 0 {
		return fmt.Errorf("prepare names none of the hosts of run %d", s.Key())
	}
	s.ID, s.Phase = r.Seq, Preparing
	s.roster.Begin(s.ID)
	s.order()
	for _, host := range command.Hosts {
		// If a host is named twice, it is in this phase already.
		_ = s.move(s.indexOf(host), preparing, r.Time)
	}
	s.sentAt = r.Time
	s.endPreparing(r.Time)
	return nil
}

// order puts the hosts of each stage into order.
func (s *State) order() {
	for i := range s.members {
		s.members[i].hash = hashOf(s.ID, s.members[i].Name)
	}
	for n := range s.stages.list {
		g := &s.stages.list[n]
		g.candidates = newCandidates(s.members, g.first, g.Size, s.rollout.Splay.Duration() > 0, s.roster.Sets())
	}
}

// foldReply counts a reply only as the answer to the host's last command.
func (s *State) foldReply(r *message.Decoded) error {
	if r.Run != s.ID {
		return fmt.Errorf("the reply of %s is for run %d, not for run %d", r.Host, r.Run, s.ID)
	}
	i, err := s.member(r.Host)
	if err != nil {
		return err
	}
	m := &s.members[i]
	reply := m.replyOf(r)
	paid := r.Action == message.Prepare && s.answersBefore(i, reply, r.Time)
	if asked := m.asked(); asked == "" || asked != r.Action {
		if paid {
			return nil
		}
		return fmt.Errorf("%s was not asked to %s: it is %s", r.Host, r.Action, m.status())
	}
	s.changed = r.Time
	m.class, m.rolledBack, m.upToDate = reply.Result.Class, reply.Result.Outcome == message.RolledBack, reply.Result.UpToDate
	switch {
	case m.hasLateAnswer():
		s.edit(i, r.Time, func(m *member) {
			m.text += fmt.Sprintf("; its late answer to %s was: %s", r.Action, reply.Result)
			s.roster.Answer(i, reply.Result.Outcome == message.Unknown, r.Time)
		})
	case r.Action == message.Prepare && reply.Result.Outcome == message.Done:
		s.edit(i, r.Time, func(m *member) { m.epoch = r.Epoch })
		return s.move(i, idle, r.Time)
	case r.Action == message.Prepare:
		m.unable = reply.Result.Outcome == message.Failed && !reply.Result.Class.Passes()
		s.noteUnmet(i, reply.Result.String())
		s.fail(i, reply.Result.String(), r.Time)
	case reply.Result.Outcome == message.Unknown:
		// Another worker of the host, or a process that it left behind, may still be at work.
		s.serve(i, r.Time, func() { s.roster.Answer(i, true, r.Time) })
		s.fail(i, reply.Result.String(), r.Time)
	case reply.Result.Outcome == message.Done:
		s.isUpgraded(i, r.Time)
	case reply.Result.Outcome == message.RebootRequired && r.Action == message.Upgrade:
		s.needsReboot(i, r.Time)
	default:
		s.fail(i, reply.Result.String(), r.Time)
	}
	return nil
}

// answersBefore handles an answer to prepare, in time or late, from a host that never answered
// a command of an earlier run. A worker does one thing at a time, so the old command is
// finished, unless the host says that it does not know. It reports whether this changed
// anything.
func (s *State) answersBefore(i int, reply message.Reply, at time.Time) bool {
	if !s.members[i].owesBefore() {
		return false
	}
	s.serve(i, at, func() { s.roster.Answer(i, reply.Result.Outcome == message.Unknown, at) })
	return true
}

func (s *State) needsReboot(i int, at time.Time) {
	reason, skip := s.rollout.noReboot[s.members[i].Name]
	if !skip {
		_ = s.move(i, rebootDue, at)
		return
	}
	s.edit(i, at, func(m *member) { m.note = "its reboot was skipped: " + reason })
	s.isUpgraded(i, at)
}

// isUpgraded notes that the host has answered "done": the checks after its upgrade come next.
func (s *State) isUpgraded(i int, at time.Time) {
	if s.rollout.checksHosts() {
		_ = s.move(i, checkingAfter, at)
		return
	}
	s.isWell(i, at)
}

// isWell notes that the checks after the upgrade of a host have passed: it is undrained next,
// or it is upgraded.
func (s *State) isWell(i int, at time.Time) {
	m := &s.members[i]
	if m.Owes().Undrain {
		_ = s.move(i, undraining, at)
		return
	}
	took := at.Sub(m.takenAt)
	s.durations.add(took)
	s.edit(i, at, func(m *member) {
		s.roster.Return(i, at)
		m.phase, m.since, m.final, m.took = done, at, Upgraded, took
	})
}

// fail notes that a host has failed. If the host is out of service, it stays so until it has
// given the answer that it owes, is undrained, and passes its checks. The undrain begins at
// once. A host that could not prepare does not count towards max-failures, because nothing was
// done to it; min-prepared limits how many hosts may fail in this way.
func (s *State) fail(i int, text string, at time.Time) {
	if m := &s.members[i]; m.phase > preparing {
		if why := s.failures.add(m.Name, text); why != "" {
			s.onFailure(why, at)
		}
	}
	s.endFailed(i, text, at)
}

// endFailed gives a host its final status after a failure.
func (s *State) endFailed(i int, text string, at time.Time) {
	s.fleet.stale()
	s.edit(i, at, func(m *member) {
		if m.phase == checkingBefore && !m.HasSlot() {
			m.takenAt = at
		}
		s.roster.Fail(i, s.rollout.proof(m), at)
		s.ends(i, HostFailed, text, at)
	})
}

// onFailure stops or pauses the run, or does neither, as on-failure of the rollout says.
func (s *State) onFailure(why string, at time.Time) {
	switch s.rollout.OnFailure {
	case rollout.Stop:
		s.stop(why, at)
	case rollout.Pause:
		s.pauseOnFailure(why, at)
	}
}

// letLeave notes that a record has let a host leave service, unless it has changed nothing.
func (s *State) letLeave(seq uint64, err error) error {
	if err == nil {
		s.TakenSeq = seq
	}
	return err
}

// takeSlot notes that this run has taken a host out of service.
func (s *State) takeSlot(i int, at time.Time) {
	if !s.members[i].takenAt.IsZero() {
		return
	}
	s.touched = true
	s.edit(i, at, func(m *member) {
		s.roster.Take(i, at)
		m.takenAt = at
	})
}

// foldEvent folds an event. A host can recover, be deleted and be released also after the end
// of the run.
func (s *State) foldEvent(r *message.Decoded) error {
	event := r.Event
	if event == nil {
		return r.Err
	}
	switch e := event.(type) {
	case message.Deleted:
		return s.each(e, r.Time, s.delete)
	case message.Released:
		return s.release(e, r.Time)
	case message.Recovered:
		return s.each(e, r.Time, s.recover)
	}
	if s.Over() {
		return fmt.Errorf("no run is active that event %s could change", message.Name(event))
	}
	switch e := event.(type) {
	case message.Silent:
		s.addNeighbours(e)
		return s.each(e, r.Time, s.fallSilent)
	case message.Busy:
		return s.each(e, r.Time, func(i int, at time.Time) bool { return s.becomeBusy(i, e.NotNow, at) })
	case message.Idle:
		return s.each(e, r.Time, s.becomeIdle)
	case message.Admitted:
		return s.letLeave(r.Seq, s.each(e, r.Time, s.admit))
	case message.Slot:
		return s.letLeave(r.Seq, s.each(e, r.Time, s.slot))
	case message.Begun:
		return s.letLeave(r.Seq, s.begun(e, r.Time))
	case message.Ran:
		return s.ran(e.Outcome, r.Time)
	case message.Overdue:
		return s.each(e, r.Time, func(i int, at time.Time) bool { return s.timeOut(i, e.Awaited, at) })
	case message.Late:
		return s.beginWithout(e, r.Time)
	case message.Unprepared:
		return s.each(e, r.Time, func(i int, at time.Time) bool { return s.leaveOutLate(i, e.Doing, at) })
	case message.Differing:
		return s.differ(e, r.Time)
	case message.Cancelled:
		return s.each(e, r.Time, func(i int, at time.Time) bool { return s.cancel(i, e, at) })
	case message.Approved:
		return s.approve(e, r.Time)
	case message.Paused:
		return s.pause(e, r.Time)
	case message.Resumed:
		return s.resume(e, r.Time)
	case message.Aborted:
		return s.abort(e, r.Time)
	case message.Frozen:
		return s.freeze(e, r.Time)
	case message.Finished:
		return s.finish(e, r.Record)
	}
	return fmt.Errorf("event %s has no place in the middle of run %d", message.Name(event), s.Key())
}

// each applies a change to every host of an event, or to none if one of them is not in the
// roster. It is an error if the event changes no host.
func (s *State) each(e message.Event, at time.Time, change func(i int, at time.Time) bool) error {
	hosts := message.Hosts(e)
	for _, host := range hosts {
		if _, known := s.roster.Index(host); !known {
			return fmt.Errorf("%s is not in run %d", host, s.Key())
		}
	}
	changed := false
	for _, host := range hosts {
		changed = change(s.indexOf(host), at) || changed
	}
	if !changed {
		return fmt.Errorf("event %s changes nothing for %s", message.Name(e), list(hosts))
	}
	return nil
}

// addNeighbours adds those silent hosts to the roster that share a cell with hosts in it.
func (s *State) addNeighbours(e message.Silent) {
	if len(e.Cells) == 0 {
		return
	}
	if s.roster.AddNeighbours(e.Hosts, e.Cells) {
		s.regroup()
	}
}

// budgeted notes that the disruption budgets were edited.
func (s *State) budgeted(r *message.Decoded) {
	s.changed, s.LastSeq = r.Time, r.Seq
}

// regroup follows a change of the cells of hosts.
func (s *State) regroup() {
	if s.ID == 0 {
		return
	}
	for n := range s.stages.list {
		s.stages.list[n].candidates.regroup(s.members, s.roster.Sets())
	}
}

// fallSilent notes that a host is silent. If it was being checked before its upgrade, it has
// to be admitted again once it is heard.
func (s *State) fallSilent(i int, at time.Time) bool {
	if !s.roster.HeedsSilence(i) {
		return false
	}
	s.serve(i, at, func() { s.roster.FellSilent(i, at) })
	if s.isMember(i) && s.members[i].isAdmitted() {
		s.edit(i, at, func(*member) { s.withdraw(i, at) })
	}
	return true
}

func (s *State) recover(i int, at time.Time) bool {
	if !s.roster.CountsAsSilent(i) {
		return false
	}
	s.serve(i, at, func() { s.roster.Recover(i, at) })
	return true
}

// delete removes a host that was deleted: the run waits neither for the host nor for
// its undrain hook.
func (s *State) delete(i int, at time.Time) bool {
	works, _ := s.roster.Host(i).Works()
	if (!s.isMember(i) || s.members[i].phase == done) && !s.roster.CountsAsOut(i) && works == "" {
		return false
	}
	s.remove(i, "it was deleted", at, func() { s.roster.Remove(i, at) })
	return true
}

// release removes a host from the run by force, and frees its slot. The host may still carry
// out a command that it has not answered.
func (s *State) release(e message.Released, at time.Time) error {
	if err := s.refusesRelease(e.Host); err != nil {
		return err
	}
	i, command, text := s.indexOf(e.Host), message.Action(""), "it"
	if s.roster.CountsAsOut(i) {
		text = "its slot"
	}
	if s.isMember(i) && (s.members[i].phase == upgrading || s.members[i].phase == rebooting) {
		command = s.members[i].asked()
	}
	s.remove(i, fmt.Sprintf("%s was released by %s: %s", text, e.By, e.Why), at, func() { s.roster.Release(i, command, at) })
	return nil
}

// remove puts a host back into service and ends its part in the run. A host that has its final
// status keeps it.
func (s *State) remove(i int, text string, at time.Time, change func()) {
	if !s.isMember(i) {
		s.serve(i, at, change)
		return
	}
	s.fleet.stale()
	s.start.answer(s.members[i].Name, "")
	s.edit(i, at, func(m *member) {
		change()
		if m.final == "" {
			m.final, m.text, m.since = Skipped, text, at
		} else if m.final != Upgraded {
			m.text += "; " + text
		}
		m.phase = done
	})
}

// admit starts the checks before the upgrade of a host, or starts them again when their result
// is no longer valid.
func (s *State) admit(i int, at time.Time) bool {
	if !s.mayBeAdmitted(i) || s.move(i, checkingBefore, at) != nil {
		return false
	}
	s.serve(i, at, func() { s.roster.Admit(i, at) })
	return true
}

// slot takes a host out of service. It is drained next, if there is a drain hook, and
// undrained in the end, whatever happens.
func (s *State) slot(i int, at time.Time) bool {
	if !s.mayBeAdmitted(i) || s.move(i, draining, at) != nil {
		return false
	}
	s.takeSlot(i, at)
	if s.rollout.Hooks.Undrain != nil {
		s.serve(i, at, func() { s.roster.Drain(i, at) })
	}
	if s.rollout.Hooks.Drain == nil {
		_ = s.move(i, drained, at)
	}
	return true
}

// mayBeAdmitted reports whether a host is a member that may be admitted.
func (s *State) mayBeAdmitted(i int) bool {
	return s.isMember(i) && !s.isPreparing() && s.members[i].Group == s.stages.index && !s.members[i].IsSilent() && !s.members[i].IsLocked() && s.members[i].busy == nil
}

func (s *State) approve(e message.Approved, at time.Time) error {
	if err := s.refusesApproval(e.Stage); err != nil {
		return err
	}
	s.stages.named(e.Stage).approvedAt, s.changed = at, at
	return nil
}

func (s *State) pause(e message.Paused, at time.Time) error {
	if s.Paused != nil {
		return fmt.Errorf("run %d is paused already, by %s", s.Key(), s.Paused.By)
	}
	s.Paused, s.changed = &Pausing{By: e.By, Why: e.Why, At: at}, at
	return nil
}

// resume lets the run go on. Only a person can reset its failure count, because the rollout
// and the agent have not seen what failed. The fleet may have changed in the meantime, so its
// checks have to pass again, and so do the checks before hosts that have no slot yet.
func (s *State) resume(e message.Resumed, at time.Time) error {
	if s.Paused == nil {
		return fmt.Errorf("run %d is not paused", s.Key())
	}
	s.Paused, s.changed = nil, at
	if !message.GoesOn(e.By) && !e.KeepsFailures {
		s.failures.reset()
	}
	for _, t := range s.queues[ready] {
		s.members[t.host].passedAt = time.Time{}
	}
	s.fleet.stale()
	return nil
}

func (s *State) abort(e message.Aborted, at time.Time) error {
	if s.aborted != nil && (s.atOnce || !e.Now) {
		return fmt.Errorf("run %d is being aborted already, by %s", s.Key(), s.aborted.By)
	}
	s.aborted, s.atOnce, s.changed = &Pausing{By: e.By, Why: e.Why, At: at}, e.Now, at
	return nil
}

// freeze moves the end of the run to the beginning of a freeze. Only the log's clock decides
// whether the freeze is over: the clock of the controller that wrote the event may be wrong.
func (s *State) freeze(e message.Frozen, at time.Time) error {
	if !at.Before(e.Until) {
		return fmt.Errorf("freeze %s had already ended at %s", e.Freeze, stamp(e.Until))
	}
	if !e.NotAfter.Before(s.NotAfter) {
		return fmt.Errorf("run %d already ends at %s, before %s", s.Key(), stamp(s.NotAfter), stamp(e.NotAfter))
	}
	s.Deadline.freeze(e.Freeze, e.NotAfter, at)
	s.changed = at
	return nil
}

func (s *State) finish(e message.Finished, r message.Record) error {
	result := Result(e.Result)
	if !slices.Contains([]Result{Completed, Partial, Failed, IsAborted, TimedOut}, result) {
		return fmt.Errorf("run %d cannot end as %q", s.Key(), e.Result)
	}
	s.Phase, s.Result, s.Reason = Finished, result, e.Reason
	s.EndedSeq, s.EndedAt, s.changed = r.Seq, r.Time, r.Time
	s.after = s.reachedBy()
	s.roster.Finish()
	s.closeStep()
	unstarted := "the run ended before its turn"
	if s.ID == 0 && s.start.why() != "" {
		unstarted = "the run touched no host: its start checks failed"
	}
	for i := range s.members {
		s.close(i, unstarted, r.Time)
	}
	s.queues = queues{}
	return nil
}

// close gives a host its final status at the end of the run, if it has none yet. unstarted is why it
// was not begun with.
func (s *State) close(i int, unstarted string, at time.Time) {
	m := &s.members[i]
	if m.final != "" {
		return
	}
	to, text := Skipped, unstarted
	switch {
	case m.underWay():
		to, text = HostFailed, "the run ended while it was "+string(m.status())
	case m.IsSilent():
		to, text = Unreachable, "it was silent until the run ended"
	case m.busy != nil:
		text = "it was busy until the run ended: " + m.busy.Reason
	case m.phase == preparing:
		text = "it had not answered prepare when the run ended"
	}
	s.edit(i, at, func(m *member) {
		if m.phase == upgrading || m.phase == rebooting {
			s.roster.Await(i, m.asked(), at)
		}
		s.ends(i, to, text, at)
		m.phase = done
	})
}
