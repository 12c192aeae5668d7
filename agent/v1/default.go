package v1

import (
	"net/url"
	"strings"
)

// WithDefaults returns the rollout with the default in place of each member
// that is absent. It shares no list with r, but for texts that stay as they
// are.
func (r Rollout) WithDefaults() Rollout {
	stages := []Stage{{Name: "all"}}
	if len(r.Stages) > 0 {
		stages = append([]Stage(nil), r.Stages...)
	}
	for i := range stages {
		fill(&stages[i].MaxUnavailable, "1")
		fill(&stages[i].Soak, "0s")
		fill(&stages[i].ApprovalTimeout, "1d")
	}
	r.Stages = stages
	fill(&r.MaxFailures, "1")
	fill(&r.OnFailure, "stop")
	fill(&r.MinPrepared, "100%")
	fill(&r.Overrun, "finish-host")
	fill(&r.Reserve, "0s")
	fill(&r.Splay, "0s")
	checks := valueOf(r.Checks)
	r.Checks = &RolloutChecks{fillChecks(checks.BeforeHost), fillChecks(checks.AfterHost), fillChecks(checks.Fleet)}
	hooks := valueOf(r.Hooks)
	r.Hooks = &RolloutHooks{Drain: hooks.Drain.withDefaults(), Undrain: hooks.Undrain.withDefaults()}
	timeouts := valueOf(r.Timeouts)
	fill(&timeouts.Prepare, "1h")
	fill(&timeouts.Upgrade, "1h")
	fill(&timeouts.Reboot, "15m")
	r.Timeouts = &timeouts
	return r
}

// fill sets a text that is empty.
func fill(text *string, to string) {
	if *text == "" {
		*text = to
	}
}

// valueOf returns what a pointer points to; nil points to nothing but zeros.
func valueOf[T any](pointer *T) T {
	if pointer == nil {
		var zero T
		return zero
	}
	return *pointer
}

func fillChecks(checks []Check) []Check {
	var filled []Check
	for _, c := range checks {
		filled = append(filled, c.withDefaults())
	}
	return filled
}

func (c Check) withDefaults() Check {
	fill(&c.Name, c.title())
	if c.Passes == 0 {
		c.Passes = 1
	}
	fill(&c.Interval, "5s")
	fill(&c.Timeout, "1m")
	return c
}

// title is the check's type and what it looks at, cut to what a name may be.
// Of a URL it is what has no secret in it.
func (c Check) title() string {
	address := ""
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		address = u.Scheme + "://" + u.Host + u.EscapedPath()
	}
	title := []rune(c.Type + " " + c.Script + address + c.Address + c.Unit + c.Path)
	return strings.TrimSpace(string(title[:min(len(title), maxTitle)]))
}

func (h *Hook) withDefaults() *Hook {
	if h == nil {
		return nil
	}
	filled := *h
	if filled.Type == "http" {
		fill(&filled.Method, "POST")
	}
	fill(&filled.On, "host")
	fill(&filled.Timeout, "1m")
	if filled.Retries == nil {
		retries := 2
		filled.Retries = &retries
	}
	fill(&filled.RetryInterval, "10s")
	return &filled
}
