package rollout

import (
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// Resolved is the rollout of one run: the declared rollout with its defaults,
// applied to the fleet when the run was opened. It has a number of hosts in place
// of each declared Count, and no Match.
type Resolved struct {
	Rollout
	// Stages are those that have hosts, and those with a step.
	Stages []ResolvedStage `json:"stages"`
	// MaxFailures is at least 1.
	MaxFailures int `json:"max-failures"`
	MinPrepared int `json:"min-prepared"`
	// NoReboot are the members that are not rebooted.
	NoReboot []Exempt `json:"no-reboot,omitempty"`
	// Start says where each of Checks.Start is asked. One that is in no group is asked nowhere,
	// because no host matches it.
	Start []StartGroup `json:"start,omitempty"`
}

// ResolvedStage is a stage and the number of its members. The members of a run
// are ordered by stage, so a stage needs no list of their names.
type ResolvedStage struct {
	Stage
	// Size is the number of members; at least 1, and 0 if the stage has a step.
	Size int `json:"size"`
	// MaxUnavailable is at least 1, and 0 if the stage has a step.
	MaxUnavailable int `json:"max-unavailable"`
	// Undo means that the run undoes the step.
	Undo bool `json:"undo,omitempty"`
}

// Hook is what a run does in a stage with a step: the step, or its undo.
func (s ResolvedStage) Hook() *Hook {
	if s.Undo {
		return s.Step.Undo
	}
	return s.Step.Do
}

// OnHost reports whether what a run does in a stage with a step is done on a host, not at the site.
func (s ResolvedStage) OnHost() bool {
	hook := s.Hook()
	return hook != nil && hook.On != OnSite
}

// Exempt is a host that is not upgraded, or not rebooted, and the reason.
type Exempt struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// Resolve returns the rollout of a run with its defaults. The caller adds the
// stages and the numbers of hosts. The error names the first value that cannot
// be read.
func (r Rollout) Resolve() (Resolved, error) {
	if err := r.unreadable(); err != nil {
		return Resolved{}, err
	}
	r = r.WithDefaults()
	r.Stages, r.MaxFailures, r.MinPrepared, r.Exempt, r.ExemptReboot = nil, "", "", nil, nil
	r.FleetLock = false // It says nothing of runs.
	return Resolved{Rollout: r}, nil
}

// AddMissing adds what a record lacks that an older version wrote. A run without a
// PreparePatience waits for all its hosts, as every run did then.
func (r *Resolved) AddMissing() {
	r.AddParts()
	if r.OverrunLimit == "" {
		r.OverrunLimit = Rollout{}.WithDefaults().OverrunLimit
	}
	if r.Absent == "" { // All hosts counted then.
		r.Absent = CountAbsent
	}
}

// Resolve returns the stage for a number of members. counting is the number of
// hosts, members or not, that count while they are out of service: a percentage of
// MaxUnavailable is of these. Without approval a stage has no approval timeout. The host of a step is
// chosen when that begins, so a step keeps its match.
func (s Stage) Resolve(members, counting int) ResolvedStage {
	most := max(1, s.MaxUnavailable.Of(counting, Down))
	if s.Step != nil {
		members, most = 0, 0
	}
	s.Match, s.MaxUnavailable = nil, ""
	if !s.Approval {
		s.ApprovalTimeout = ""
	}
	return ResolvedStage{Stage: s, Size: members, MaxUnavailable: most}
}

// Default is the policy of a tenant without a rollout, for so many hosts: one
// host at a time, stop at the first that fails.
func Default(hosts int) Resolved {
	full := Rollout{}.WithDefaults()
	r, err := full.Resolve()
	if err != nil {
		panic("policy: the defaults cannot be read: " + err.Error())
	}
	r.Stages = []ResolvedStage{full.Stages[0].Resolve(hosts, hosts)}
	r.MaxFailures, r.MinPrepared = full.MaxFailures.Of(hosts, Down), full.MinPrepared.Of(hosts, Up)
	return r
}

// Check returns an error for a policy from the log that a run of so many members
// cannot rely on. AddMissing must have been called. The bounds of the API are not
// checked again, because a record may be older than they are.
func (r *Resolved) Check(members int) error {
	size := 0
	for i, s := range r.Stages {
		if err := s.checkStep(i); err != nil {
			return err
		}
		if s.Name == "" || s.Step == nil && (s.Size < 1 || s.MaxUnavailable < 1) {
			return fmt.Errorf("stages[%d]: %q has %s of which %d may be unavailable; each must be at least 1", i, s.Name, hosts(s.Size), s.MaxUnavailable)
		}
		// The sum of sizes as large as this could overflow.
		if s.Size > members {
			return fmt.Errorf("stages[%d]: %q has %s, the run has %d", i, s.Name, hosts(s.Size), members)
		}
		if err := firstUnreadable(fmt.Sprintf("stages[%d]", i), s.Stage); err != nil {
			return err
		}
		size += s.Size
	}
	if err := r.unreadable(); err != nil {
		return err
	}
	if err := r.checkStart(); err != nil {
		return err
	}
	switch {
	case size != members:
		return fmt.Errorf("stages: they have %s, the run has %d", hosts(size), members)
	case r.MaxFailures < 1:
		return fmt.Errorf("max-failures: %d is invalid; use at least 1", r.MaxFailures)
	case r.OnFailure != Stop && r.OnFailure != Pause && r.OnFailure != Continue:
		return fmt.Errorf("on-failure: %q is none of stop, pause, continue", r.OnFailure)
	case r.Absent != Skip && r.Absent != CountAbsent:
		return fmt.Errorf("absent: %q is none of skip, count", r.Absent)
	case r.Overrun != FinishHost && r.Overrun != StopHost:
		return fmt.Errorf("overrun: %q is none of finish-host, stop", r.Overrun)
	case r.Timeouts.Prepare.Duration() <= 0 || r.Timeouts.Upgrade.Duration() <= 0 || r.Timeouts.Reboot.Duration() <= 0:
		return fmt.Errorf("timeouts: each must be above 0s")
	}
	return nil
}

// checkStep returns an error for a step that cannot be done.
func (s ResolvedStage) checkStep(n int) error {
	switch {
	case s.Step == nil && s.Undo:
		return fmt.Errorf("stages[%d]: %q undoes a step, and has none", n, s.Name)
	case s.Step == nil:
		return nil
	case s.Size != 0 || s.Match != nil:
		return fmt.Errorf("stages[%d]: %q has a step and %s; a stage has only one of them", n, s.Name, hosts(s.Size))
	case s.Hook() == nil || s.Hook().Timeout.Duration() <= 0:
		return fmt.Errorf("stages[%d].step: %q has no hook with a timeout", n, s.Name)
	case s.OnHost() && s.Step.Match == nil:
		return fmt.Errorf("stages[%d].step: %q is done on a host, and match is missing", n, s.Name)
	}
	return nil
}

func hosts(n int) string { return text.Count(n, "host", "hosts") }
