package run

import (
	"errors"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// Ask is what somebody asks of the run under way: the last word of the path
// of the request.
type Ask string

// What can be asked.
const (
	// Pause holds the run up, Resume lets it go on.
	Pause  Ask = "pause"
	Resume Ask = "resume"
	// Abort ends the run.
	Abort Ask = "abort"
	// Approve lets a stage begin that waits for it.
	Approve Ask = "approve"
	// Release frees the slot of a host by force.
	Release Ask = "release"
)

// Request is what somebody asks of the run under way.
type Request struct {
	Ask Ask
	// By is who asks, Why the reason given.
	By, Why string
	// Stage is of Approve, Host of Release.
	Stage, Host string
}

// decide returns the event that a request comes to. The error is *Refused and
// says what stands in the way.
func (s *State) decide(q Request) (message.Event, error) {
	if err := s.refuses(q); err != nil {
		return nil, err
	}
	why := message.CleanText(q.Why)
	switch q.Ask {
	case Pause:
		return message.Paused{By: q.By, Why: why}, nil
	case Resume:
		return message.Resumed{By: q.By, Why: why}, nil
	case Abort:
		return message.Aborted{By: q.By, Why: why}, nil
	case Approve:
		return message.Approved{Stage: q.Stage, By: q.By, Why: why}, nil
	case Release:
		return message.Released{Host: q.Host, By: q.By, Why: why}, nil
	}
	return nil, s.refused("a run cannot be asked to %q", q.Ask)
}

func (s *State) refuses(q Request) error {
	if s.Over() && q.Ask != Release {
		return s.refused("run %d has ended", s.Key())
	}
	if s.aborted != nil && q.Ask != Release {
		return s.refused("run %d is being aborted; it waits for the hosts under way", s.Key())
	}
	switch q.Ask {
	case Pause:
		if s.Paused != nil {
			return s.refused("run %d is paused already, by %s", s.Key(), s.Paused.By)
		}
	case Resume:
		return s.refusesResume()
	case Approve:
		return s.refusesApproval(q.Stage)
	case Release:
		return s.refusesRelease(q.Host)
	case Abort:
	}
	return nil
}

func (s *State) refusesResume() error {
	switch {
	case s.Paused == nil:
		return s.refused("run %d is not paused", s.Key())
	case s.Paused.By == message.ByAgent:
		return s.refused("run %d is paused by the agent itself and proceeds after the repair: %s", s.Key(), s.Paused.Why)
	case s.Paused.By == message.ByRollout:
		return s.refused(`run %d is paused by the rollout; set its member "paused" to false`, s.Key())
	}
	return nil
}

func (s *State) refusesApproval(name string) error {
	switch g := s.stages.named(name); {
	case g == nil:
		return s.refused("run %d has no stage %q", s.Key(), name)
	case !g.Approval:
		return s.refused("stage %s of run %d needs no approval", name, s.Key())
	case !g.approvedAt.IsZero():
		return s.refused("stage %s of run %d is approved already", name, s.Key())
	}
	return nil
}

// refusesRelease protects a host that is at work: its slot is not free, whoever
// says so.
func (s *State) refusesRelease(host string) error {
	i, known := s.roster.Index(host)
	switch {
	case s.Over() && (!known || !s.countsAsOut(i)):
		return s.refused("no run is under way, and host %s holds no slot since run %d", host, s.Key())
	case !known:
		return s.refused("host %s is not in run %d", host, s.Key())
	case !s.isMember(i) && s.roster.Host(i).Out():
		return nil
	case !s.isMember(i):
		return s.refused("host %s holds no slot in run %d", host, s.Key())
	}
	m := &s.members[i]
	switch {
	case !m.Out():
		return s.refused("host %s holds no slot in run %d: it is %s", host, s.Key(), m.status())
	case m.final == "" && m.step > idle:
		return s.refused("host %s is being upgraded; wait until it has answered or timed out", host)
	case m.underWay():
		return s.refused("host %s is being undrained; wait until its hook has been tried", host)
	}
	return nil
}

func (s *State) refused(format string, args ...any) error {
	return &Refused{Message: fmt.Sprintf(format, args...), Run: s.Key()}
}

// IsAborting reports whether somebody aborted the run, which waits for the
// hosts under way.
func (s *State) IsAborting() bool { return s.aborted != nil && !s.Over() }

// Errors about runs on which somebody decides.
var (
	// ErrNotReady means that the controller is starting or stopping, or does
	// not trust its log; try again later.
	ErrNotReady = errors.New("the controller is not ready")
	// ErrNotConfigured means that the tenant has no os-upgrade configuration.
	ErrNotConfigured = errors.New("there is no os-upgrade configuration")
	// ErrNoRun means that there is no run of that id.
	ErrNoRun = errors.New("there is no such run")
	// ErrNoHost means that no host of that name is known.
	ErrNoHost = errors.New("there is no such host")
)

// Refused means that a request cannot be met as things stand.
type Refused struct {
	Message string
	// Run is the run that stands in the way, or 0.
	Run uint64
}

// Error implements error.
func (r *Refused) Error() string { return r.Message }
