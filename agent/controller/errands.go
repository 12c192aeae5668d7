package controller

import (
	"context"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
)

// askAgain is the wait before a host is asked again for a task whose outcome has
// not come: either may be lost.
const askAgain = 5 * time.Second

// errands are the tasks that the run wants now: each is asked for until it has
// its outcome or is wanted no more. What it knows is nowhere else, and need
// not be: after a restart the run wants the same tasks.
type errands struct {
	Options
	post   func(context.Context, func(*state)) error
	places chan struct{}
	// under holds what is under way, by host; the fleet's has no host.
	under map[string]*errand
	// ends are closed at the end of what was run last for a host at the site.
	ends map[string]<-chan struct{}
	// came holds the outcomes that are not on the log yet.
	came map[string]message.Outcome
}

// errand is a task that is wanted until unwant, and ends at cancel at the
// latest.
type errand struct {
	key            message.Key
	onSite         bool
	unwant, cancel context.CancelFunc
}

func newErrands(o Options, post func(context.Context, func(*state)) error) *errands {
	return &errands{
		Options: o, post: post, places: make(chan struct{}, message.SiteTasks), under: map[string]*errand{},
		ends: map[string]<-chan struct{}{}, came: map[string]message.Outcome{},
	}
}

// want has a task run from a time on, in place of what was wanted of its host
// before. A drain that has begun at the site comes to its end all the same, and
// the task after it: whoever was told to take a host out of service may do so
// though nobody waits for that any more.
func (e *errands) want(ctx context.Context, t message.Task, from time.Time) {
	now := e.under[t.Host]
	if now != nil && now.key == t.Key() {
		return
	}
	life, cancel := context.WithCancel(ctx)
	wanted, unwant := context.WithCancel(life)
	next := &errand{key: t.Key(), onSite: t.OnSite(), unwant: unwant, cancel: cancel}
	if now != nil && now.onSite && now.key.Kind == message.Drain {
		now.unwant()
		// Once nobody wants the undrain any more, another controller has done it.
		next.cancel = func() { cancel(); now.cancel() }
		delete(e.under, t.Host)
	}
	e.drop(t.Host)
	e.under[t.Host] = next
	if !t.OnSite() {
		go e.ask(wanted, t, from)
		return
	}
	before, ended := e.ends[t.Host], make(chan struct{})
	e.ends[t.Host] = ended
	go func() {
		defer cancel()
		e.waitUntil(wanted, from)
		if before != nil {
			<-before
		}
		e.run(wanted, life, t)
		close(ended)
	}()
}

// over ends a task that has its outcome, which may be another controller's.
func (e *errands) over(o message.Outcome) {
	if now := e.under[o.Host]; now != nil && now.key == o.Key() {
		e.drop(o.Host)
	}
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

// run runs a task at the site that is wanted still.
func (e *errands) run(wanted, life context.Context, t message.Task) {
	if t.Kind != message.Fleet {
		select {
		case e.places <- struct{}{}:
			defer func() { <-e.places }()
		case <-wanted.Done():
			return
		}
	}
	if wanted.Err() != nil {
		return
	}
	e.At("before site task")
	o := t.Outcome(false, "this site runs no checks and hooks")
	if e.Site != nil {
		o = e.Site.Run(life, t)
	}
	if wanted.Err() == nil {
		e.At("after site task")
		_ = e.post(wanted, func(s *state) { s.outcome(t.Host, o, true) })
	}
}

// waitUntil waits until a time. A clock that was set back does not put it off
// for long.
func (e *errands) waitUntil(ctx context.Context, from time.Time) {
	pause(ctx, min(from.Sub(e.Now()), longestSleep))
}

// ask asks a host from a time on until the task is wanted no more.
func (e *errands) ask(ctx context.Context, t message.Task, from time.Time) {
	e.waitUntil(ctx, from)
	for ctx.Err() == nil {
		e.At("before ask")
		if err := e.HostEvents.Send(t); err != nil {
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
