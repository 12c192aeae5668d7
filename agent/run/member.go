package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// Status is where a host of a run stands, as people see it.
type Status string

// The statuses of a host.
const (
	Pending       Status = "pending"
	HostPreparing Status = "preparing"
	Prepared      Status = "prepared"
	Draining      Status = "draining"
	HostUpgrading Status = "upgrading"
	RebootPending Status = "reboot-pending"
	Rebooting     Status = "rebooting"
	Checking      Status = "checking"
	Upgraded      Status = "upgraded"
	HostFailed    Status = "failed"
	Skipped       Status = "skipped"
	Unreachable   Status = "unreachable"
)

// Statuses lists the statuses of a host.
func Statuses() []Status {
	return []Status{
		Pending, HostPreparing, Prepared, Draining, HostUpgrading, RebootPending, Rebooting, Checking, Upgraded, HostFailed, Skipped, Unreachable,
	}
}

// Final reports whether a host stays in this status for the rest of the run.
func (s Status) Final() bool {
	return s == Upgraded || s == HostFailed || s == Skipped || s == Unreachable
}

// hostPhase is where a host stands in its run. A host that has its final
// status may still have to be undrained.
type hostPhase int

const (
	// unasked is before its prepare, preparing before its answer to that.
	unasked hostPhase = iota
	preparing
	// idle is prepared and not admitted.
	idle
	// checkingBefore is before the outcome of the checks before it, ready
	// before its slot; one that is ready for too long is checked anew.
	checkingBefore
	ready
	// draining is before the outcome of the drain hook, drained before the
	// upgrade is sent.
	draining
	drained
	upgrading
	// rebootDue is before the reboot is sent.
	rebootDue
	rebooting
	checkingAfter
	undraining
	// done has nothing more to come, but for what the host owes.
	done
)

// moves lists, for each phase, those that may follow it. What is not listed
// cannot happen. Every phase but done may be followed by done.
var moves = [done + 1][]hostPhase{
	unasked:        {preparing},
	preparing:      {idle},
	idle:           {checkingBefore, draining, upgrading},
	checkingBefore: {idle, ready},
	ready:          {idle, checkingBefore, draining, upgrading},
	draining:       {drained, undraining},
	drained:        {upgrading, undraining},
	upgrading:      {rebootDue, checkingAfter, undraining},
	rebootDue:      {rebooting, undraining},
	rebooting:      {checkingAfter, undraining},
	checkingAfter:  {undraining},
}

// mayBecome reports whether to may follow p.
func (p hostPhase) mayBecome(to hostPhase) bool {
	if to == done {
		return p != done
	}
	for _, allowed := range moves[p] {
		if allowed == to {
			return true
		}
	}
	return false
}

// statuses are what people see of a host in a phase.
var statuses = [done + 1]Status{
	unasked: Pending, preparing: HostPreparing, idle: Prepared, checkingBefore: Checking, ready: Checking,
	draining: Draining, drained: Draining, upgrading: HostUpgrading, rebootDue: RebootPending, rebooting: Rebooting,
	checkingAfter: Checking, undraining: Checking,
}

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
	// Class is the kind of the host's failure, if the host has told it. RolledBack means that
	// the host has undone its upgrade after that.
	Class      message.Class
	RolledBack bool
	// UpToDate means that the host counts as upgraded because it had nothing to change; false
	// also if the host cannot tell.
	UpToDate bool
	// Note is what is to be known of it though it did not fail.
	Note string
	// Slot is since when it counts as out of service, zero while it does not;
	// SlotReason says why it does.
	Slot       time.Time
	SlotReason string
	// Unanswered is the command that the host had not answered when it was released: it may
	// still carry it out. UnansweredOf is the run of the command, 0 if it is not known.
	Unanswered   message.Action
	UnansweredOf uint64
	// GivesUp is when the run stops waiting for it in its present phase; zero when it
	// does not wait for it.
	GivesUp time.Time
	// Took is how long it was out of service for its upgrade; 0 before.
	Took time.Duration
	// Done tells that its stage does not wait for it any more.
	Done bool
	// Told tells that it was told to upgrade.
	Told bool
}

// Changed reports whether a run that has ended has changed a member, or may have: a rollback only if the
// member is back, because it can be told to go back again otherwise.
func Changed(r *State, member Host) bool {
	upgraded := member.Status == Upgraded
	if r.IsRollback() {
		return upgraded
	}
	return member.Told && (!upgraded || !member.UpToDate)
}

