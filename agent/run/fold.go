package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Fold takes in the next record of the log. An error means that the record
// changed nothing, and says why: it is late, of another run, malformed or
// forged (design.md 5, invariants 4 and 5).
func (s *State) Fold(r message.Record) error {
	if s.Over() {
		return fmt.Errorf("run %d has ended", s.Key())
	}
	switch r.Kind {
	case message.CommandAll, message.CommandHost:
		return s.foldCommand(r)
	case message.ReplyRecord:
		return s.foldReply(r)
	case message.EventRecord:
		return s.foldEvent(r)
	default:
		return nil
	}
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
	to := HostUpgrading
	if command.Action == message.Reboot {
		to = Rebooting
	}
	return s.move(command.Host, to, r.Time, "")
}

func (s *State) foldPrepare(r message.Record, command message.Command) error {
	if s.Phase != Open {
		return fmt.Errorf("run %d is prepared already", s.ID)
	}
	s.ID, s.Phase = r.Seq, Preparing
	for _, host := range command.Hosts {
		if err := s.move(host, HostPreparing, r.Time, ""); err != nil {
			return err
		}
	}
	return nil
}

// foldReply counts a reply only as the answer to the host's last command
// (design.md 5, invariant 4).
func (s *State) foldReply(r message.Record) error {
	if r.Run != s.ID {
		return fmt.Errorf("reply of %s is to run %d, not to run %d", r.Host, r.Run, s.ID)
	}
	i, member := s.index[r.Host]
	if !member {
		return fmt.Errorf("%s is not in run %d", r.Host, s.ID)
	}
	if asked := s.hosts[i].Status.asked(); asked == "" || asked != r.Action {
		return fmt.Errorf("%s was not asked to %s: it is %s", r.Host, r.Action, s.hosts[i].Status)
	}
	reply, err := message.DecodeReply(r.Body)
	if err != nil {
		// The host has used up its one answer, so waiting for another is vain.
		return s.move(r.Host, HostFailed, r.Time, fmt.Sprintf("its reply to %s cannot be read: %v", r.Action, err))
	}
	if reply.Action != r.Action {
		return s.move(r.Host, HostFailed, r.Time, fmt.Sprintf("its reply to %s speaks of %s", r.Action, reply.Action))
	}
	return s.answer(r, reply)
}

// asked returns the command that a host in this status has yet to answer.
func (s Status) asked() message.Action {
	switch s {
	case HostPreparing:
		return message.Prepare
	case HostUpgrading:
		return message.Upgrade
	case Rebooting:
		return message.Reboot
	default:
		return ""
	}
}

func (s *State) answer(r message.Record, reply message.Reply) error {
	switch {
	case reply.Result == message.Done && reply.Action == message.Prepare:
		return s.move(r.Host, Prepared, r.Time, "")
	case reply.Result == message.Done:
		return s.move(r.Host, Upgraded, r.Time, "")
	case reply.Result == message.RebootRequired && reply.Action == message.Upgrade:
		return s.move(r.Host, RebootPending, r.Time, "")
	}
	return s.move(r.Host, HostFailed, r.Time, reply.Result)
}

func (s *State) foldEvent(r message.Record) error {
	event, err := message.DecodeEvent(r.Body)
	if err != nil {
		return err
	}
	switch event.Event {
	case message.Finished:
		s.finish(r, event)
		return nil
	case message.Recovered:
		return s.recover(event)
	default:
		return fmt.Errorf("run %d is under way and cannot be %s", s.Key(), event.Event)
	}
}

func (s *State) finish(r message.Record, event message.Event) {
	s.Phase, s.Result, s.Reason = Finished, Result(event.Result), event.Reason
	s.EndedSeq, s.EndedAt, s.changed = r.Seq, r.Time, r.Time
	for i := range s.hosts {
		s.close(&s.hosts[i], r.Time)
	}
}

// recover frees the slots of silent hosts. They stay unreachable: what was not
// prepared is not upgraded (design.md 5, invariant 3).
func (s *State) recover(event message.Event) error {
	silent := make(map[string]bool, len(s.silent))
	for _, name := range s.silent {
		silent[name] = true
	}
	for _, name := range event.Hosts {
		if !silent[name] {
			return fmt.Errorf("%s is not silent in run %d", name, s.Key())
		}
		delete(silent, name)
	}
	text := notHeard + "; it came back too late to be prepared"
	if event.Reason == message.Deleted {
		text = notHeard + "; it was deleted since"
	}
	for _, name := range event.Hosts {
		s.hosts[s.index[name]].Error = text
	}
	s.silent = slices.DeleteFunc(s.silent, func(name string) bool { return !silent[name] })
	return nil
}

// close gives a host that the run leaves behind its final status.
func (s *State) close(h *Host, at time.Time) {
	if h.Status.Final() {
		return
	}
	to, text := Skipped, "the run ended before its turn"
	if h.Status.OutOfService() {
		to, text = HostFailed, fmt.Sprintf("the run ended while it was %s", h.Status)
	}
	s.counts[h.Status]--
	s.counts[to]++
	h.Status, h.Since, h.Error = to, at, text
}

// move brings a host into another status, if the table of transitions has it.
func (s *State) move(host string, to Status, at time.Time, text string) error {
	i, member := s.index[host]
	if !member {
		return fmt.Errorf("%s is not in run %d", host, s.Key())
	}
	h := &s.hosts[i]
	if !h.Status.mayBecome(to) {
		return illegal(host, h.Status, to)
	}
	s.counts[h.Status]--
	s.counts[to]++
	h.Status, h.Since, h.Error = to, at, text
	s.changed = at
	s.track(i, to)
	return nil
}

// track keeps what Next looks at up to date.
func (s *State) track(i int, to Status) {
	switch {
	case to.OutOfService():
		s.Phase, s.busy = Upgrading, i
	case s.busy == i:
		s.busy = -1
	}
	if to == HostFailed && s.failed < 0 {
		s.failed = i
	}
	for s.next < len(s.hosts) && s.hosts[s.next].Status != Prepared && !s.hosts[s.next].Status.waits() {
		s.next++
	}
}

// waits reports whether a host in this status may still have its turn.
func (s Status) waits() bool { return s == Pending || s == HostPreparing }
