package controller

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Ask makes an operator's request of the run under way, waits until its event is on
// disk, and returns the run. A release is also possible after the end of a run. The
// error is *run.Refused or run.ErrNotReady.
func (c *Controller) Ask(ctx context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	q := &request{Request: run.Request{Ask: ask, By: by, Why: body.Reason, Stage: body.Stage, Host: body.Host, Now: body.Now, ResetFailures: body.ResetFailures}}
	return waitFor(ctx, c, q, func(s *state) (v1.Run, error) { return s.asked(q) })
}

// asked returns the run once the event of a request is folded, or why the request
// was refused.
func (s *state) asked(q *request) (v1.Run, error) {
	switch {
	case q.refused != nil:
		return v1.Run{}, q.refused
	case s.alarm != nil || !s.active:
		return v1.Run{}, s.mayWrite()
	case q.seq == 0 || q.seq > s.ledger.LastSeq:
		return v1.Run{}, errPending
	}
	env := s.standard()
	newest := env.ledger.Newest()
	if newest.OpenedSeq > q.seq { // It has ended, and another run was opened.
		newest = env.ledger.Ended()
	}
	if newest.AwaitsNobody() && s.log.failing.IsZero() {
		return v1.Run{}, errPending // Its end is the next record.
	}
	return s.view(env, newest), nil
}
