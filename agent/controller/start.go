package controller

import (
	"context"
	"errors"
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
	online, silent := s.members(now)
	f := facts{
		now: now, span: span, inSpan: !now.Before(span.Start), started: s.started, joined: s.joined,
		members: len(online) + len(silent), silent: len(silent),
	}
	if newest := s.ledger.Newest(); newest != nil {
		f.lastOpened = newest.OpenedAt
	}
	open, at := due(f)
	if !open {
		return at
	}
	s.Logger.Info("window is open; opening a run", "tenant", s.Tenant, "hosts", len(online), "silent", len(silent), "not-after", span.End)
	return s.append(ctx, opened(message.Event{Trigger: message.TriggerWindow, Hosts: online, Silent: silent, NotAfter: &span.End}))
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
	var refused error
	if err := c.ask(ctx, func(s *state) { refused = s.start(ctx, by, request, answer) }); err != nil {
		return v1.Run{}, err
	}
	if refused != nil {
		return v1.Run{}, refused
	}
	select {
	case r := <-answer:
		return r, nil
	case <-c.done:
		return v1.Run{}, run.ErrNotReady
	case <-ctx.Done():
		return v1.Run{}, ctx.Err()
	}
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
		return errors.Join(run.ErrNotReady, errors.New("a run is just being opened"))
	default:
		return &run.Refused{Run: current.ID, Message: fmt.Sprintf("run %d is under way; wait until it ends", current.ID)}
	}
	end, err := s.endOfRun(now, request)
	if err != nil {
		return err
	}
	online, silent := s.members(now)
	if err := s.startable(now, online, silent); err != nil {
		return err
	}
	retryAt := s.append(ctx, opened(message.Event{
		Trigger: message.TriggerManual, Hosts: online, Silent: silent, NotAfter: &end, By: by, Why: request.Reason,
	}))
	if !retryAt.IsZero() {
		return errors.Join(run.ErrNotReady, errors.New("it could not write to the log"))
	}
	s.openings = append(s.openings, opening{seq: s.last, answer: answer})
	return nil
}

// endOfRun returns when a run that is started now has to end.
func (s *state) endOfRun(now time.Time, request v1.Start) (time.Time, error) {
	span, found := window.Next(s.windows, s.Zone, now)
	switch {
	case found && !now.Before(span.Start):
		return span.End, nil
	case request.OverrideWindow && request.Duration != "":
		length, err := window.ParseDuration(request.Duration)
		return now.Add(length), err
	case request.OverrideWindow:
		return now.Add(overrideDuration), nil
	case found:
		return time.Time{}, &run.Refused{Message: fmt.Sprintf(
			`no maintenance window is open; the next one opens at %s; to start now, send "override-window": true with a "reason"`,
			span.Start.UTC().Format(time.RFC3339))}
	}
	return time.Time{}, &run.Refused{Message: `no maintenance window is configured; to start now, send "override-window": true with a "reason"`}
}

// startable tells why a run of these hosts cannot start.
func (s *state) startable(now time.Time, online, silent []string) error {
	switch {
	case len(online)+len(silent) == 0:
		return &run.Refused{Message: "no host of a listed worker application is known; start a worker under one of worker-applications first"}
	case len(silent) > 0 && now.Before(s.started.Add(settle)):
		return errors.Join(run.ErrNotReady, fmt.Errorf("it has just started and has not heard of host %s yet", silent[0]))
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
