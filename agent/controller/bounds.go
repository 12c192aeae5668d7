package controller

import (
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// planStart plans a run that is started by hand, of all hosts or of those that
// only names, if it can start now.
func (s *state) planStart(now time.Time, request v1.Start, only map[string]bool) (plan.Plan, error) {
	fleet := s.fleet(only)
	if only != nil && !slices.ContainsFunc(fleet, func(h plan.Host) bool { return !h.Aside }) {
		return plan.Plan{}, &run.Refused{Run: request.RetryOf, Message: fmt.Sprintf(
			"none of the %d hosts that run %d left is known any more under a listed worker application", len(only), request.RetryOf)}
	}
	planned, err := s.plan(fleet)
	if err != nil {
		return plan.Plan{}, &run.Refused{Message: err.Error()}
	}
	return planned, s.startable(now, planned)
}

// bounds returns when a run that is started now has to end, and the window
// that it is in. Who overrides the windows and says for how long means that,
// whether one is open or not.
func (s *state) bounds(now time.Time, request v1.Start) (message.Event, error) {
	span, found := s.nextOpening(now)
	var e message.Event
	switch open := found && !now.Before(span.Start); {
	case open:
		e.Window, e.WindowEnd, e.NotAfter = &span.Start, &span.End, &span.End
	case !request.OverrideWindow && found:
		return e, &run.Refused{Message: fmt.Sprintf(
			`no maintenance window is open; the next one opens at %s; to start now, send "override-window": true with a "reason"`,
			span.Start.UTC().Format(time.RFC3339))}
	case !request.OverrideWindow:
		return e, &run.Refused{Message: `no maintenance window is configured; to start now, send "override-window": true with a "reason"`}
	default:
		end := now.Add(overrideDuration)
		e.NotAfter = &end
	}
	if request.Duration == "" {
		return e, nil
	}
	length, err := window.ParseDuration(request.Duration)
	end := now.Add(length)
	e.NotAfter = &end
	return e, err
}

// reserve has a run that ends with its window end so much earlier (AV-78).
func reserve(now time.Time, e *message.Event, request v1.Start, span time.Duration) error {
	if e.Window == nil || request.Duration != "" {
		return nil
	}
	end := e.NotAfter.Add(-span)
	if !now.Before(end) {
		return &run.Refused{Message: fmt.Sprintf(
			`the window ends at %s, and the rollout's reserve of %s has begun; to start now, send "override-window": true with a "duration" and a "reason"`,
			e.NotAfter.UTC().Format(time.RFC3339), span)}
	}
	e.NotAfter = &end
	return nil
}

// startable tells why a run cannot start as it was planned.
func (s *state) startable(now time.Time, p plan.Plan) error {
	switch {
	case len(p.Hosts) == 0 && len(p.Exempt) > 0:
		return &run.Refused{Message: fmt.Sprintf("the rollout leaves out all %d hosts; the first is %s: %s", len(p.Exempt), p.Exempt[0].Host, p.Exempt[0].Reason)}
	case len(p.Hosts) == 0:
		return &run.Refused{Message: "no host of a listed worker application is known; start a worker under one of worker-applications first"}
	case len(p.SilentAside) > 0 && now.Before(s.started.Add(settle)):
		return s.unheard(p.SilentAside[0])
	case len(p.Silent) > 0 && now.Before(s.started.Add(settle)):
		return s.unheard(p.Silent[0])
	case len(p.Hosts) == len(p.Silent):
		return &run.Refused{Message: fmt.Sprintf("none of the %d hosts is online; host %s was not heard of for %s", len(p.Silent), p.Silent[0], message.Silence)}
	}
	return nil
}

// unheard is the error of what depends on whether a host is there, while a
// controller that has just started cannot know that.
func (s *state) unheard(name string) error {
	return fmt.Errorf("%w: it has just started and has not heard of host %s yet; ask again at %s", run.ErrNotReady, name, stamp(s.started.Add(settle)).Format(time.RFC3339))
}
