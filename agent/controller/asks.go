package controller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// request is what somebody asks of the run under way, and waits for.
type request struct {
	run.Request
	ctx    context.Context
	answer chan reply
	// tried is the event that may be on the log though its append failed.
	tried []byte
}

// reply is the answer to a request.
type reply struct {
	run v1.Run
	err error
}

// promise is a request whose event is on the log, and answered once that came
// back.
type promise struct {
	seq    uint64
	answer chan reply
}

// Ask does what somebody asks of the run under way, once it is on disk, and
// returns the run. A slot can be released after the end of a run, too. The error is *run.Refused or run.ErrNotReady.
func (c *Controller) Ask(ctx context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	q := request{
		Request: run.Request{Ask: ask, By: by, Why: body.Reason, Stage: body.Stage, Host: body.Host},
		ctx:     ctx, answer: make(chan reply, 1),
	}
	if err := c.attempt(ctx, func(s *state) error { return s.take(q) }); err != nil {
		return v1.Run{}, err
	}
	r, err := await(ctx, c, q.answer)
	if err != nil {
		return v1.Run{}, err
	}
	return r.run, r.err
}

// take keeps a request until it can be decided on: while the log is behind
// nobody knows what it would be decided on.
func (s *state) take(q request) error {
	if s.alarm != nil {
		return s.ready()
	}
	if s.ledger.LastSeq >= s.last && s.ledger.Current() == nil && (q.Ask != run.Release || s.ledger.Newest() == nil) {
		return errNoRun()
	}
	s.requests = append(s.requests, q)
	s.stale = true
	return nil
}

func errNoRun() error { return &run.Refused{Message: "no run is under way"} }

// nextRequest returns the next request of somebody who still waits.
func (s *state) nextRequest() (*request, bool) {
	for len(s.requests) > 0 {
		if q := &s.requests[0]; q.ctx.Err() == nil {
			return q, true
		}
		s.requests = s.requests[1:]
	}
	return nil, false
}

// decideRequests writes down what the next request comes to, after it has
// refused those before it that cannot be met. It reports whether there was one
// to write down, and when to try again if that failed.
func (s *state) decideRequests(ctx context.Context, current *run.State) (retryAt time.Time, wrote bool) {
	for q, some := s.nextRequest(); some; q, some = s.nextRequest() {
		e, err := current.Decide(q.Request)
		if err != nil {
			q.answer <- reply{err: err}
			s.requests = s.requests[1:]
			continue
		}
		if retryAt = s.appendEvent(ctx, current, e); retryAt.IsZero() {
			s.promised(current, s.last)
		} else if !errors.Is(s.stuck, log.ErrBehind) {
			q.tried = e.Encode()
		}
		return retryAt, true
	}
	return time.Time{}, false
}

// promised has the first request answered once a record was folded.
func (s *state) promised(current *run.State, seq uint64) {
	q := s.requests[0]
	s.requests = s.requests[1:]
	s.Logger.Info("asked", "tenant", s.Tenant, "run", current.Key(), "ask", q.Ask, "by", q.By, "why", q.Why)
	s.promises = append(s.promises, promise{seq: seq, answer: q.answer})
}

// recognize notes that the event of a request is on the log whose append had
// failed: it is not refused for what it has done itself.
func (s *state) recognize(current *run.State, r message.Record) {
	if r.Kind == message.EventRecord && len(s.requests) > 0 && s.requests[0].tried != nil && bytes.Equal(r.Body, s.requests[0].tried) {
		s.promised(current, r.Seq)
	}
}

// answerPromises answers the requests whose event came back through the log.
func (s *state) answerPromises() {
	waiting := s.promises[:0]
	for _, p := range s.promises {
		if p.seq > s.ledger.LastSeq {
			waiting = append(waiting, p)
			continue
		}
		if newest := s.ledger.Newest(); newest != nil {
			p.answer <- reply{run: s.view(newest)}
		} else {
			p.answer <- reply{err: fmt.Errorf("%w: the run is gone", run.ErrNotReady)}
		}
	}
	s.promises = waiting
}

// refuseRequests answers those that came too late for their run.
func (s *state) refuseRequests(why error) {
	for _, q := range s.requests {
		q.answer <- reply{err: why}
	}
	s.requests = nil
}

// refuseAll answers everybody who waits for something that will not come.
func (s *state) refuseAll(why error) {
	s.refuseRequests(why)
	for _, p := range s.promises {
		p.answer <- reply{err: why}
	}
	for _, o := range s.openings {
		o.answer <- reply{err: why}
	}
	s.promises, s.openings = nil, nil
}
