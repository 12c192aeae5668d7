package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// overrideDuration bounds a run that is started outside of a window and names
// no duration of its own.
const overrideDuration = 4 * time.Hour

// openWhenDue opens a run when a window has one due.
func (s *state) openWhenDue(ctx context.Context, now time.Time) time.Time {
	if err := s.unreadable(); err != nil {
		return s.idles(now, "window", fmt.Sprintf("what cannot be read to be mended: %v", err), time.Time{})
	}
	span, found := s.nextOpening(now)
	if !found {
		s.idle = v1.WaitingFor{}
		return time.Time{}
	}
	f := s.facts(now, span.Span)
	// To plan costs more the more hosts there are.
	if is, at := owed(f); !is {
		s.idle = v1.WaitingFor{}
		return at
	}
	planned, err := s.plan(s.fleet(nil))
	if err != nil {
		return s.idles(now, "window", fmt.Sprintf("the rollout to be mended: %v", err), span.End)
	}
	f.members, f.silent = len(planned.Hosts), len(planned.Silent)
	end := span.End.Add(-planned.Reserve())
	switch is, at := due(f); {
	case !is && !at.IsZero():
		return at
	case f.members == 0 && len(planned.Exempt) > 0:
		return s.idles(now, "window", fmt.Sprintf("nobody: the rollout leaves out all %d hosts", len(planned.Exempt)), span.End)
	case f.members == 0:
		return s.idles(now, "host", "a worker to be started: no host of a listed worker application is known", span.End)
	case !is:
		return s.idles(now, "host", fmt.Sprintf("a host to come back: all %d are silent", f.silent), span.End)
	case !now.Before(end):
		return s.idles(now, "window", fmt.Sprintf("the next window: this one has no time left before the reserve of %s", planned.Reserve()), span.End)
	}
	s.idle = v1.WaitingFor{}
	s.Logger.Info("window is open; opening a run", "tenant", s.Tenant, "hosts", f.members, "silent", f.silent, "not-after", end)
	return s.open(ctx, message.Event{Trigger: message.TriggerWindow, Window: &span.Start, WindowEnd: &span.End, NotAfter: &end}, planned)
}

// idles notes, once, why an open window has no run.
func (s *state) idles(now time.Time, what, detail string, until time.Time) time.Time {
	if s.idle.What != what || s.idle.Detail != detail {
		s.idle = v1.WaitingFor{What: what, Detail: detail, Since: stamp(now)}
		s.Logger.Warn("a window is open and no run is opened", "tenant", s.Tenant, "waiting-for", detail)
		s.notify()
	}
	return until
}

// open opens a run as it was planned.
func (s *state) open(ctx context.Context, e message.Event, planned plan.Plan) time.Time {
	e.Event, e.Hosts, e.Silent, e.Exempt, e.Policy = message.Opened, planned.Hosts, slices.Concat(planned.Silent, planned.SilentAside), planned.Exempt, &planned.Policy
	e.Unwell = s.ledger.Unwell()
	if considered := s.ledger.Considered(); !considered.IsZero() {
		e.Considered = &considered
	}
	return s.append(ctx, message.Record{Kind: message.EventRecord, Body: e.Encode()}, e.Event)
}

// facts are what is known of an opening but for the fleet.
func (s *state) facts(now time.Time, span window.Span) facts {
	f := facts{now: now, span: span, changed: s.scheduledAt, started: s.started, joined: s.joined}
	switch newest := s.ledger.Newest(); {
	case newest == nil:
	case newest.Window.IsZero():
		f.last = newest.OpenedAt
	default:
		f.last, f.lastEnd = newest.Window, newest.WindowEnd
	}
	return f
}

// Start opens a run by hand and returns it once its prepare is on the log
// (AV-81). by is who asks. The error is run.ErrNotConfigured, *run.Refused or
// run.ErrNotReady.
func (c *Controller) Start(ctx context.Context, by string, request v1.Start) (v1.Run, error) {
	only, err := c.leftOf(ctx, request.RetryOf)
	if err != nil {
		return v1.Run{}, err
	}
	var seq uint64
	return until(ctx, c, func(s *state) (v1.Run, error) {
		if seq == 0 {
			// What is begun is finished though the caller has gone: a record half
			// appended would hold up the next.
			opened, err := s.start(context.WithoutCancel(ctx), by, request, only)
			if err != nil {
				return v1.Run{}, err
			}
			seq = opened
		}
		return s.opened(seq)
	})
}

// opened returns the run that was opened by a record once its prepare is on the
// log.
func (s *state) opened(seq uint64) (v1.Run, error) {
	newest := s.ledger.Newest()
	switch {
	case s.alarm != nil:
		return v1.Run{}, s.ready()
	case newest == nil || newest.OpenedSeq != seq || newest.ID == 0 && !newest.Over():
		return v1.Run{}, errPending
	}
	return s.view(newest), nil
}

// start opens a run by hand and returns the sequence of its first record.
func (s *state) start(ctx context.Context, by string, request v1.Start, only map[string]bool) (uint64, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	if s.config == nil && s.configErr == nil {
		return 0, run.ErrNotConfigured
	}
	if err := s.unreadable(); err != nil {
		return 0, &run.Refused{Message: err.Error()}
	}
	now := s.Now()
	switch current := s.ledger.Current(); {
	case current == nil:
	case current.ID == 0:
		return 0, fmt.Errorf("%w: a run is just being opened", run.ErrNotReady)
	default:
		return 0, &run.Refused{Run: current.ID, Message: fmt.Sprintf("run %d is under way; wait until it ends", current.ID)}
	}
	e, err := s.bounds(now, request)
	if err != nil {
		return 0, err
	}
	if err := s.frozen(now, &e); err != nil {
		return 0, err
	}
	planned, err := s.planStart(now, request, only)
	if err != nil {
		return 0, err
	}
	if err := reserve(now, &e, request, planned.Reserve()); err != nil {
		return 0, err
	}
	e.Trigger, e.By, e.Why, e.RetryOf = message.TriggerManual, by, request.Reason, request.RetryOf
	s.stale = true
	if retryAt := s.open(ctx, e, planned); !retryAt.IsZero() {
		return 0, fmt.Errorf("%w: it could not write to the log", run.ErrNotReady)
	}
	return s.last, nil
}
