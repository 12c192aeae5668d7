// Package run is a run as a fold over the log: State is what the records so
// far amount to, Next what has to happen now.
//
// It decides every step of a run and reads every reply. It does no I/O, has no
// clock and starts no goroutine: whoever folds the same records gets the same
// next step, after any crash (AV-82).
//
// # What holds
//
// Prepare goes to all members, also to silent ones, which take part when they
// answer within their limit. Nobody is upgraded before each member has answered
// or was given up, and as many as min-prepared are prepared; that counts all
// members but those that were deleted or released.
//
// The slot comes last: checks before the host, slot, drain, upgrade, reboot,
// checks after it, undrain. A host is out of service from its slot until it is
// upgraded, its checks have passed and it is undrained; one that failed until
// its late answer has come, it is undrained and its checks pass, which are
// tried again every 30 s; a silent one while it is silent. Deletion and release
// by force end all of that. No host starts while as many of its stage are out
// of service as may be; silence that comes later may exceed that. What the
// checks before it have shown counts for a while, and not beyond a pause: they
// pass anew before a host that had to wait for its slot.
//
// Who is out of service when a run ends still is in the next one, until what it
// lacks has come: an answer, its undrain hook, its checks. Such hosts are the
// first of their stage, and need no further slot; but not more of them are
// upgraded at once than may be out of service. One that does not know itself
// what it did is not touched before it was released. A host that a retry leaves
// alone counts in its stage all the same.
//
// An undrain hook is wanted for every host that was drained, and the run does
// not end before it was tried or its limit passed; a host that was deleted is
// past that.
//
// At max-failures a run stops (hosts under way are finished, their reboots
// included, the rest is skipped), pauses (a person who resumes it forgives what
// failed), or goes on.
//
// No command follows not-after or an abort. Hosts under way are waited for, up
// to the limit of what they are at, or with overrun "stop" until not-after
// only. No host starts that would not be done by not-after by the measured time
// of those before it; once nothing is under way either, the run is partial.
//
// Whatever a run waits for has a limit, if only not-after; so each run ends by
// itself (design.md 5, invariant 7).
package run

