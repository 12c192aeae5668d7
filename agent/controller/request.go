package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Ask makes an operator's request of the run under way in the environment that the body names,
// waits until its event is on disk, and returns the run. A release is also possible after the end of
// a run. The error is *run.Refused, *run.Ambiguous, *run.NoEnvironment or run.ErrNotReady.
func (c *Controller) Ask(ctx context.Context, by string, ask run.Ask, body v1.Ask) (v1.Run, error) {
	q := &request{environment: body.Environment, Request: run.Request{Ask: ask, By: by, Why: body.Reason, Stage: body.Stage, Host: body.Host, Now: body.Now, ResetFailures: body.ResetFailures}}
	return waitFor(ctx, c, q, func(s *state) (v1.Run, error) { return s.asked(q) })
}

// AbortAll aborts each run under way, as Ask does, and returns them without their hosts. It can be
// repeated: a run that is already aborting counts as aborted, and no run at all is no error. The
// error is *run.Partly when some could not be aborted.
func (c *Controller) AbortAll(ctx context.Context, by string, body v1.Ask) ([]v1.Run, error) {
	environments, err := ask(ctx, c, func(s *state) (names []string) {
		for _, env := range s.ledger.UnderWay() {
			names = append(names, nameOf(env.Name))
		}
		return names
	})
	if err != nil {
		return nil, err
	}
	result := run.Partly{Done: []v1.Run{}}
	for _, name := range environments {
		body.All, body.Environment = false, name
		r, err := c.abortOne(ctx, by, body)
		if err != nil {
			result.Failed = append(result.Failed, run.Failure{Environment: name, Err: err})
			continue
		}
		r.Hosts, r.Events = []v1.RunHost{}, nil
		result.Done = append(result.Done, r)
	}
	if len(result.Failed) > 0 {
		return nil, &result
	}
	return result.Done, nil
}

// abortOne aborts the run of an environment, unless it is aborting already or has ended meanwhile.
func (c *Controller) abortOne(ctx context.Context, by string, body v1.Ask) (v1.Run, error) {
	r, err := c.Ask(ctx, by, run.Abort, body)
	if _, refused := errors.AsType[*run.Refused](err); !refused {
		return r, err
	}
	newest, again := ask(ctx, c, func(s *state) *v1.Run {
		env := s.environments[onLog(body.Environment)]
		if env == nil || env.ledger.Current() != nil && !env.ledger.Current().IsAborting() {
			return nil
		}
		return s.newestRun(env, s.Now())
	})
	if again != nil || newest == nil {
		return r, err
	}
	return *newest, nil
}

// address decides of which environment the run is that each undecided request is about.
func (s *state) address() {
	for q := range s.undecided() {
		if q.of != nil {
			continue
		}
		if q.of, q.refused = s.about(q); q.of != nil {
			q.Environment = s.inCommand(q.of)
		}
	}
}

// about returns the environment that a request is about. A request that names none is about the only
// run under way; a release is about the run of its host.
func (s *state) about(q *request) (*environment, error) {
	underWay := s.ledger.UnderWay()
	switch {
	case q.environment != "":
		return s.existing(q.environment)
	case q.Ask == run.Release:
		return s.lastOf(q.Host), nil
	case len(underWay) == 1:
		return s.environment(underWay[0].Name), nil
	case len(underWay) == 0 && s.alone():
		return s.standard(), nil
	case len(underWay) == 0:
		return nil, &run.Refused{Message: "no run is in progress in any environment; to start one: " + run.TypedIn("NAME", "start --override-window")}
	}
	found := ambiguity{}
	for _, e := range underWay {
		found.add(v1.Choice{Environment: nameOf(e.Name), Run: e.Current().Key(), Command: run.TypedIn(nameOf(e.Name), q.words())}, "run %d of %s", e.Current().Key(), nameOf(e.Name))
	}
	var all string
	if q.Ask == run.Abort {
		all = ", or to abort all of them: " + run.Typed(q.words()+" --all")
	}
	return nil, found.of("several runs are in progress: %s; say which you mean: %s" + all)
}

// words are the command of a request, with its flags.
func (q *request) words() string {
	words := strings.TrimSpace(string(q.Ask) + " " + q.Stage)
	switch {
	case q.Now:
		words += " --now"
	case q.ResetFailures:
		words += " --reset-failures"
	}
	return words
}

// mostChoices bounds the choices of an answer: a tenant may have a thousand environments.
const mostChoices = 20

// ambiguity gathers what a request may mean. Its text and its choices name the first.
type ambiguity struct {
	choices []v1.Choice
	texts   []string
}

func (a *ambiguity) add(choice v1.Choice, format string, args ...any) {
	a.choices, a.texts = append(a.choices, choice), append(a.texts, fmt.Sprintf(format, args...))
}

// of returns the error; format takes what there is, and the commands.
func (a *ambiguity) of(format string) error {
	var commands []string
	for _, c := range a.choices[:min(len(a.choices), mostNamed)] {
		commands = append(commands, c.Command)
	}
	return &run.Ambiguous{Choices: a.choices[:min(len(a.choices), mostChoices)], Message: fmt.Sprintf(format, text.List(a.texts, mostNamed), strings.Join(commands, ", "))}
}

// existing returns the environment of a name that people gave, if there is one. The error is
// *run.NoEnvironment.
func (s *state) existing(name string) (*environment, error) {
	if env := s.environments[onLog(name)]; env != nil {
		return env, nil
	}
	return nil, s.noEnvironment(name)
}

// noEnvironment is the error that there is no environment of a name, or that it was deleted.
func (s *state) noEnvironment(name string) error {
	var known []string
	for _, env := range s.inOrder {
		if nameOf(env.name) != name {
			known = append(known, nameOf(env.name))
		}
	}
	slices.Sort(known)
	return &run.NoEnvironment{Name: name, Known: known}
}

// inCommand is how a command names an environment: not at all while there is no other.
func (s *state) inCommand(env *environment) string {
	if s.alone() {
		return ""
	}
	return nameOf(env.name)
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
