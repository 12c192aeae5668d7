package run

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/times"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Act is what a decision asks for.
type Act int

// The acts of a decision.
const (
	// Wait asks for nothing before Decision.Until or the next record.
	Wait Act = iota
	// Send asks for Decision.Command to be appended to the log.
	Send
	// Note asks for Decision.Event to be appended to the log. After a request it is
	// what that comes to.
	Note
	// Refuse answers a request with Decision.Refused.
	Refuse
)

// Decision is what has to happen next.
type Decision struct {
	Act     Act
	Command message.Command
	Event   message.Event
	// Refused says why a request is refused: it is a *Refused.
	Refused error
	// Until is when to ask again if no record comes before.
	Until time.Time
	// Task is the task of the run itself that a Wait waits for, not before TaskFrom: the checks
	// of the fleet, or a step. Nil when there is none.
	Task     *message.Task
	TaskFrom time.Time
	// Ask are the disruption budgets whose queries have to be answered before a host may start.
	Ask []string
}

// Seen is what a controller knows besides the log when it asks for the next decision.
// It says all that it knows: what the run knows already changes nothing.
type Seen struct {
	// Request is what somebody asks of the run; nil when nobody does.
	Request *Request
	// Deleted are the deleted hosts, with who deleted each and why.
	Deleted map[string]Deletion
	// JudgeAt is when the controller can tell again who is silent and what has
	// taken too long: before that it has not listened for long enough.
	JudgeAt time.Time
	// Silent are hosts that are not heard of, Heard hosts that are. Of a host that
	// is in neither nothing has changed since the run was told of it.
	Silent, Heard []string
	// Neighbours are the cells of those silent hosts that the run does not know: it is told of
	// their silence if it shares one of these cells.
	Neighbours map[string][]message.Cell
	// Budgets are the disruption budgets as they are now; nil when they are those of the log.
	Budgets *message.Budgeted
	// Freeze is the freeze that is in force or comes next; nil when there is none.
	Freeze *message.Frozen
	// Busy is what hosts have said in their last heartbeat: why they are not to be upgraded
	// now, or nil. A host that was not heard of is not in it.
	Busy map[string]*message.NotNow
	// Doing returns what a host has told last of its present phase; empty when it
	// has told nothing. Nil means that no host has.
	Doing func(host string) string
	// HostOf returns the host on which a step is to be done: the first that is present and that it
	// matches; empty when there is none. Nil means that there is none.
	HostOf func(*rollout.Step) string
	// Withdrawn tells that the release of the run was withdrawn, by whom and why; nil while it was not.
	Withdrawn *message.Aborted
	// Differing is what the plans of the hosts differ in, and who is refused because of that; nil when
	// there is nothing to tell.
	Differing *message.Differing
	// Comparing tells that plans have yet to be compared before a host may start.
	Comparing bool
	// Hold says why no run may start a host now; nil when runs may.
	Hold *message.Paused
	// Outcomes are the outcomes of tasks.
	Outcomes []message.Outcome
	// Answers are those to the queries of the disruption budgets that have one, by budget.
	Answers map[string]Answer
}

func (s Seen) doing(host string) string {
	if s.Doing == nil {
		return ""
	}
	return s.Doing(host)
}

// Next returns the next decision of a run, as Environment.Next does. Whatever it waits for, the step
// that is under way goes on.
func (s *State) Next(now time.Time, seen Seen) Decision {
	next := s.nextAct(now, &seen)
	if next.Act != Wait {
		return next
	}
	if t, underWay := s.stepTask(); underWay {
		next.Task, next.TaskFrom = new(t), time.Time{}
	}
	return next
}

func (s *State) nextAct(now time.Time, seen *Seen) Decision {
	if seen.Request != nil {
		e, err := s.decide(*seen.Request, now)
		if err != nil {
			return Decision{Act: Refuse, Refused: err}
		}
		return note(e)
	}
	if e := s.tellDeleted(seen.Deleted); e != nil {
		return note(e)
	}
	switch {
	case s.Over():
		if e := s.tellPresence(&Seen{Heard: seen.Heard}); e != nil {
			return note(e)
		}
		return Decision{}
	case s.AwaitsNobody():
		return s.windDown(now, IsAborted, time.Time{})
	case now.Before(seen.JudgeAt):
		return Decision{Until: seen.JudgeAt}
	}
	if e := s.tell(seen); e != nil {
		return note(e)
	}
	return s.proceed(now, seen)
}

// tell returns the first event of what the run does not know yet; nil when it knows everything.
func (s *State) tell(seen *Seen) message.Event {
	return cmp.Or(s.tellPresence(seen), s.tellBudgets(seen), s.tellFreeze(seen), s.tellWithdrawn(seen),
		s.tellDiffering(seen), s.tellHold(seen), s.tellOutcome(seen), s.tellBusy(seen))
}

// Deletion is who has deleted a host, and why.
type Deletion struct{ By, Why string }

