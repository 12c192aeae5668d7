package plan

import (
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// reader turns the texts of a rollout into what they mean, and keeps the first
// error.
type reader struct{ err error }

func (r *reader) fail(field string, err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("%s: %w", field, err)
	}
}

func (r *reader) duration(field, text string) time.Duration {
	d, err := window.ParseDuration(text)
	r.fail(field, err)
	return d
}

func (r *reader) span(field, text string) message.Span {
	return message.Span(r.duration(field, text))
}

// count is so many of total; a percentage is rounded up or down.
func (r *reader) count(field, text string, total int, up bool) int {
	c, err := v1.ParseCount(text)
	r.fail(field, err)
	return c.Of(total, up)
}

// policy is that of a rollout with its defaults, for the hosts of its stages.
func (r *reader) policy(from v1.Rollout, stages [][]Host) message.Policy {
	p := message.Policy{OnFailure: from.OnFailure, Overrun: from.Overrun, Paused: from.Paused}
	size := 0
	for i, hosts := range stages {
		if len(hosts) > 0 {
			p.Stages = append(p.Stages, r.stage(fmt.Sprintf("stages[%d].", i), from.Stages[i], hosts))
			size += members(hosts)
		}
	}
	p.MaxFailures = max(1, r.count("max-failures", from.MaxFailures, size, false))
	p.MinPrepared = min(size, r.count("min-prepared", from.MinPrepared, size, true))
	p.Splay = r.span("splay", from.Splay)
	p.Timeouts = message.Timeouts{
		Prepare: r.span("timeouts.prepare", from.Timeouts.Prepare),
		Upgrade: r.span("timeouts.upgrade", from.Timeouts.Upgrade),
		Reboot:  r.span("timeouts.reboot", from.Timeouts.Reboot),
	}
	p.Checks = message.Checks{
		BeforeHost: r.checks("checks.before-host", from.Checks.BeforeHost),
		AfterHost:  r.checks("checks.after-host", from.Checks.AfterHost),
		Fleet:      r.checks("checks.fleet", from.Checks.Fleet),
	}
	p.Hooks = message.Hooks{
		Drain:   r.hook("hooks.drain.", from.Hooks.Drain),
		Undrain: r.hook("hooks.undrain.", from.Hooks.Undrain),
	}
	return p
}

// stage reads one of some hosts, of which those aside count for what may be out
// of service as they count when they are. A stage that nobody needs to approve
// has no time to be approved in.
func (r *reader) stage(field string, from v1.Stage, hosts []Host) message.Stage {
	s := message.Stage{
		Name: from.Name, Size: members(hosts), Approval: from.Approval,
		MaxUnavailable: max(1, r.count(field+"max-unavailable", from.MaxUnavailable, len(hosts), false)),
		Soak:           r.span(field+"soak", from.Soak),
	}
	if from.Approval {
		s.ApprovalTimeout = r.span(field+"approval-timeout", from.ApprovalTimeout)
	}
	return s
}
