package controller

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

const (
	// askAgain is the wait before a host is asked again for a task whose
	// outcome has not come: either may be lost.
	askAgain = 5 * time.Second
	// sitePlaces is how many tasks are run at the site at once.
	sitePlaces = 64
)

// errands are the tasks that the run wants now: each is asked for until it has
// its outcome or is wanted no more. What it knows is nowhere else, and need
// not be: after a restart the run wants the same tasks.
type errands struct {
	Options
	post   func(context.Context, func(*state)) error
	places chan struct{}
	// under holds what is under way, by host; the fleet's has no host.
	under map[string]*errand
	// came holds the outcomes that are not on the log yet.
	came map[string]message.Outcome
}

type errand struct {
	key    message.Key
	onSite bool
	cancel context.CancelFunc
}

func newErrands(o Options, post func(context.Context, func(*state)) error) *errands {
	return &errands{
		Options: o, post: post, places: make(chan struct{}, sitePlaces), under: map[string]*errand{}, came: map[string]message.Outcome{},
	}
}

// want has a task run from a time on, in place of what was wanted of its host
// before.
func (e *errands) want(ctx context.Context, t message.Task, from time.Time) {
	if now := e.under[t.Host]; now != nil && now.key == t.Key() {
		return
	}
	e.drop(t.Host)
	ctx, cancel := context.WithCancel(ctx)
	e.under[t.Host] = &errand{key: t.Key(), onSite: t.OnSite(), cancel: cancel}
	go e.run(ctx, t, from)
}

// drop ends what is wanted of a host.
func (e *errands) drop(host string) {
	if now := e.under[host]; now != nil {
		now.cancel()
		delete(e.under, host)
	}
	delete(e.came, host)
}

func (e *errands) dropAll() {
	for host := range e.under {
		e.drop(host)
	}
}

// run asks for a task, or runs it at the site.
func (e *errands) run(ctx context.Context, t message.Task, from time.Time) {
	// A clock that was set back does not put it off for long.
	pause(ctx, min(from.Sub(e.Now()), longestSleep))
	if !t.OnSite() {
		e.ask(ctx, t)
		return
	}
	select {
	case e.places <- struct{}{}:
		defer func() { <-e.places }()
	case <-ctx.Done():
		return
	}
	e.At("before site task")
	o := t.Outcome(false, "this site runs no checks and hooks")
	if e.Site != nil {
		o = e.Site.Run(ctx, t)
	}
	if ctx.Err() == nil {
		e.At("after site task")
		_ = e.post(ctx, func(s *state) { s.outcome(t.Host, o, true) })
	}
}

// ask asks a host until the task is wanted no more.
func (e *errands) ask(ctx context.Context, t message.Task) {
	for ctx.Err() == nil {
		e.At("before ask")
		if err := e.Ear.Ask(t); err != nil {
			e.Logger.Warn("cannot ask host for a task; trying again", "tenant", e.Tenant, "host", t.Host, "task", t.Kind, "error", err)
		}
		pause(ctx, askAgain)
	}
}

// outcome takes in how a task of a host came out, if it is wanted; host is
// empty for the fleet's. A host says nothing of what is run at the site.
func (s *state) outcome(host string, o message.Outcome, fromSite bool) {
	if now := s.tasks.under[host]; now == nil || now.key != o.Key() || now.onSite != fromSite {
		return
	}
	s.tasks.came[host] = o
	s.stale = true
}

// ran returns the event of an outcome that is not on the log yet.
func (s *state) ran(current *run.State) (message.Event, bool) {
	for host, o := range s.tasks.came {
		if !current.Awaits(o) {
			s.tasks.drop(host)
			continue
		}
		e := message.Event{Event: message.Ran, Outcome: &o}
		return e, true
	}
	return message.Event{}, false
}

// sync asks for what the run wants of a host, and for nothing else.
func (s *state) sync(ctx context.Context, current *run.State, host string) {
	t, from, wanted := current.Task(host)
	if !wanted {
		s.tasks.drop(host)
		return
	}
	s.tasks.want(ctx, t, from)
}

// syncFleet asks for the checks of the fleet, if the step waits for them.
func (s *state) syncFleet(ctx context.Context, step run.Step) {
	if step.Fleet == nil {
		s.tasks.drop("")
		return
	}
	s.tasks.want(ctx, *step.Fleet, step.FleetFrom)
}
