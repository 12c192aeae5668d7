package sim

import (
	"context"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// site starts a controller and a gate, in one process, again and again.
type site struct {
	w     *World
	name  string
	clock *clock
	link  *link
	// listener receives what hosts send beside the log; the world's lock guards it.
	listener *log.Listener
	mu       sync.Mutex
	// given is the last record that the controller was given; at givenAt it surely knew
	// those up to known.
	given, known uint64
	givenAt      time.Time
	p            *process
	// c is the controller that runs, which is passive once it was told so.
	c       *controller.Controller
	passive bool
	// since is when the session of the controller has begun.
	since time.Time
	gate  *siteGate
	guard *guardFile
}

// die kills the controller, if one runs.
func (s *site) die(why string) {
	s.mu.Lock()
	p := s.p
	s.mu.Unlock()
	if p != nil {
		p.die(why)
	}
}

// controller returns the controller that runs, or nil.
func (s *site) controller() *controller.Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c
}

// gathering is how long a controller that has begun may wait for hosts to be heard of, and longer.
const gathering = 5 * time.Minute

// isGathering reports whether the controller that runs may wait for hosts to be heard of.
func (s *site) isGathering() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.since) < gathering
}

// setActive makes the controller that runs active or passive.
func (s *site) setActive(active bool) {
	if c := s.controller(); c != nil {
		s.w.sessionEnded()
		c.SetActive(active)
		s.mu.Lock()
		s.passive, s.since = !active, time.Now()
		s.mu.Unlock()
	}
}

// sessionEnded tells the oracle that a controller forgets what is in no store.
func (w *World) sessionEnded() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oracle.SessionEnded(time.Now())
}

// keep starts one controller after the other.
func (s *site) keep() {
	for {
		if sleep(s.w.ctx, s.w.rng.span("controller start/"+s.name, 100*time.Millisecond, 5*time.Second)) != nil {
			return
		}
		if s.w.quiet.Load() {
			// Without its link it would end by an error again and again.
			_ = s.link.wait(s.w.ctx)
		}
		s.run()
	}
}

// guardFile is what a controller's guard keeps. A later life of the controller gets
// a copy: what a dead controller writes late must not reach it.
type guardFile struct {
	mu    sync.Mutex
	state guard.State
}

// Read implements guard.Storage.
func (f *guardFile) Read() guard.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Write implements guard.Storage.
func (f *guardFile) Write(state guard.State) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
	return nil
}

// nextGuard is the guard's file of the next life.
func (s *site) nextGuard() *guardFile {
	s.guard = &guardFile{state: s.guard.Read()}
	return s.guard
}

func (s *site) run() {
	w := s.w
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	p := &process{w: w, name: "controller " + s.name, kind: "controller", fault: "crash of a controller", ctx: ctx, cancel: cancel}
	log, kept := siteLog{w, s, p}, siteStore{w.store, w, p}
	c := controller.New(controller.Options{
		Tenant: tenant, Zone: time.UTC, Log: log, HostEvents: log, Guard: guard.New(s.nextGuard()), Store: kept, News: kept,
		Site: siteRunner{w, p}, Secrets: strongbox{}, Logger: w.logger(p.name), Now: s.clock.now, At: p.at,
	})
	s.mu.Lock()
	s.p, s.c, s.passive, s.since = p, c, false, time.Now()
	s.mu.Unlock()
	s.startGate(ctx, p)
	w.count("controllers started")
	err := c.Run(ctx)
	w.sessionEnded()
	s.mu.Lock()
	s.c = nil
	s.mu.Unlock()
	if err != nil && !p.dead() && w.ctx.Err() == nil {
		w.note("%s has ended: %v", p.name, err)
		w.count("controllers ended by an error")
		p.die("error")
	}
}

// siteRunner runs the tasks of a site.
type siteRunner struct {
	w *World
	p *process
}

// Run implements controller.Runner.
func (r siteRunner) Run(ctx context.Context, t message.Task) message.Outcome {
	ctx, cancel := context.WithTimeout(ctx, t.Limit())
	defer cancel()
	return r.w.perform(ctx, t, r.p)
}
