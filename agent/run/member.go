package run

import (
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Host is one member of a run, as others see it.
type Host struct {
	Name string
	// Stage is the name of its stage.
	Stage  string
	Status Status
	// Since is when it came into this status; zero before its first command.
	Since time.Time
	// Error is the host's own words, or why it was left out.
	Error string
	// Note is what is to be known of it though it did not fail.
	Note string
	// Slot is since when it counts as out of service, zero while it does not;
	// SlotReason says why it does.
	Slot       time.Time
	SlotReason string
	// Took is how long it was out of service for its upgrade; 0 before.
	Took time.Duration
}

// member is what a run knows of a host.
type member struct {
	name  string
	stage int
	step  step
	// final is its status once that will not change, empty before.
	final Status
	// since is when step or final changed last.
	since      time.Time
	text, note string

	// slot tells that it was taken out of service, at slotAt, and is not known
	// to be well again. It was taken out in this run at takenAt.
	slot            bool
	slotAt, takenAt time.Time
	// stranded is the command of a run before that it has not answered, unknown
	// tells that nobody knows what it did.
	stranded message.Action
	unknown  bool
	// silent tells that it is not heard of, since silentAt; gone that it was
	// deleted or released, so that its silence says nothing any more.
	silent, gone bool
	silentAt     time.Time
	// late is the command that it may still answer though nobody waits for
	// that: until it does, it may be at work.
	late message.Action
	// undrain tells that it was drained and is not undrained yet.
	undrain bool
	// unwell is the kind of checks that have to pass before it counts as well
	// again; empty when none have.
	unwell message.TaskKind
	// attempt counts its tasks, ranAt is when the last one came out badly and
	// trouble how; neither counts once one came out well.
	attempt int
	ranAt   time.Time
	trouble string
	// passedAt is when the checks before it passed, zero when they have to pass
	// anew.
	passedAt time.Time
	took     time.Duration

	// moves counts its steps, so that a ticket is known to be old.
	moves int
	// lot orders the hosts of a stage that has a splay, place is where it
	// stands in its stage, lined tells which of the stage's lines have that
	// place.
	lot   uint64
	place int
	lined [2]bool
}

// status is what people see.
func (m *member) status() Status {
	if m.final != "" {
		return m.final
	}
	return statuses[m.step]
}

// out reports whether the host counts as out of service (design.md 5,
// invariant 1).
func (m *member) out() bool { return m.slot || m.silent }

// mayGo reports whether the host may have its turn: one that is silent keeps
// its place until it is heard of again, one of which nobody knows what it did
// until it was released.
func (m *member) mayGo() bool { return m.step == idle && !m.silent && !m.unknown }

// owes reports whether a run that ends has to wait for the host first: for
// the answer to its command, for its checks or for its undrain hook. Each of
// these has its limit, so that each run ends (design.md 5, invariant 7).
func (m *member) owes() bool { return m.step >= draining && m.step <= undraining }

// left reports whether its stage waits for the host.
func (m *member) left() bool { return m.final == "" || m.owes() }

// asked returns the command that the host has yet to answer.
func (m *member) asked() message.Action {
	switch m.step {
	case preparing:
		return message.Prepare
	case upgrading:
		return message.Upgrade
	case rebooting:
		return message.Reboot
	}
	if m.unknown { // What another of its workers says proves nothing.
		return ""
	}
	return m.late
}

func (m *member) slotSince() time.Time {
	switch {
	case m.slot:
		return m.slotAt
	case m.silent:
		return m.silentAt
	}
	return time.Time{}
}

// slotReason says why the host counts as out of service.
func (m *member) slotReason() string {
	switch {
	case m.slot && m.unknown:
		return "nobody knows what it did"
	case m.slot && m.stranded != "":
		return "it has not answered " + string(m.stranded) + " of a run before"
	case m.slot && m.takenAt.IsZero() && m.final != HostFailed:
		if m.silent {
			return notWell + ", and is silent"
		}
		return notWell
	case m.slot && m.late != "":
		return "it has not answered " + string(m.late)
	case m.slot && m.final != "" && m.undrain:
		return "it is not undrained"
	case m.slot && m.final == HostFailed:
		return "it failed and is not well again"
	case m.slot:
		return "it is being upgraded"
	case m.silent:
		return "it is silent"
	}
	return ""
}

func (s *State) view(m *member) Host {
	reason := m.slotReason()
	if reason != "" && m.final != "" && !strings.Contains(m.text, m.trouble) {
		reason += ": " + m.trouble
	}
	return Host{
		Name: m.name, Stage: s.stages[m.stage].Name, Status: m.status(), Since: m.since, Error: m.text, Note: m.note,
		Slot: m.slotSince(), SlotReason: reason, Took: m.took,
	}
}