import (
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

// State is one run. It changes by Fold alone.
type State struct {
	// ID is the sequence of the run's prepare; 0 before it.
	ID uint64
	// OpenedSeq is the sequence of the event that opened it.
	OpenedSeq uint64
	OpenedAt  time.Time
	// LastSeq is the sequence of the last record that changed it, also after its
	// end.
	LastSeq uint64
	Trigger string
	By, Why string
	// RetryOf is the run whose failed and skipped hosts these are; 0 for none.
	RetryOf  uint64
	NotAfter time.Time
	// Window is when the window opened whose run it is; zero when it was
	// opened outside of all windows, or the log is from before this was
	// written down. WindowEnd is when that was to close, zero as Window is.
	Window, WindowEnd time.Time

	Phase  Phase
	Result Result
	Reason string
	// EndedSeq and EndedAt are of the event that finished it.
	EndedSeq uint64
	EndedAt  time.Time
	// Exempt are hosts that were left out when it was opened.
	Exempt []policy.Exempt
	// Paused is who holds it up; nil when nobody does.
	Paused *Pausing

	policy   policy.Resolved
	noReboot map[string]string
	// roster knows who is out of service: the members first, then hosts that are
	// no members and count.
	roster  *roster.Roster
	members []member
	stages  []stage
	// current is the index of the first stage that has hosts left.
	current int
	// soakEnds is until when the stages before the current one soak, soaks the
	// index of the one that soaks longest.
	soakEnds time.Time
	soaks    int
	queues   queues
	// statuses holds how many hosts are in each status, so that a step costs the
	// same however many hosts there are.
	statuses map[Status]int
	// unprepared counts the hosts that have yet to answer prepare, unstarted
	// those that have yet to take a slot, underWay those that a run that ends
	// waits for.
	unprepared, unstarted, underWay int
	sentAt                          time.Time
	preparedAt                      time.Time
	// failures counts the hosts that failed, forgiven those before the last
	// time that somebody resumed the run.
	failures, forgiven int
	// halt is why the run stops because of what failed; empty while it does
	// not.
	halt string
	// frozen is the freeze because of which the run ends at NotAfter; empty when
	// it ends because of its window.
	frozen string
	// aborted is who aborted it; nil when nobody did.
	aborted *Pausing
	fleet   fleet
	pace    pace
	// changed is the time of the last record that changed anything, newest that
	// of the last record.
	changed, newest time.Time
}

// Pausing is who paused or aborted a run, why and when.
type Pausing struct {
	By, Why string
	At      time.Time
}

// byPolicy is who pauses a run when too many hosts have failed.
const byPolicy = "on-failure"

// open makes the run that an event opened. Members go in the order given.
func open(r message.Record, e message.Opened) *State {
	s := &State{
		OpenedSeq: r.Seq, OpenedAt: r.Time, LastSeq: r.Seq, Trigger: e.Trigger, By: e.By, Why: e.Why, RetryOf: e.RetryOf,
		Window: e.Window, WindowEnd: e.WindowEnd, NotAfter: e.NotAfter, Phase: Open, Exempt: e.Exempt, changed: r.Time, newest: r.Time,
		policy: e.Policy, statuses: map[Status]int{}, queues: queues{}, noReboot: map[string]string{},
	}
	if s.policy.Paused {
		s.Paused = &Pausing{By: message.ByRollout, At: r.Time}
	}
	for _, n := range s.policy.NoReboot {
		s.noReboot[n.Host] = n.Reason
	}
	s.enlist(e.Members)
	for _, entry := range e.Roster {
		s.addEntry(entry, r.Time)
	}
	return s
}

// enlist makes the members and their stages.
func (s *State) enlist(hosts []string) {
	s.roster = roster.New(len(s.policy.Stages), len(hosts))
	s.members = make([]member, 0, len(hosts))
	first := 0
	for n, planned := range s.policy.Stages {
		s.stages = append(s.stages, stage{ResolvedStage: planned, first: first, left: planned.Size})
		for _, name := range hosts[first : first+planned.Size] {
			i := s.roster.Add(name, n)
			s.members = append(s.members, member{Host: s.roster.Host(i)})
		}
		first += planned.Size
	}
	s.unprepared, s.unstarted = len(s.members), len(s.members)
	s.statuses[Pending] = len(s.members)
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
		if len(s.task(owes.Checks).Checks) == 0 {
			owes.Checks = ""
		}
	}
	s.editHost(i, at, func(h *roster.Host) {
		h.Since, h.Before, h.Owes = e.Since, true, owes
		if e.Silent {
			h.Silent = at
		}
	})
}

// Hosts returns the members in the order of their stages. The caller owns the
// slice.
func (s *State) Hosts() []Host {
	hosts := make([]Host, len(s.members))
	for i := range s.members {
		hosts[i] = s.view(&s.members[i])
	}
	return hosts
}

// Host returns one member; false when the host is none.
func (s *State) Host(name string) (Host, bool) {
	i, err := s.member(name)
	if err != nil {
		return Host{}, false
	}
	return s.view(&s.members[i]), true
}

// Count returns how many members are in a status.
func (s *State) Count(status Status) int { return s.statuses[status] }

// Size returns how many members there are.
func (s *State) Size() int { return len(s.members) }

// Policy is what the run was opened with.
func (s *State) Policy() policy.Resolved { return s.policy }

// Key identifies the run to people: its ID, or the sequence at which it was
// opened for one that ended before its prepare.
func (s *State) Key() uint64 {
	if s.ID == 0 {
		return s.OpenedSeq
	}
	return s.ID
}

// Over reports whether the run has ended.
func (s *State) Over() bool { return s.Phase == Finished }
