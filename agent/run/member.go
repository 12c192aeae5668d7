package run

import (
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
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
	// Host is its entry in the roster. Only edit may change it.
	*roster.Host
	stage int
	step  step
	// final is its status once that will not change, empty before.
	final Status
	// since is when step or final changed last.
	since      time.Time
	text, note string

	// takenAt is when this run took it out of service; zero before.
	takenAt time.Time
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

// mayGo reports whether the host may have its turn: one that is silent keeps
// its place until it is heard of again, one of which nobody knows what it did
// until it was released.
func (m *member) mayGo() bool { return m.step == idle && !m.IsSilent() && !m.Owes.Look }

// hasTurn reports whether the host is being checked before its upgrade, or was.
func (m *member) hasTurn() bool { return m.step == checkingBefore || m.step == ready }

// underWay reports whether a run that ends has to wait for the host first: for
// the answer to its command, for its checks or for its undrain hook. Each of
// these has its limit, so that each run ends (design.md 5, invariant 7).
func (m *member) underWay() bool { return m.step >= draining && m.step <= undraining }

// left reports whether its stage waits for the host.
func (m *member) left() bool { return m.final == "" || m.underWay() }

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
	if m.Before {
		return ""
	}
	return m.Owes.Answer
}

func (s *State) view(m *member) Host {
	reason := m.Reason()
	if reason != "" && m.final != "" && !strings.Contains(m.text, m.trouble) {
		reason += ": " + m.trouble
	}
	return Host{
		Name: m.Name, Stage: s.stages[m.stage].Name, Status: m.status(), Since: m.since, Error: m.text, Note: m.note,
		Slot: m.OutSince(), SlotReason: reason, Took: m.took,
	}
}
