// Package run is a run as a fold over the log: State is what the records amount to,
// Next is what has to happen now.
//
// It decides what a run does and reads each reply. It does no I/O, has no clock
// and starts no goroutine: a controller that folds the same records gets the same
// next decision, after any crash. Which hosts are out of service outlives a run:
// that is in package roster, whose roster the ledger keeps.
//
// The files, from the top down: ledger.go folds a log of many runs, environment.go keeps those
// of one environment, opening.go moves hosts between environments when a run is opened, order.go
// says whether a run follows those of other environments, turns.go
// says which run is asked next, next.go decides the next decision of a run, start.go what keeps the next host from starting, ending.go
// and timeout.go how the run ends and what it stops waiting for, patience.go how long it
// waits for hosts that are late, request.go what people may ask, waiting.go tells what it
// waits for, overdue.go which hosts take unusually long, forecast.go when it will end, and together.go when runs
// will that share disruption budgets.
// fold.go applies records, task.go makes tasks, edit.go keeps the parts together when
// a host changes, service.go asks the roster.
//
// The parts know nothing of State and can be read by themselves: rules.go is the policy and
// what follows from it, deadline.go the end at the latest, control.go who paused or aborted
// the run, failures.go the failures against max-failures, fleet.go the checks of the fleet,
// stage.go the stages, step.go the steps among them, candidates.go the order of their hosts, busy.go hosts that say "not
// now", queue.go the hosts in each phase, counts.go the numbers of hosts, member.go is one
// host.
//
// # What holds
//
// Members that were silent before the run was opened are left out as unreachable; those
// that fell silent in an earlier run hold a slot, the others do not. With absent "count",
// and when they owe something, they take part if they answer within the limit. A member
// that has not answered a command of an earlier run takes part if it answers before the
// others have: nobody waits for it. All other members are prepared. No host is upgraded
// before each of them has answered or its time is up, and at least min-prepared members
// are prepared. A member that was deleted or
// released counts as prepared.
//
// Once min-prepared members are prepared, the run waits for the others no longer than its
// patience and then begins without them: they are late. Each joins its stage as soon as it
// is prepared. When nobody else is left in the stage, it waits for those that are late no
// longer than the same patience, and leaves them out. A stage of which no host has begun is
// not passed over in this way while others follow it: it waits until the limit of prepare,
// and when all its hosts have failed by then, that counts as too many failures.
//
// A host goes through the checks before it, its slot, drain, upgrade, reboot, the
// checks after it, and undrain. It is out of service from its slot until all of that
// has passed. A host that failed is out of service until its late answer has come, it
// is undrained and its checks pass; they are tried again each 30 s. A host that falls
// silent during a run is out of service until it is heard of, also beyond the end of
// the run. Deletion and release end all of this. No host
// starts while as many hosts of its stage are out of service as may be; hosts that
// fall silent later can exceed that. The result of the checks before a host is valid
// for a while, and not beyond a pause: a host that has waited for its slot for longer
// is checked again.
//
// A host that is out of service when a run ends is out of service in the next run, until
// what it owes has come: an answer, its undrain hook, its checks. Such hosts go first in
// their stage and need no slot, but no more of them are upgraded at once than may be out of
// service. A host that does not know what it did is not touched before somebody releases
// it. A host that counts in a stage without being a member, such as a host that a retry
// leaves out, takes a slot while it is out of service.
//
// Each host that was drained is undrained, and a run does not end before the undrain was
// tried or its limit has passed, unless the host was deleted or the run ends at once.
//
// At max-failures a run stops (hosts under way are finished, with their reboots, and
// the rest is skipped), pauses (and again at the next failure, unless whoever resumes it
// resets its failure count), or goes on.
//
// No command follows not-after or an abort. Hosts under way are waited for until
// their limit, or with overrun "stop" until not-after. At not-after plus overrun-limit
// the run ends, whatever its hosts do: they are left as they are and stay out of
// service. No host starts that would not be done by not-after, by the time that other
// hosts have taken; when no host is under way either, the run is partial.
//
// A stage may have a step in place of hosts. The step begins in its turn, once the hosts of the
// stages before are done, and ends before a host of a later stage begins. Nothing else begins while
// it is under way. Its outcome is awaited for its limit, and then it has failed. A step that failed
// stops or pauses the run at once, however many hosts may fail; whoever resumes the run has it begun
// again. With on-failure "continue" the run goes on without it, and is partial. No step begins whose
// timeout does not fit before not-after.
//
// Each wait has a limit, if only not-after, so each run ends.
package run

import (
	"iter"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/roster"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
)

// Phase is how far a run has come.
type Phase string

// The phases, in the order in which a run goes through them.
const (
	Open      Phase = "open"
	Preparing Phase = "preparing"
	Upgrading Phase = "upgrading"
	Finished  Phase = "finished"
)