// tellDeleted returns the event of the hosts that were deleted and still matter, by
// whoever has deleted the first of them: the others' comes next. Nil when there
// are none.
func (s *State) tellDeleted(deleted map[string]Deletion) message.Event {
	var hosts []string
	for host := range deleted {
		if s.Minds(host) {
			hosts = append(hosts, host)
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	slices.Sort(hosts)
	first := deleted[hosts[0]]
	return message.Deleted{Hosts: slices.DeleteFunc(hosts, func(host string) bool { return deleted[host] != first }), By: first.By, Why: first.Why}
}

// tellPresence returns the event of the hosts that are heard of again, or of those
// that have fallen silent; nil when the run knows of all of them.
func (s *State) tellPresence(seen *Seen) message.Event {
	news := func(hosts []string, silent bool) []string {
		if len(hosts) == 0 {
			return nil
		}
		return slices.DeleteFunc(slices.Sorted(slices.Values(hosts)), func(host string) bool { return !s.Outdated(host, silent) })
	}
	if hosts := news(seen.Heard, false); len(hosts) > 0 {
		return message.Recovered{Hosts: hosts}
	}
	if hosts := news(seen.Silent, true); len(hosts) > 0 {
		return message.Silent{Hosts: hosts}
	}
	return s.tellNeighbours(seen.Neighbours)
}

// tellNeighbours returns the event of the first host that fell silent and shares a cell with hosts
// of the run, though it is not in its roster; nil when there is none.
func (s *State) tellNeighbours(neighbours map[string][]message.Cell) message.Event {
	for _, host := range slices.Sorted(maps.Keys(neighbours)) {
		if cells := s.SharedCells(host, neighbours[host]); len(cells) > 0 {
			return message.Silent{Hosts: []string{host}, Cells: cells}
		}
	}
	return nil
}

// SharedCells returns the counted cells of a host if a host of the run is in one of them. It returns
// none for a host that is already in the roster of the run.
func (s *State) SharedCells(host string, cells []message.Cell) []message.Cell {
	if s.Over() || s.Knows(host) {
		return nil
	}
	return message.Only(s.roster.Shares(cells), func(of string) bool { return of == host })
}

// tellBudgets returns the event that the disruption budgets were edited; nil when they were not.
func (s *State) tellBudgets(seen *Seen) message.Event {
	if seen.Budgets == nil || s.roster.BudgetsAre(seen.Budgets.Budgets) {
		return nil
	}
	return *seen.Budgets
}

// Outdated reports whether a run has to be told that a host is silent, or that
// it is heard of. The silence of some hosts says nothing: of those that are no
// members, were left out, or are out of service anyway.
func (s *State) Outdated(host string, silent bool) bool {
	known, matters := s.silence(host)
	return known != silent && (known || matters)
}

// tellFreeze returns the event that has the run end with the next freeze, if that
// begins before its not-after. The log has the last word: the event bears its
// time, and changes nothing when the freeze is over by that.
func (s *State) tellFreeze(seen *Seen) message.Event {
	if seen.Freeze == nil || !seen.Freeze.NotAfter.Before(s.NotAfter) {
		return nil
	}
	return *seen.Freeze
}

// tellWithdrawn returns the event that ends a run whose release was withdrawn: no further host gets it,
// and the hosts under way finish. Nil if it was not withdrawn, or somebody has aborted the run.
func (s *State) tellWithdrawn(seen *Seen) message.Event {
	if seen.Withdrawn == nil || s.aborted != nil {
		return nil
	}
	return *seen.Withdrawn
}

// tellOutcome returns the event of an outcome that is not on the log yet; nil when
// there is none that the run waits for.
func (s *State) tellOutcome(seen *Seen) message.Event {
	for _, o := range seen.Outcomes {
		if s.Awaits(o) {
			return message.Ran{Outcome: o}
		}
	}
	return nil
}

// proceed returns the next decision of a run once it knows everything: prepare everybody; then
// stage by stage take hosts out of service, as many at once as the stage allows, upgrade
// and reboot them, and put them back; and end.
func (s *State) proceed(now time.Time, seen *Seen) Decision {
	result, ends := s.ending(now)
	if s.Phase == Open {
		return s.prepare(now, result, ends)
	}
	e, until := s.overdue(now)
	switch {
	case e != nil:
		return note(e)
	case s.done(result, ends):
		return s.end()
	case ends:
		return s.addRefusals(s.windDown(now, result, until), seen.Answers)
	}
	if e := s.tellLate(now, seen); e != nil {
		return note(e)
	}
	if decision, some := s.nextCommand(); some {
		return decision
	}
	decision := s.begin(now, seen)
	decision.Until = times.Sooner(times.Sooner(decision.Until, until), s.NotAfter)
	return decision
}

// done reports whether the run has nothing left to do. Whoever notices that
// after not-after only does not make it late.
func (s *State) done(result Result, ends bool) bool {
	doneAt, done := s.stages.doneAt()
	if !done || s.counts.underWay > 0 {
		return false
	}
	return !ends || result == TimedOut && doneAt.Before(s.NotAfter)
}

// prepare begins a run, if there is anybody to prepare and the checks before that have passed.
func (s *State) prepare(now time.Time, result Result, ends bool) Decision {
	nobody := s.counts.unstarted == 0 && !s.isOfSteps()
	switch {
	case ends:
		return finish(result, s.why(result, now))
	case !nobody && s.start.waits > 0:
		return s.askFirst(now)
	}
	if failed := s.start.why(); failed != "" {
		return finish(Failed, "start checks failed: "+failed)
	}
	if nobody {
		return s.end()
	}
	return send(message.Command{Action: message.Prepare, Hosts: s.members.at(unasked), NotAfter: s.NotAfter})
}

// nextCommand returns what has to be sent to a host that is out of service.
func (s *State) nextCommand() (Decision, bool) {
	if i, some := s.queues.front(rebootDue); some {
		return send(message.Command{Action: message.Reboot, Host: s.members[i].Name}), true
	}
	if i, some := s.queues.front(drained); some {
		return send(message.Command{Action: message.Upgrade, Host: s.members[i].Name}), true
	}
	return Decision{}, false
}

// begin starts the next host or step, or says until when none may start.
func (s *State) begin(now time.Time, seen *Seen) Decision {
	if s.blocker(now) != nothing {
		return Decision{Until: s.unblocks(now)}
	}
	if seen.Comparing {
		return Decision{Until: s.unblocks(now)}
	}
	if task, wanted := s.fleetTask(now); wanted {
		decision := Decision{Until: s.unblocks(now), Task: new(task), TaskFrom: s.fleet.from()}
		if now.Before(decision.TaskFrom) {
			decision.Until = times.Sooner(decision.Until, decision.TaskFrom)
		}
		return decision
	}
	if s.stages.current().awaitsStep() {
		return s.beginStep(now, seen)
	}
	i, until, some := s.nextAnswered(now, seen.Answers)
	if !some {
		return Decision{Until: times.Sooner(s.unblocks(now), until), Ask: s.toAsk(seen.Answers)}
	}
	if e := s.passOver(i, seen); e != nil {
		return note(e)
	}
	if s.unchecked(i, now) {
		return note(message.Admitted{Host: s.members[i].Name})
	}
	return s.takeOut(i)
}

// unchecked reports whether the checks before a host have yet to pass, or to
// pass anew.
func (s *State) unchecked(i int, now time.Time) bool {
	m := &s.members[i]
	return len(s.rollout.Checks.BeforeHost) > 0 && (m.phase != ready || !s.rollout.stillCounts(m.passedAt, now))
}

// takeOut gives a host its slot, last of all that comes before its upgrade.
func (s *State) takeOut(i int) Decision {
	if s.rollout.Hooks.Drain != nil || s.rollout.Hooks.Undrain != nil {
		return note(message.Slot{Host: s.members[i].Name})
	}
	return send(message.Command{Action: message.Upgrade, Host: s.members[i].Name})
}

func send(c message.Command) Decision { return Decision{Act: Send, Command: c} }

func note(e message.Event) Decision { return Decision{Act: Note, Event: e} }

func finish(result Result, reason string) Decision {
	return note(message.Finished{Result: string(result), Reason: message.CleanText(reason)})
}

// end finishes a run that has nothing left to do. One in which hosts failed and
// none was upgraded has failed, whatever the rollout does at a failure.
func (s *State) end() Decision {
	failed, done, steps := s.failedSteps()
	reason := s.achieved(done, steps)
	if s.counts.status[Upgraded] == len(s.members) && done == steps {
		return finish(Completed, reason)
	}
	if len(failed) > 0 {
		reason += "; failed steps: " + list(failed)
	}
	if s.counts.status[HostFailed] > 0 {
		reason += "; failed: " + s.members.list(func(st Status) bool { return st == HostFailed })
	}
	if s.counts.status[Unreachable] > 0 {
		reason += "; unreachable: " + s.members.list(func(st Status) bool { return st == Unreachable })
	}
	if s.counts.status[HostFailed]+s.counts.status[Upgraded]+s.counts.status[Unreachable] < len(s.members) {
		reason += "; left out: " + s.members.list(func(st Status) bool { return st != Upgraded && st != HostFailed && st != Unreachable })
	}
	if s.counts.status[Upgraded] == 0 && s.counts.status[HostFailed] > 0 {
		return finish(Failed, reason)
	}
	return finish(Partial, reason)
}

// stepsAre is what steps are that a run has done.
func (s *State) stepsAre() string {
	if slices.ContainsFunc(s.stages.list, func(g stage) bool { return g.Undo }) {
		return "undone"
	}
	return "done"
}

// achieved says what a run has done of its hosts and steps, and where it was to end.
func (s *State) achieved(done, steps int) string {
	var parts []string
	switch {
	case len(s.members) == 0:
	case s.IsRollback():
		parts = append(parts, RolledBack(len(s.members), s.counts.status[Upgraded]))
	default:
		parts = append(parts, Achieved(len(s.members), s.counts.status[Upgraded], s.counts.upToDate))
	}
	if steps > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s %s", done, text.Count(steps, "step", "steps"), s.stepsAre()))
	}
	if s.Until != "" {
		parts = append(parts, "until stage "+s.Until)
	}
	return strings.Join(parts, ", ")
}
