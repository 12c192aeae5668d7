// Package run is a run as a fold over the log: State is what the records amount to,
// Next is what has to happen now.
//
// It decides each step of a run and reads each reply. It does no I/O, has no clock
// and starts no goroutine: a controller that folds the same records gets the same
// next step, after any crash (AV-82). Which hosts are out of service outlives a run:
// that is in package roster.
//
// The files, from the top down: ledger.go folds a log of many runs, next.go decides
// the next step of a run, start.go what keeps the next host from starting, ending.go
// and timeout.go how the run ends and what it stops waiting for, request.go what
// people may ask, waiting.go tells what it waits for, forecast.go when it will end.
// fold.go applies records, task.go makes tasks, edit.go keeps the parts together when
// a host changes, service.go asks the roster.
//
// The parts know nothing of State and can be read alone: rules.go is the policy and
// what follows from it, deadline.go the end at the latest, control.go who paused or
// aborted the run, failures.go the failures against max-failures, fleet.go the checks
// of the fleet, stage.go the stages, candidates.go the order of their hosts, busy.go hosts that say "not now", queue.go
// the hosts at each step, counts.go the numbers of hosts, member.go is one host.
//
// # What holds
//
// Members that were silent before the run was opened are left out as unreachable; those
// that fell silent in an earlier run hold a slot, the others do not. With absent "count",
// and when they owe something, they take part if they answer within the limit. A member
// that has not answered a command of an earlier run takes part if it answers before the
// others have: nobody waits for it. All other members are prepared. No host is upgraded before each of them has answered or its time
// is up, and at least min-prepared members are prepared. A member that was deleted or
// released counts as prepared.
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
// A host that is out of service when a run ends is out of service in the next run,
// until what it owes has come: an answer, its undrain hook, its checks. Such hosts
// go first in their stage and need no slot, but no more of them are upgraded at once
// than may be out of service. A host that does not know what it did is not touched
// before somebody releases it. A host that counts in a stage and is no member, as
// those that a retry leaves alone, takes a slot while it is out of service.
//
// Each host that was drained is undrained, and a run does not end before that was
// tried or its limit has passed, unless the host was deleted or the run ends at once.
//
// At max-failures a run stops (hosts under way are finished, with their reboots, and
// the rest is skipped), pauses (resuming it resets its failure count), or goes on.
//
// No command follows not-after or an abort. Hosts under way are waited for until
// their limit, or with overrun "stop" until not-after. At not-after plus overrun-limit
// the run ends, whatever its hosts do: they are left as they are and stay out of
// service. No host starts that would not be done by not-after, by the time that other
// hosts have taken; when no host is under way either, the run is partial.
//
// Each wait has a limit, if only not-after, so each run ends (design.md 5,
// invariant 7).
package run

import (
	"cmp"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/policy"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
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

// Result is how a run ended (AV-38).
type Result string

// The results of a run.
const (
	// Completed means that every member was upgraded.
	Completed Result = "completed"
	// Partial means that the run came to its end, yet some members were not
	// upgraded.
	Partial Result = "partial"
	// Failed means that the run stopped because of what failed.
	Failed Result = "failed"
	// IsAborted means that somebody aborted it.
	IsAborted Result = "aborted"
	// TimedOut means that not-after came first (AV-59).
	TimedOut Result = "timed-out"
)

// Origin is how a run began: who opened it, when and why.
type Origin struct {
	// OpenedSeq is the sequence of the event that opened the run.
	OpenedSeq uint64
	OpenedAt  time.Time
	Trigger   string
	By, Why   string
	// RetryOf is the run whose failed and skipped hosts these are; 0 for none.
	RetryOf uint64
	// RequestID is the id of the request that started the run; empty for none.
	RequestID string
	// Window is when the window of the run opened, WindowEnd when that closes; zero
	// for a run outside of all windows.
	Window, WindowEnd time.Time
	// WindowUsed tells that an earlier run has used up the window.
	WindowUsed bool
	// Exempt are the hosts that the rollout left out.
	Exempt []policy.Exempt
}

// End is how a run ended; zero while it has not.
type End struct {
	Result Result
	Reason string
	// EndedSeq and EndedAt are of the event that finished it.
	EndedSeq uint64
	EndedAt  time.Time
}

// State is one run. It changes by Fold alone.
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

	policy rules
	// roster knows which hosts are out of service: members come first in it, in their
	// order, then hosts that are no members.
	roster  *roster.Roster
	members members
	stages  stages
	queues  queues
	counts  counts
	// sentAt is when prepare was sent.
	sentAt   time.Time
	failures failures
	fleet    fleet
	pace     pace
	// touched tells that the run has taken a host out of service.
	touched bool
	// busyHosts are the members that are passed over because they are busy.
	busyHosts busyHosts
	// changed is the time of the last record that changed the run, newest the time
	// of the last record.
	changed, newest time.Time
}