// Result is how a run ended.
type Result string

// The results of a run.
const (
	// Completed means that every member was upgraded.
	Completed Result = "completed"
	// Partial means that the run reached its end without upgrading all members.
	Partial Result = "partial"
	// Failed means that the run stopped because of what failed.
	Failed Result = "failed"
	// IsAborted means that somebody aborted it.
	IsAborted Result = "aborted"
	// TimedOut means that not-after came first.
	TimedOut Result = "timed-out"
)

// Origin is how a run began: who opened it, when and why.
type Origin struct {
	// OpenedSeq is the sequence of the event that opened the run.
	OpenedSeq uint64
	OpenedAt  time.Time
	Trigger   string
	By, Why   string
	// RetryOf is the run that this one retries: the hosts that it did not upgrade, and the steps that failed; 0 for none.
	RetryOf uint64
	// RollsBack are the runs that it rolls back; zero for none. UndoOutputs are the outputs of the steps
	// that these have done, in this order.
	RollsBack   message.Interval
	UndoOutputs []message.StepOutputs
	// RequestID is the id of the request that started the run; empty for none.
	RequestID string
	// Window is when the window of the run opened, WindowEnd when that closes; zero
	// for a run outside of all windows.
	Window, WindowEnd time.Time
	// WindowUsed means that an earlier run has used up the window.
	WindowUsed bool
	// Release is what the run installs; nil for a run without one. Nothing changes it.
	Release *release.Pin
	// Exempt are the hosts that the rollout left out.
	Exempt []rollout.Exempt
	// Chosen means that somebody has chosen some hosts of the environment for it.
	Chosen bool
	// Follows are the runs of other environments that it follows, OverrideAfter is why somebody
	// started it before they had completed; see Order.
	Follows       []message.Follow
	OverrideAfter string
	// Until is the stage after which the run ends; empty if it goes on to the last one.
	Until string
	// Reached is what earlier runs have done of its rollout; nil if the next run does not go on where
	// this one ends.
	Reached *message.Reached
	// Promotion is how far the environment had come to a release before the run; nil if it had gone to
	// none.
	Promotion *message.Promotion
}

// End is how a run ended; zero while it has not.
type End struct {
	Result Result
	Reason string
	// EndedSeq and EndedAt are of the event that finished it.
	EndedSeq uint64
	EndedAt  time.Time
}

// State is one run. Only Fold changes it.
type State struct {
	Origin
	Control
	Deadline
	End
	// ID is the sequence of the run's prepare; 0 before it.
	ID    uint64
	Phase Phase
	// LastSeq is the sequence of the last record that changed the run, also after
	// its end.
	LastSeq uint64
	// TakenSeq is the sequence of the last record by which the run let a host leave service;
	// 0 before.
	TakenSeq uint64

	rollout rules
	// roster is the ledger's, or was until the next run was opened: members come first in
	// it, in their order, then hosts that are no members.
	roster *roster.Roster
	// stepTimes are the environment's.
	stepTimes StepTimes
	members   members
	stages    stages
	queues    queues
	counts    counts
	// sentAt is when prepare was sent, enoughAt since when enough members are prepared to
	// begin; zero before.
	sentAt    time.Time
	enoughAt  time.Time
	failures  failures
	fleet     fleet
	start     startChecks
	durations pace
	// paces are how long hosts took for each phase.
	paces [done + 1]pace
	// touched means that the run has taken a host out of service, or begun a step.
	touched bool
	// closedAt is when the point of no return has begun; zero before.
	closedAt time.Time
	// after is how far the runs have come once this one has ended; nil before.
	after *message.Reached
	// packages are those of its release; nil if it installs none. differing is what the plans of its
	// hosts were told to differ in; nil before.
	packages  *release.Packages
	differing *message.Differing
	// busyHosts are the members that are passed over because they are busy.
	busyHosts busyHosts
	// changed is the time of the last record that changed the run.
	changed time.Time
	// carried means that this is only what hosts owe since a run that is not known any more.
	carried bool
}

