package controller

import (
	"bytes"
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// request is what a caller asks of the run under way. It is decided in its turn:
// what it comes to depends on the requests before it.
type request struct {
	run.Request
	// seq is the sequence of its event on the log, 0 before that is written;
	// refused is why there will be none.
	seq     uint64
	refused error
	// tried is the event that may be on the log though its append failed.
	tried []byte
}

// Ask does what somebody asks of the run under way, once it is on disk, and
// returns the run. A slot can be released after the end of a run, too. The error
// is *run.Refused or run.ErrNotReady.
func (c *Controller) Ask(ctx context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	q := &request{Request: run.Request{Ask: ask, By: by, Why: body.Reason, Stage: body.Stage, Host: body.Host}}
	return waitFor(ctx, c, q, func(s *state) (v1.Run, error) { return s.asked(q) })
}

// asked is the answer to a request: the run as it is once the event of the
// request was folded.
func (s *state) asked(q *request) (v1.Run, error) {
	switch {
	case q.refused != nil:
		return v1.Run{}, q.refused
	case s.alarm != nil || !s.session.active:
		return v1.Run{}, s.mayWrite()
	case q.seq == 0 || q.seq > s.ledger.LastSeq:
		return v1.Run{}, errPending
	}
	return s.view(s.ledger.Newest()), nil
}

// nextRequest returns the request that is to be decided next, of a caller that
// still waits; nil when there is none.
func (s *state) nextRequest() *request {
	for _, w := range s.waiters {
		if q := w.request; q != nil && q.seq == 0 && q.refused == nil && w.ctx.Err() == nil {
			return q
		}
	}
	return nil
}

// written notes that the event of a request is on the log.
func (s *state) written(current *run.State, q *request, seq uint64) {
	s.Logger.Info("asked", "tenant", s.Tenant, "run", current.Key(), "ask", q.Ask, "by", q.By, "why", q.Why)
	q.seq = seq
}

// recognize notes that the event of a request is on the log whose append had
// failed: it is not refused for what it has done itself.
func (s *state) recognize(current *run.State, r message.Record) {
	if q := s.nextRequest(); q != nil && r.Kind == message.EventRecord && q.tried != nil && bytes.Equal(r.Body, q.tried) {
		s.written(current, q, r.Seq)
	}
}