// open makes the run that an event opened. Members go in the order given.
func open(r message.Record, e message.Opened) *State {
	s := &State{
		Origin: Origin{
			OpenedSeq: r.Seq, OpenedAt: r.Time, Trigger: e.Trigger, By: e.By, Why: e.Why, RetryOf: e.RetryOf, RequestID: e.RequestID,
			Window: e.Window, WindowEnd: e.WindowEnd, WindowUsed: e.WindowUsed, Exempt: e.Exempt,
		},
		Deadline: newDeadline(e.NotAfter, e.Policy.OverrunLimit.Duration()), Phase: Open, LastSeq: r.Seq, changed: r.Time, newest: r.Time,
		policy: newRules(e.Policy, len(e.Members)), failures: failures{most: e.Policy.MaxFailures},
		counts: newCounts(len(e.Members)), queues: queues{}, busyHosts: busyHosts{},
	}
	if s.policy.Paused {
		s.Paused = &Pausing{By: message.ByRollout, At: r.Time}
	}
	s.enlist(e.Members)
	for _, entry := range e.Roster {
		s.addEntry(entry, r.Time)
	}
	s.leaveOutSilent(r.Time)
	return s
}

// enlist makes the members and their stages.
func (s *State) enlist(hosts []string) {
	s.roster = roster.New(len(s.policy.Stages), len(hosts))
	s.members = make(members, 0, len(hosts))
	first := 0
	for n, planned := range s.policy.Stages {
		s.stages.list = append(s.stages.list, stage{ResolvedStage: planned, first: first, left: planned.Size})
		for _, name := range hosts[first : first+planned.Size] {
			i := s.roster.Add(name, n)
			s.members = append(s.members, member{Host: s.roster.Host(i)})
		}
		first += planned.Size
	}
}

// addEntry adds what was known of a host when the run was opened. A member does not
// owe what this run's policy has no hook or checks for.
func (s *State) addEntry(e message.Entry, at time.Time) {
	group := roster.NoGroup
	if e.Stage != "" {
		group = slices.IndexFunc(s.policy.Stages, func(g policy.ResolvedStage) bool { return g.Name == e.Stage })
	}
	i := s.roster.Add(e.Host, group)
	owes := e.Owes
	if s.isMember(i) {
		owes.Undrain = owes.Undrain && s.policy.Hooks.Undrain != nil
		if len(s.policy.task(owes.Checks).Checks) == 0 {
			owes.Checks = ""
		}
	}
	s.editHost(i, at, func(h *roster.Host) {
		h.Since, h.Before, h.Owes = e.Since, true, owes
		if h.Absent = e.Absent(); e.Silent && (!h.Absent || s.policy.Absent != policy.Skip) {
			h.Silent = cmp.Or(e.Since, at)
		}
	})
}

// leaveOutSilent leaves out the members that were silent before the run was opened, if
// its policy says so. Those that owe something take part: an answer to prepare is what
// shows that they are well.
func (s *State) leaveOutSilent(at time.Time) {
	if s.policy.Absent != policy.Skip {
		return
	}
	for i := range s.members {
		if m := &s.members[i]; m.Absent || m.IsSilent() && !m.Held() {
			s.edit(i, at, func(m *member) {
				m.leftOut = true
				m.ends(Unreachable, "it was silent before the run was opened", at)
			})
		}
	}
}

// Hosts returns the members in the order of their stages. The caller owns the
// slice.
func (s *State) Hosts() []Host {
	hosts := make([]Host, len(s.members))
	for i := range s.members {
		hosts[i] = s.view(i)
	}
	return hosts
}

// Host returns one member; false when the host is none.
func (s *State) Host(name string) (Host, bool) {
	i, err := s.member(name)
	if err != nil {
		return Host{}, false
	}
	return s.view(i), true
}

// Count returns how many members are in a status.
func (s *State) Count(status Status) int { return s.counts.status[status] }

// Size returns how many members there are.
func (s *State) Size() int { return len(s.members) }

// Policy is what the run was opened with.
func (s *State) Policy() policy.Resolved { return s.policy.Resolved }

// Key identifies the run to people: its ID, or the sequence at which it was
// opened for one that ended before its prepare.
func (s *State) Key() uint64 {
	if s.ID == 0 {
		return s.OpenedSeq
	}
	return s.ID
}

// UsesWindow reports whether the window of the run has had its run: this run has
// touched a host or was aborted by a person, or an earlier run was so.
func (s *State) UsesWindow() bool { return s.WindowUsed || s.touched || s.aborted != nil }

// Over reports whether the run has ended.
func (s *State) Over() bool { return s.Phase == Finished }
