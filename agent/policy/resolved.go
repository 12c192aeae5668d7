package policy

import "fmt"

// Resolved is the rollout of one run: as it was declared, with its defaults,
// and applied to the fleet when the run was opened. A number of hosts stands in
// place of each declared Count, and what chooses hosts is left out.
type Resolved struct {
	Rollout
	// Stages are those that have hosts.
	Stages []ResolvedStage `json:"stages"`
	// MaxFailures is at least 1.
	MaxFailures int `json:"max-failures"`
	MinPrepared int `json:"min-prepared"`
	// NoReboot are members that are not rebooted, each with the reason.
	NoReboot []Exempt `json:"no-reboot,omitempty"`
}

// ResolvedStage is a stage and its hosts. The members of a run stand in the
// order of its stages, so that a stage needs to say only how many are its own.
type ResolvedStage struct {
	Stage
	// Size is how many of the members, after those of the stages before, are
	// of this stage; at least 1.
	Size int `json:"size"`
	// MaxUnavailable is at least 1.
	MaxUnavailable int `json:"max-unavailable"`
}

// Exempt is a host that is left out, or its reboot, and why.
type Exempt struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// Resolve returns the rollout with its defaults for a run, which has no stages
// yet, and whose counts are to be resolved. The error names the first value that
// means nothing.
func (r Rollout) Resolve() (Resolved, error) {
	if err := r.unreadable(); err != nil {
		return Resolved{}, err
	}
	r = r.WithDefaults()
	r.Stages, r.MaxFailures, r.MinPrepared, r.Exempt, r.ExemptReboot = nil, "", "", nil, nil
	return Resolved{Rollout: r}, nil
}

// Resolve returns the stage for so many hosts, of which others that are aside
// count for what may be out of service as they count when they are. A stage
// that nobody needs to approve has no time to be approved in.
func (s Stage) Resolve(size, aside int) ResolvedStage {
	most := max(1, s.MaxUnavailable.Of(size+aside, Down))
	s.Match, s.MaxUnavailable = nil, ""
	if !s.Approval {
		s.ApprovalTimeout = ""
	}
	return ResolvedStage{Stage: s, Size: size, MaxUnavailable: most}
}

// Default is the policy of a tenant without a rollout, for so many hosts: one
// host at a time, stop at the first that fails.
func Default(hosts int) Resolved {
	full := Rollout{}.WithDefaults()
	r, err := full.Resolve()
	if err != nil {
		panic("policy: the defaults cannot be read: " + err.Error())
	}
	r.Stages = []ResolvedStage{full.Stages[0].Resolve(hosts, 0)}
	r.MaxFailures, r.MinPrepared = 1, hosts
	return r
}

// Check returns what is wrong with the policy of a run of so many members, as
// it was read from the log; its parts must be there. It checks what a run relies on, not each bound of
// the API: a record may be older than those.
func (r *Resolved) Check(members int) error {
	size := 0
	for i, s := range r.Stages {
		if s.Name == "" || s.Size < 1 || s.MaxUnavailable < 1 {
			return fmt.Errorf("stages[%d]: %q has %d hosts of which %d may be unavailable; each must be at least 1", i, s.Name, s.Size, s.MaxUnavailable)
		}
		// The sum of sizes as large as this could overflow.
		if s.Size > members {
			return fmt.Errorf("stages[%d]: %q has %d hosts, the run has %d", i, s.Name, s.Size, members)
		}
		if err := firstUnreadable(fmt.Sprintf("stages[%d]", i), s.Stage); err != nil {
			return err
		}
		size += s.Size
	}
	if err := r.unreadable(); err != nil {
		return err
	}
	switch {
	case size != members:
		return fmt.Errorf("stages: they have %d hosts, the run has %d", size, members)
	case r.MaxFailures < 1:
		return fmt.Errorf("max-failures: %d is not possible; use at least 1", r.MaxFailures)
	case r.OnFailure != Stop && r.OnFailure != Pause && r.OnFailure != Continue:
		return fmt.Errorf("on-failure: %q is none of stop, pause, continue", r.OnFailure)
	case r.Overrun != FinishHost && r.Overrun != StopHost:
		return fmt.Errorf("overrun: %q is none of finish-host, stop", r.Overrun)
	case r.Timeouts.Prepare.Duration() <= 0 || r.Timeouts.Upgrade.Duration() <= 0 || r.Timeouts.Reboot.Duration() <= 0:
		return fmt.Errorf("timeouts: each must be above 0s")
	}
	return nil
}