// open makes the run that an event opened, on the roster that the event began. Members
// go in the order given.
func open(r message.Record, e message.Opened, hosts *roster.Roster, took StepTimes) *State {
	s := &State{
		Origin: Origin{
			OpenedSeq: r.Seq, OpenedAt: r.Time, Trigger: e.Trigger, By: e.By, Why: e.Why, RetryOf: e.RetryOf, RequestID: e.RequestID, Release: e.Release,
			Window: e.Window, WindowEnd: e.WindowEnd, WindowUsed: e.WindowUsed, Exempt: e.Exempt,
			Chosen: e.Chosen || e.RetryOf != 0, Follows: e.Follows, OverrideAfter: e.OverrideAfter,
			Until: e.Until, Reached: e.Reached, Promotion: e.Promotion, RollsBack: e.RollsBack(), UndoOutputs: e.Outputs,
		},
		Deadline: newDeadline(e.NotAfter, e.Rollout.OverrunLimit.Duration()), Phase: Open, LastSeq: r.Seq, changed: r.Time,
		rollout: newRules(e.Rollout, len(e.Members), e.NotAfter.Sub(r.Time)), failures: failures{most: e.Rollout.MaxFailures},
		packages: installed(e.Release), roster: hosts, stepTimes: took, counts: counts{status: map[Status]int{Pending: len(e.Members)}}, busyHosts: busyHosts{},
	}
	if s.rollout.Paused {
		s.Paused = &Pausing{By: message.ByRollout, At: r.Time}
	}
	if !s.IsRollback() {
		_, s.closedAt = e.Reached.Closed()
	}
	s.enlist(len(e.Members))
	s.start = newStartChecks(&s.rollout.Resolved, r.Time)
	s.leaveOutSilent(r.Time)
	return s
}

// enlist makes the members and their stages.
func (s *State) enlist(hosts int) {
	s.members = make(members, hosts)
	for i := range s.members {
		s.members[i].Host = s.roster.Host(i)
		s.counts.add(&s.members[i], 1)
	}
	first := 0
	for _, planned := range s.rollout.Stages {
		g := stage{ResolvedStage: planned, first: first, left: planned.Size}
		if planned.Step != nil {
			g.left = 1
		}
		if !s.IsRollback() {
			g.waits.stage, g.waits.Soak = reached.SoakBefore(s.Reached, g.Name)
		}
		g.unprepared = len(s.members.of(&g).awaited())
		s.stages.list = append(s.stages.list, g)
		first += planned.Size
	}
	if len(s.stages.list) > 0 {
		s.stages.enter()
	}
}

// leaveOutSilent leaves out the members that were silent before the run was opened, if
// its policy says so. Those that owe something take part: an answer to prepare is what
// shows that they are well.
func (s *State) leaveOutSilent(at time.Time) {
	if s.rollout.Absent != rollout.Skip {
		return
	}
	for i := range s.members {
		if m := &s.members[i]; m.IsAbsent() || m.IsSilent() && !m.HasSlot() {
			s.edit(i, at, func(m *member) {
				m.leftOut = true
				s.start.answer(m.Name, "")
				s.ends(i, Unreachable, "it was silent before the run was opened", at)
			})
		}
	}
}

// Hosts returns the members in the order of their stages. The caller owns the
// slice.
func (s *State) Hosts() []Host {
	return slices.AppendSeq(make([]Host, 0, len(s.members)), s.AllHosts())
}

// AllHosts returns the same members one by one.
func (s *State) AllHosts() iter.Seq[Host] {
	return func(yield func(Host) bool) {
		for i := range s.members {
			if !yield(s.view(i)) {
				return
			}
		}
	}
}

// Host returns one member; false when the host is none.
func (s *State) Host(name string) (Host, bool) {
	i, err := s.member(name)
	if err != nil {
		return Host{}, false
	}
	return s.view(i), true
}

// HasUpgraded reports whether a host is a member and was upgraded.
func (s *State) HasUpgraded(host string) bool {
	i, err := s.member(host)
	return err == nil && s.members[i].final == Upgraded
}

// Count returns how many members are in a status.
func (s *State) Count(status Status) int { return s.counts.status[status] }

// UpToDate returns how many of the upgraded members had nothing to change.
func (s *State) UpToDate() int { return s.counts.upToDate }

// Size returns how many members there are.
func (s *State) Size() int { return len(s.members) }

// Rollout is what the run was opened with.
func (s *State) Rollout() rollout.Resolved { return s.rollout.Resolved }

// Key identifies the run to people: its ID, or the sequence at which it was
// opened for one that ended before its prepare.
func (s *State) Key() uint64 {
	if s.ID == 0 {
		return s.OpenedSeq
	}
	return s.ID
}

// UsesWindow reports whether the window of the run has had its run: this run has
// touched a host, begun a step or was aborted by a person, or an earlier run was so.
func (s *State) UsesWindow() bool { return s.WindowUsed || s.touched || s.aborted != nil }

// IsRollback reports whether the run rolls back others.
func (s *State) IsRollback() bool { return !s.RollsBack.IsZero() }

// FoundNoWayBack reports whether the run is a rollback that has touched nothing because too few hosts
// could prepare it, none of them for a reason that may pass by itself: another one would end like it.
func (s *State) FoundNoWayBack() bool {
	if !s.IsRollback() || s.touched || s.Result != Failed {
		return false
	}
	unable := 0
	for i := range s.members {
		if s.members[i].unable {
			unable++
		}
	}
	return unable > 0 && unable == s.counts.status[HostFailed]
}

// Over reports whether the run has ended.
func (s *State) Over() bool { return s.Phase == Finished }
