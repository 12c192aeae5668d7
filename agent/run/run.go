// Package run is a run as a fold over the log: State is what the records so
// far amount to, Next what has to happen now.
//
// It decides every step of a run and reads every reply. It does no I/O, has no
// clock and starts no goroutine: whoever folds the same records gets the same
// next step, after any crash (AV-82).
package run

import (
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
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
	// Partial means that nothing failed, yet some hosts were left out.
	Partial Result = "partial"
	// Failed means that a host failed and the run stopped there.
	Failed Result = "failed"
	// TimedOut means that not-after came first (AV-59).
	TimedOut Result = "timed-out"
)

// Host is one member of a run.
type Host struct {
	Name   string
	Status Status
	// Since is when it came into this status; zero before its first command.
	Since time.Time
	// Error is the host's own words, or why it was left out.
	Error string
}

// State is one run. It changes by Fold alone.
type State struct {
	// ID is the sequence of the run's prepare; 0 before it.
	ID uint64
	// OpenedSeq is the sequence of the event that opened it.
	OpenedSeq uint64
	OpenedAt  time.Time
	Trigger   string
	By, Why   string
	NotAfter  time.Time
	// Window is when the window opened whose run it is; zero when it was
	// opened outside of all windows, or the log is from before this was
	// written down.
	Window time.Time
	Phase  Phase
	Result Result
	Reason string
	// EndedSeq and EndedAt are of the event that finished it.
	EndedSeq uint64
	EndedAt  time.Time

	hosts []Host
	index map[string]int
	// counts holds how many hosts are in each status, so that a step costs
	// the same however many hosts there are.
	counts map[Status]int
	// next is the first host that may still have to be upgraded, and busy the
	// one that is out of service, or -1.
	next, busy int
	// failed is the first host that failed, or -1.
	failed int
	// silent are the hosts that have not been heard of since the run was
	// opened: each holds a slot (design.md 5, invariant 1).
	silent []string
	// changed is the time of the last record that changed anything.
	changed time.Time
}

// open makes the run that an event opened. Members go in the order given.
func open(r message.Record, e message.Event) *State {
	s := &State{
		OpenedSeq: r.Seq, OpenedAt: r.Time, Trigger: e.Trigger, By: e.By, Why: e.Why,
		NotAfter: *e.NotAfter, Phase: Open, changed: r.Time,
		hosts:  make([]Host, 0, len(e.Hosts)+len(e.Silent)),
		index:  make(map[string]int, len(e.Hosts)+len(e.Silent)),
		counts: map[Status]int{}, busy: -1, failed: -1,
	}
	if e.Window != nil {
		s.Window = *e.Window
	}
	for _, name := range e.Hosts {
		s.add(Host{Name: name, Status: Pending})
	}
	for _, name := range e.Silent {
		if s.add(Host{Name: name, Status: Unreachable, Since: r.Time, Error: notHeard}) {
			s.silent = append(s.silent, name)
		}
	}
	return s
}

// notHeard is why a host is unreachable.
const notHeard = "its worker was not heard of when the run was opened"

// add reports whether the host was not a member before.
func (s *State) add(h Host) bool {
	if _, twice := s.index[h.Name]; twice {
		return false
	}
	s.index[h.Name] = len(s.hosts)
	s.hosts = append(s.hosts, h)
	s.counts[h.Status]++
	return true
}

// Hosts returns the members in the order in which they go. The caller owns
// the slice.
func (s *State) Hosts() []Host { return append([]Host(nil), s.hosts...) }

// Count returns how many members are in a status.
func (s *State) Count(status Status) int { return s.counts[status] }

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
