package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

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
	case s.alarm != nil || !s.active:
		return v1.Run{}, s.mayWrite()
	case q.seq == 0 || q.seq > s.ledger.LastSeq:
		return v1.Run{}, errPending
	}
	return s.view(s.ledger.Newest()), nil
}
