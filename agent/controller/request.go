package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Ask makes an operator's request of the run under way, waits until its event is on
// disk, and returns the run. A release is also possible after the end of a run. The
// error is *run.Refused or run.ErrNotReady.
func (c *Controller) Ask(ctx context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	return c.AskIn(ctx, nil, by, ask, body)
}

// AskIn is Ask of the run of an environment, given by its name on the log; nil names none.
func (c *Controller) AskIn(ctx context.Context, environment *string, by string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	q := &request{environment: environment, Request: run.Request{Ask: ask, By: by, Why: body.Reason, Stage: body.Stage, Host: body.Host, Now: body.Now, ResetFailures: body.ResetFailures}}
	return waitFor(ctx, c, q, func(s *state) (v1.Run, error) { return s.asked(q) })
}

// AbortAll is Ask to abort each run under way.
func (c *Controller) AbortAll(ctx context.Context, by string, body v1.Ask) error {
	environments, err := ask(ctx, c, func(s *state) (names []string) {
		for _, env := range s.ledger.UnderWay() {
			names = append(names, env.Name)
		}
		return names
	})
	if err != nil || len(environments) == 0 {
		return err
	}
	var failed []error
	for _, name := range environments {
		_, err := c.AskIn(ctx, &name, by, run.Abort, body)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// address decides of which environment the run is that each undecided request is about.
func (s *state) address() {
	for q := range s.undecided() {
		if q.of == nil {
			q.of, q.refused = s.about(q)
		}
	}
}

// about returns the environment that a request is about. Who names none means the only run under
// way, or the run in which the host is that is to be released.
func (s *state) about(q *request) (*environment, error) {
	underWay := s.ledger.UnderWay()
	switch {
	case q.environment != nil:
		return s.existing(*q.environment)
	case q.Ask == run.Release:
		return s.lastOf(q.Host), nil
	case len(underWay) == 0:
		return s.standard(), nil
	case len(underWay) == 1:
		return s.environment(underWay[0].Name), nil
	}
	var runs, commands []string
	for _, e := range underWay[:min(len(underWay), mostNamed)] {
		runs = append(runs, fmt.Sprintf("run %d of %s", e.Key(), nameOf(e.Name)))
		commands = append(commands, run.Typed(strings.TrimSpace(string(q.Ask)+" "+q.Stage)+" --environment "+nameOf(e.Name)))
	}
	if more := len(underWay) - len(runs); more > 0 {
		runs = append(runs, fmt.Sprintf("%d more", more))
	}
	return nil, &run.Refused{Message: fmt.Sprintf("several runs are under way: %s; say which you mean: %s", strings.Join(runs, ", "), strings.Join(commands, ", "))}
}

// existing returns the environment of a name, if there is one.
func (s *state) existing(name string) (*environment, error) {
	if env := s.environments[name]; env != nil {
		return env, nil
	}
	return nil, &run.Refused{Message: fmt.Sprintf("there is no environment %s", nameOf(name))}
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
	env := q.of
	if q.unlocks {
		return v1.Run{Hosts: []v1.RunHost{}}, nil
	}
	newest := env.ledger.Newest()
	if newest.OpenedSeq > q.seq { // It has ended, and another run was opened.
		newest = env.ledger.Ended()
	}
	if newest.AwaitsNobody() && s.log.failing.IsZero() {
		return v1.Run{}, errPending // Its end is the next record.
	}
	return s.view(env, newest), nil
}