// member is what a run knows of a host.
type member struct {
	// Host is its entry in the roster, whose group is the index of its stage. The roster
	// changes it, within edit.
	*roster.Host
	phase hostPhase
	// final is its final status; empty before it has one.
	final Status
	// since is when phase or final changed last.
	since      time.Time
	text, note string
	// class is that of the host's last answer; empty for a success. rolledBack means that it
	// has undone its upgrade, upToDate that it had nothing to change.
	class      message.Class
	rolledBack bool
	upToDate   bool
	// unable means that it has answered that it cannot prepare, and that this does not pass by itself.
	unable bool

	// takenAt is when this run took the host out of service, took how long its
	// upgrade kept it out; zero before.
	takenAt time.Time
	took    time.Duration
	// told means that it was told to upgrade.
	told bool
	// leftOut means that it was left out, because it was silent when the run was opened,
	// or had not answered a command of an earlier run when the others were prepared.
	leftOut bool
	// epoch is that of the worker that was prepared.
	epoch uint64
	// attempt counts the tasks of the host. ranAt is when its last task failed, and
	// trouble why; zero after a task that passed.
	attempt int
	ranAt   time.Time
	trouble string
	// busy is why the host is passed over; nil while it is not. busySince is since when
	// it is, and timesBusy counts how often the run was told so.
	busy      *message.NotNow
	busySince time.Time
	timesBusy int
	// passedAt is when the checks before the host passed; zero when they have to
	// pass again.
	passedAt time.Time

	// moves counts the phases of the host: a ticket of an earlier phase is void.
	moves int
	// hash orders the hosts of a stage with a splay. position is that of the host in
	// the order of its stage; queued says in which queues of candidates it stands.
	hash     uint64
	position int
	queued   [2]bool
}

// status is what people see.
func (m *member) status() Status {
	if m.final != "" {
		return m.final
	}
	return statuses[m.phase]
}

// isCandidate reports whether the host may be admitted: it is prepared and was not
// admitted yet. A silent host keeps its position until it is heard of again. A host of
// which nobody knows what it did is no candidate before somebody releases it, and a
// host that is busy none before it is idle, and one that is locked none before it is unlocked.
func (m *member) isCandidate() bool {
	return m.phase == idle && !m.IsSilent() && !m.IsLocked() && !m.Owes().Look && m.busy == nil
}

// isAwaited reports whether the run waits for the host's answer to prepare, sent or not.
// It does not wait for a host that has not answered a command of an earlier run: that
// may never answer.
func (m *member) isAwaited() bool { return m.phase <= preparing && !m.owesBefore() }

// owesBefore reports whether the host has not answered a command of an earlier run, released
// or not.
func (m *member) owesBefore() bool { return m.unansweredBefore() != "" }

// unansweredBefore returns the command of an earlier run that the host has not answered; empty
// for none.
func (m *member) unansweredBefore() message.Action {
	if works, before := m.Works(); before && works != "" {
		return works
	}
	if m.Before() {
		return m.Owes().Answer
	}
	return ""
}

// isAdmitted reports whether the host is being checked before its upgrade, or has
// passed these checks and has no slot yet.
func (m *member) isAdmitted() bool { return m.phase == checkingBefore || m.phase == ready }

// underWay reports whether a run has to wait for the host before it can end: for
// the answer to a command, for its checks or for its undrain hook. Each of these
// waits has a limit, so that each run ends.
func (m *member) underWay() bool { return m.phase >= draining && m.phase <= undraining }

// left reports whether its stage waits for the host.
func (m *member) left() bool { return m.final == "" || m.underWay() }

// asked returns the command that the host has yet to answer.
func (m *member) asked() message.Action {
	switch m.phase {
	case preparing:
		return message.Prepare
	case upgrading:
		return message.Upgrade
	case rebooting:
		return message.Reboot
	}
	if works, before := m.Works(); works != "" && !before {
		return works
	}
	if m.Before() {
		return ""
	}
	return m.Owes().Answer
}

// hasLateAnswer reports whether an answer of the host is one that the run does not wait for
// any more.
func (m *member) hasLateAnswer() bool {
	works, _ := m.Works()
	return m.Owes().Answer != "" || works != ""
}

// ends gives a host its final status, within edit. A host that was drained is undrained.
func (s *State) ends(i int, status Status, text string, at time.Time) {
	s.roster.LetGo(i, at)
	m := &s.members[i]
	m.final, m.text, m.since = status, text, at
	if m.Owes().Undrain && m.phase != undraining {
		m.phase, m.ranAt = undraining, time.Time{}
		return
	}
	m.phase = done
}

// withdraw takes the admission of a host back, within edit.
func (s *State) withdraw(i int, at time.Time) {
	s.roster.LetGo(i, at)
	m := &s.members[i]
	m.phase, m.since, m.attempt = idle, at, m.attempt+1
}

// setBack follows the log's clock that was set back.
func (m *member) setBack(now time.Time) {
	for _, t := range []*time.Time{&m.since, &m.takenAt, &m.ranAt, &m.passedAt, &m.busySince} {
		*t = times.Earlier(*t, now)
	}
}

