package sim

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
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
	p        *process
	c        *controller.Controller
	gate     *siteGate
	guard    *guardFile
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

// setActive makes the controller that runs active or passive.
func (s *site) setActive(active bool) {
	if c := s.controller(); c != nil {
		c.SetActive(active)
	}
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

// guardFile is the file of a controller's guard. A later life of the controller gets
// a copy: what a dead controller writes late must not reach it.
type guardFile struct {
	mu   sync.Mutex
	body []byte
}

// Read implements guard.Storage.
func (f *guardFile) Read() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.body == nil {
		return nil, os.ErrNotExist
	}
	return f.body, nil
}

// Write implements guard.Storage.
func (f *guardFile) Write(body []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.body = body
	return nil
}

// String implements guard.Storage.
func (f *guardFile) String() string { return "guard" }

// nextGuard is the guard's file of the next life.
func (s *site) nextGuard() *guardFile {
	body, _ := s.guard.Read()
	s.guard = &guardFile{body: body}
	return s.guard
}

func (s *site) run() {
	w := s.w
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	p := &process{w: w, name: "controller " + s.name, kind: "controller", fault: "crash of a controller", ctx: ctx, cancel: cancel}
	g, err := guard.OpenStorage(s.nextGuard())
	if err != nil {
		w.violated("controller %s: %v", s.name, err)
		return
	}
	log := siteLog{w, s, p}
	c := controller.New(controller.Options{
		Tenant: tenant, Zone: time.UTC, Log: log, HostEvents: log, Guard: g, Store: siteStore{w.store, w, p},
		Site: siteRunner{w, p}, Logger: w.logger(p.name), Now: s.clock.now, At: p.at,
	})
	s.mu.Lock()
	s.p, s.c = p, c
	s.mu.Unlock()
	s.startGate(ctx, p)
	w.count("controllers started")
	err = c.Run(ctx)
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
