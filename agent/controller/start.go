package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// overrideDuration bounds a run that is started outside of a window and names
// no duration of its own.
const overrideDuration = 4 * time.Hour

// opening is a request to start that waits for the run's prepare.
type opening struct {
	seq    uint64
	answer chan v1.Run
}

// openWhenDue opens a run when a window has one due.
func (s *state) openWhenDue(ctx context.Context, now time.Time) time.Time {
	span, found := window.Next(s.windows, s.Zone, now)
	if !found {
		return time.Time{}
	}
	f := facts{now: now, span: span, last: s.lastWindow(), started: s.started, joined: s.joined}
	// To count members costs more the more hosts there are.
	if is, at := owed(f); !is {
		return at
	}
	online, silent := s.members(now)
	f.members, f.silent = len(online)+len(silent), len(silent)
	if is, at := due(f); !is {
		return at
	}
	s.Logger.Info("window is open; opening a run", "tenant", s.Tenant, "hosts", len(online), "silent", len(silent), "not-after", span.End)
	return s.append(ctx, opened(message.Event{
		Trigger: message.TriggerWindow, Hosts: online, Silent: silent, Window: &span.Start, NotAfter: &span.End,
	}))
}

// lastWindow returns when the window opened that got a run last, or when that
// run was opened if nothing better is known.
func (s *state) lastWindow() time.Time {
	switch newest := s.ledger.Newest(); {
	case newest == nil:
		return time.Time{}
	case newest.Window.IsZero():
		return newest.OpenedAt
	default:
		return newest.Window
	}
}

func opened(e message.Event) message.Record {
	e.Event = message.Opened
	return message.Record{Kind: message.EventRecord, Body: e.Encode()}
}

// Start opens a run by hand and returns it once its prepare is on the log
// (AV-81). by is who asks. The error is run.ErrNotConfigured, *run.Refused or
// run.ErrNotReady.
func (c *Controller) Start(ctx context.Context, by string, request v1.Start) (v1.Run, error) {
	answer := make(chan v1.Run, 1)
	// What is begun is finished though whoever asked has left: a record half
	// appended would hold up the next.
	if err := c.attempt(ctx, func(s *state) error {
		return s.start(context.WithoutCancel(ctx), by, request, answer)
	}); err != nil {
		return v1.Run{}, err
	}
	return await(ctx, c, answer)
}

func (s *state) start(ctx context.Context, by string, request v1.Start, answer chan v1.Run) error {
	if err := s.ready(); err != nil {
		return err
	}
	if s.config == nil {
		return run.ErrNotConfigured
	}
	now := s.Now()
	switch current := s.ledger.Current(); {
	case current == nil:
	case current.ID == 0:
		return fmt.Errorf("%w: a run is just being opened", run.ErrNotReady)
	default:
		return &run.Refused{Run: current.ID, Message: fmt.Sprintf("run %d is under way; wait until it ends", current.ID)}
	}
	e, err := s.bounds(now, request)
	if err != nil {
		return err
	}
	online, silent := s.members(now)
	if err := s.startable(now, online, silent); err != nil {
		return err
	}
	e.Trigger, e.Hosts, e.Silent, e.By, e.Why = message.TriggerManual, online, silent, by, request.Reason
	s.stale = true
	if retryAt := s.append(ctx, opened(e)); !retryAt.IsZero() {
		return fmt.Errorf("%w: it could not write to the log", run.ErrNotReady)
	}
	s.openings = append(s.openings, opening{seq: s.last, answer: answer})
	return nil
}

// bounds returns when a run that is started now has to end, and the window
// that it is in. Who overrides the windows and says for how long means that,
// whether one is open or not.
func (s *state) bounds(now time.Time, request v1.Start) (message.Event, error) {
	span, found := window.Next(s.windows, s.Zone, now)
	var e message.Event
	switch open := found && !now.Before(span.Start); {
	case open:
		e.Window, e.NotAfter = &span.Start, &span.End
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

// startable tells why a run of these hosts cannot start.
func (s *state) startable(now time.Time, online, silent []string) error {
	switch {
	case len(online)+len(silent) == 0:
		return &run.Refused{Message: "no host of a listed worker application is known; start a worker under one of worker-applications first"}
	case len(silent) > 0 && now.Before(s.started.Add(settle)):
		return fmt.Errorf("%w: it has just started and has not heard of host %s yet", run.ErrNotReady, silent[0])
	case len(online) == 0:
		return &run.Refused{Message: fmt.Sprintf("none of the %d hosts is online; host %s was not heard of for %s", len(silent), silent[0], message.Silence)}
	}
	return nil
}

// answerOpenings answers the requests whose run has its prepare by now.
func (s *state) answerOpenings() {
	newest := s.ledger.Newest()
	if newest == nil || newest.ID == 0 && !newest.Over() {
		return
	}
	waiting := s.openings[:0]
	for _, o := range s.openings {
		if o.seq == newest.OpenedSeq {
			o.answer <- s.view(newest)
			continue
		}
		waiting = append(waiting, o)
	}
	s.openings = waiting
}