// replyOf returns what a reply says. A reply that cannot be read is a failure:
// the host has used up its one answer, so waiting for another is vain. A worker
// of another epoch than the one that was prepared does not know what that one
// did, whatever it says.
func (m *member) replyOf(r *message.Decoded) message.Reply {
	var result message.Result
	failed := message.Failed
	if r.Outcome == message.Unknown {
		failed = message.Unknown
	}
	switch {
	case r.Reply == nil:
		result = message.NotDone(failed, "", fmt.Sprintf("its reply to %s cannot be read: %v", r.Action, r.Err))
	case r.Reply.Action != r.Action:
		result = message.NotDone(failed, "", fmt.Sprintf("its reply to %s speaks of %s", r.Action, r.Reply.Action))
	default:
		result = r.Reply.Result
	}
	if r.Action != message.Prepare && r.Epoch != m.epoch && result.Outcome != message.Unknown {
		result = message.NotDone(message.Unknown, result.Class, fmt.Sprintf("another worker answered in place of the one that was prepared, so what that one did is unknown; the answer was: %s", result))
	}
	return message.Reply{Action: r.Action, Result: result}
}

// view is the host as others see it, in the stage of a name.
func (m *member) view(stage string) Host {
	reason := m.Reason()
	if reason != "" && m.final != "" && !strings.Contains(m.text, m.trouble) {
		reason += ": " + m.trouble
	}
	note := m.note
	if m.isBusy() {
		note = "it is busy " + m.busy.String()
	}
	works, _ := m.Works()
	return Host{
		Unanswered: works, UnansweredOf: m.WorksFor(),
		Name: m.Name, Stage: stage, Status: m.status(), Since: m.since, Error: m.text, Class: m.class, RolledBack: m.rolledBack, Note: note,
		UpToDate: m.final == Upgraded && m.upToDate, Slot: m.OutSince(), SlotReason: reason, Took: m.took, Done: !m.left(), Told: m.told,
	}
}

func (s *State) view(i int) Host {
	m := &s.members[i]
	h := m.view(s.stages.list[m.Group].Name)
	switch works, before := m.Works(); {
	case m.phase > preparing || s.Over():
	case before && works != "":
		h.Note = fmt.Sprintf("the run does not wait for it: it has not answered %s of an earlier run", works)
	case s.isLate(m):
		h.Note = "it is late: the run has begun without it"
	}
	h.GivesUp = s.givesUp(m)
	return h
}

// Epoch is that of the worker of a member that was prepared; 0 when none was.
func (s *State) Epoch(host string) uint64 {
	i, err := s.member(host)
	if err != nil {
		return 0
	}
	return s.members[i].epoch
}

// ChecksHosts reports whether the run checks each host after its upgrade. Each command of
// the run says so: a host with more than one bootable system confirms the new one when
// these checks have passed, and not before.
func (s *State) ChecksHosts() bool { return s.rollout.checksHosts() }

// member returns the index of a member.
func (s *State) member(host string) (int, error) {
	i, known := s.roster.Index(host)
	if !known || !s.isMember(i) {
		return 0, fmt.Errorf("%s is not in run %d", host, s.Key())
	}
	return i, nil
}

// hasMember reports whether a host is a member of the run.
func (s *State) hasMember(host string) bool {
	i, known := s.roster.Index(host)
	return known && s.isMember(i)
}

// isMember reports whether a host of the roster is a member: these come first.
func (s *State) isMember(i int) bool { return i < len(s.members) }

// indexOf returns the index of a host that is in the roster.
func (s *State) indexOf(host string) int {
	i, _ := s.roster.Index(host)
	return i
}

// move brings a host to another phase, if the table of moves has it.
func (s *State) move(i int, to hostPhase, at time.Time) error {
	m := &s.members[i]
	if !m.phase.mayBecome(to) {
		return fmt.Errorf("host %s cannot go from %s to %s", m.Name, m.status(), statuses[to])
	}
	g := &s.stages.list[m.Group]
	if to == checkingBefore || to == draining || to == upgrading {
		s.stageBegins(g, at)
	}
	s.edit(i, at, func(m *member) { m.phase, m.since = to, at })
	return nil
}

// members are the members of a run, in the order of their stages.
type members []member

// of returns the members of a stage.
func (all members) of(g *stage) members { return all[g.first : g.first+g.Size] }

// at returns the names of the hosts in a phase.
func (all members) at(at hostPhase) []string {
	var names []string
	for i := range all {
		if all[i].phase == at {
			names = append(names, all[i].Name)
		}
	}
	return names
}

// awaited returns the hosts whose answer to prepare is waited for.
func (all members) awaited() []string {
	var names []string
	for i := range all {
		if all[i].isAwaited() {
			names = append(names, all[i].Name)
		}
	}
	return names
}

// names returns the hosts whose status matches.
func (all members) names(matches func(Status) bool) []string {
	var names []string
	for i := range all {
		if m := &all[i]; matches(m.status()) {
			names = append(names, m.Name)
		}
	}
	return names
}

// list lists the hosts whose status matches, as people read it.
func (all members) list(matches func(Status) bool) string { return list(all.names(matches)) }
