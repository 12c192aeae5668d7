package run

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/roster"
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
		return s.refused("run %d is paused by the agent itself, and goes on once that is mended: %s", s.Key(), s.Paused.Why)
	case s.Paused.By == message.ByRollout:
		return s.refused(`run %d is paused by the rollout; set its member "paused" to false`, s.Key())
	}
	return nil
}

func (s *State) refusesApproval(name string) error {
	for i := range s.stages {
		g := &s.stages[i]
		switch {
		case g.Name != name:
		case !g.Approval:
			return s.refused("stage %s of run %d needs no approval", name, s.Key())
		case !g.approvedAt.IsZero():
			return s.refused("stage %s of run %d is approved already", name, s.Key())
		default:
			return nil
		}
	}
	return s.refused("run %d has no stage %q", s.Key(), name)
}

// refusesRelease protects a host that is at work: its slot is not free, whoever
// says so.
func (s *State) refusesRelease(host string) error {
	i, known := s.roster.Index(host)
	switch {
	case s.Over() && (!known || !s.counts(i)):
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
		return s.refused("host %s is being upgraded; wait until it has answered or was given up", host)
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

// silence tells whether a member counts as silent; matters is false for a host
// whose silence says nothing: it is no member, was left out, or is out of
// service anyway.
func (s *State) silence(name string) (silent, matters bool) {
	i, known := s.roster.Index(name)
	if !known || s.Over() {
		return false, false
	}
	h := s.roster.Host(i)
	switch {
	case !s.isMember(i):
		return h.IsSilent(), h.Group != roster.NoGroup && !h.Removed
	case h.IsSilent():
		return true, true
	}
	m := &s.members[i]
	return false, (!h.Held() || m.step <= ready) && m.final != Skipped && !h.Removed
}
