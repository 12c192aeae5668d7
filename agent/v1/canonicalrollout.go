package v1

import "github.com/osupgrade/terraform-provider-osupgrade/agent/window"

// Canonical returns the rollout with each length of time in the fewest units,
// the one way to spell it. What is absent stays absent, what is wrong as it is.
// It shares no list with r, but for texts that stay as they are.
func (r Rollout) Canonical() Rollout {
	if r.Stages != nil {
		r.Stages = append([]Stage{}, r.Stages...)
	}
	for i := range r.Stages {
		respell(&r.Stages[i].Soak, &r.Stages[i].ApprovalTimeout)
	}
	respell(&r.Reserve, &r.Splay)
	if r.Checks != nil {
		r.Checks = &RolloutChecks{respellChecks(r.Checks.BeforeHost), respellChecks(r.Checks.AfterHost), respellChecks(r.Checks.Fleet)}
	}
	if r.Hooks != nil {
		r.Hooks = &RolloutHooks{Drain: r.Hooks.Drain.canonical(), Undrain: r.Hooks.Undrain.canonical()}
	}
	if r.Timeouts != nil {
		t := *r.Timeouts
		respell(&t.Prepare, &t.Upgrade, &t.Reboot)
		r.Timeouts = &t
	}
	return r
}

func respell(spans ...*string) {
	for _, text := range spans {
		if d, err := window.ParseDuration(*text); err == nil {
			*text = window.FormatDuration(d)
		}
	}
}

func respellChecks(checks []Check) []Check {
	checks = append([]Check(nil), checks...)
	for i := range checks {
		respell(&checks[i].Interval, &checks[i].Timeout)
	}
	return checks
}

func (h *Hook) canonical() *Hook {
	if h == nil {
		return nil
	}
	spelt := *h
	respell(&spelt.Timeout, &spelt.RetryInterval)
	return &spelt
}
