package run

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// What a run may wait for.
const (
	// ForHost means that a host has yet to answer, or to come back.
	ForHost = "host"
	// ForSlot means that hosts which count as out of service hold all slots.
	ForSlot = "slot"
	// ForCheck and ForHook mean that a task has yet to come out.
	ForCheck = "check"
	ForHook  = "hook"
	// ForApproval, ForResume mean that somebody has to do something.
	ForApproval = "approval"
	ForResume   = "resume"
	// ForSoak and ForSplay mean that some time has to pass.
	ForSoak  = "soak"
	ForSplay = "splay"
)

// Waiting is what a run waits for, and since when.
type Waiting struct {
	What   string
	Detail string
	Since  time.Time
}

// blocked returns why no host starts; false when one may start.
func (s *State) blocked(now time.Time) (Waiting, bool) {
	g := s.stages.current()
	switch s.blocker(now) {
	case nothing:
		return Waiting{}, false
	case answers:
		return Waiting{ForHost, s.members.list(func(st Status) bool { return st == Pending || st == HostPreparing }) + " to answer prepare", s.sentAt}, true
	case pausing:
		return s.Paused.waiting(), true
	case soak:
		before := &s.stages.list[s.stages.soaks]
		return Waiting{ForSoak, fmt.Sprintf("stage %s to soak until %s", before.Name, stamp(s.stages.soakEnds)), before.doneAt}, true
	case approval:
		return Waiting{ForApproval, fmt.Sprintf("stage %s to be approved until %s", g.Name, stamp(s.stages.approvalEnds(s.NotAfter))), s.stages.reached()}, true
	case slots:
		return s.noSlot(g)
	case allBusy:
		return s.waitingHosts(g)
	case splay:
		i, _ := s.firstCandidate()
		return Waiting{ForSplay, fmt.Sprintf("the splay of %s until %s", s.members[i].Name, stamp(s.starts(i))), later(s.stages.reached(), g.approvedAt)}, true
	case noneLeft, noTime:
	}
	return s.members.busy()
}

// noSlot returns which hosts hold the slots. A host under way is named first, because
// its slot becomes free without anybody doing anything.
func (s *State) noSlot(g *stage) (Waiting, bool) {
	var holders []string
	var since time.Time
	hosts := s.members.of(g)
	for i := range hosts {
		m := &hosts[i]
		if w, busy := busyWith(m); busy {
			return w, true
		}
		if m.Out() {
			holders = append(holders, m.Name+" ("+m.Reason()+")")
			since = sooner(since, m.OutSince())
		}
	}
	for _, h := range s.nonMembers() {
		if h.Out() && h.Group == s.stages.index {
			holders = append(holders, h.Name+" ("+h.Reason()+")")
			since = sooner(since, h.OutSince())
		}
	}
	return Waiting{ForSlot, list(holders) + " to recover, be released or be deleted", since}, true
}

// waitingHosts returns which hosts the stage waits for while no host can start.
func (s *State) waitingHosts(g *stage) (Waiting, bool) {
	var silent []string
	var since time.Time
	until := " to be released or to be deleted"
	hosts := s.members.of(g)
	for i := range hosts {
		m := &hosts[i]
		if w, busy := busyWith(m); busy {
			return w, true
		}
		switch {
		case m.step == idle && m.IsSilent():
			silent = append(silent, m.Name)
			since = sooner(since, m.Silent)
			until = " to come back, to be released or to be deleted"
		case m.step == idle && m.Owes.Look:
			silent = append(silent, m.Name+" ("+m.Reason()+")")
			since = sooner(since, m.Since)
		}
	}
	return Waiting{ForHost, list(silent) + until, since}, true
}

// busyWith returns what a host that is under way waits for.
func busyWith(m *member) (Waiting, bool) {
	switch m.step {
	case drained:
		return Waiting{ForHost, fmt.Sprintf("%s to be sent upgrade", m.Name), m.since}, true
	case rebootDue:
		return Waiting{ForHost, fmt.Sprintf("%s to be sent reboot", m.Name), m.since}, true
	case upgrading, rebooting:
		return Waiting{ForHost, fmt.Sprintf("%s to answer %s", m.Name, m.asked()), m.since}, true
	case checkingBefore, checkingAfter:
		return Waiting{ForCheck, taskOf(m), m.since}, true
	case draining, undraining:
		return Waiting{ForHook, taskOf(m), m.since}, true
	}
	return Waiting{}, false
}

// taskOf names the task that a host waits for.
func taskOf(m *member) string {
	switch m.wants() {
	case message.BeforeHost:
		return "the checks before " + m.Name
	case message.AfterHost:
		return "the checks after " + m.Name
	case message.Drain, message.Undrain, message.Fleet:
	}
	return fmt.Sprintf("the %s hook of %s", m.wants(), m.Name)
}

// Waiting returns what the run waits for at a time; false when it waits for nothing.
func (s *State) Waiting(now time.Time) (Waiting, bool) {
	if s.Over() || s.Phase == Open {
		return Waiting{}, false
	}
	return s.waitingAt(now)
}

func (s *State) waitingAt(now time.Time) (Waiting, bool) {
	if s.Phase == Open {
		return Waiting{}, false
	}
	// What comes to its end waits for nothing but what has begun.
	if s.counts.underWay > 0 && (s.aborted != nil || s.failures.halt != "" || s.overAt(now)) {
		return s.members.busy()
	}
	if s.blocker(now) != nothing {
		return s.blocked(now)
	}
	if _, wanted := s.fleetTask(now); wanted {
		return s.fleet.waiting(s.changed), true
	}
	return Waiting{}, false
}
