// Package controller opens the runs of one tenant when a window opens or
// somebody asks, and drives them: it folds the log, asks run for the next
// step, and appends what that says.
//
// It decides nothing that run, window or due do not decide. It keeps nothing
// that the log and the store do not have: kill it anywhere, start another, and
// that one goes on (AV-82).
package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/guard"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// Store is what a controller needs of the store.
type Store interface {
	WatchConfig(ctx context.Context, tenant string, see func(store.Seen[v1.OSUpgrade])) error
	WatchCalendars(ctx context.Context, tenant string, see func(store.SeenCalendar)) error
	WatchRollout(ctx context.Context, tenant string, see func(store.Seen[v1.Rollout])) error
	Hosts(ctx context.Context, tenant string) ([]store.Host, error)
	PutHost(ctx context.Context, key string, host store.Host) error
	DeleteHost(ctx context.Context, tenant, key string) error
	WatchVersions(ctx context.Context, tenant string, see func(store.Reported)) error
	VersionsNumber(ctx context.Context, tenant string) (uint64, error)
	PutRun(ctx context.Context, tenant string, r v1.Run, asOf uint64) error
	Run(ctx context.Context, tenant string, id uint64) (v1.Run, error)
	Runs(ctx context.Context, tenant string, deliver func(v1.Run) (more bool)) error
}

// Runner runs the tasks that are run at the site.
type Runner interface {
	Run(ctx context.Context, t message.Task) message.Outcome
}

// Options say what a controller controls.
type Options struct {
	Tenant string
	// Zone is the site's time zone, for windows that are site-local.
	Zone       *time.Location
	Log        log.Log
	HostEvents log.HostEvents
	Guard      *guard.Guard
	Store      Store
	// Site runs the tasks that are run at the site; nil lets each of them fail.
	Site Runner
	// Logger takes what operators may want to know.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// At is told the label of each step before it is taken and after it was
	// (tests crash there); nil means nobody.
	At func(label string)
}

// Controller is the controller of one tenant. One goroutine, that of Run, owns
// all it knows; whoever else wants something asks it there.
type Controller struct {
	o      Options
	posted chan func(*state)
	inbox  *inbox
	keeper *keeper
	past   *historian
	// knows is closed once the log and the configuration have been read as they
	// stood at the start, done when Run has ended.
	knows, done chan struct{}
}

// New makes a controller. It does nothing before Run.
func New(o Options) *Controller {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.At == nil {
		o.At = func(string) {}
	}
	return &Controller{
		o: o, posted: make(chan func(*state), 64), inbox: newInbox(), keeper: newKeeper(o), past: newHistorian(o),
		knows: make(chan struct{}), done: make(chan struct{}),
	}
}

// Run controls until ctx ends, which is no error, or a part that it stands on
// fails.
func (c *Controller) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer close(c.done)
	s, err := c.load(ctx)
	if err != nil {
		return err
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { c.keeper.run(ctx) })
	keeping.Go(func() { c.past.run(ctx) })
	for _, part := range []func(context.Context) error{c.followLog, c.watchConfig, c.watchRollout, c.watchCalendars, c.watchVersions, c.listen} {
		go func() {
			if err := part(ctx); err != nil && ctx.Err() == nil {
				cancel(err)
			}
		}()
	}
	s.loop(ctx, c.posted, c.inbox)
	keeping.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return fmt.Errorf("the controller of tenant %s has stopped: %w", c.o.Tenant, cause)
	}
	return nil
}

// load reads what is there before anything new comes.
func (c *Controller) load(ctx context.Context) (*state, error) {
	s := newState(c.o, c.keeper, c.knows)
	s.past, s.tasks = c.past, newErrands(c.o, c.post)
	hosts, err := c.o.Store.Hosts(ctx, c.o.Tenant)
	if err != nil {
		return nil, err
	}
	for _, h := range hosts {
		s.hosts[h.Name] = &host{Host: h}
	}
	if s.last, err = c.o.Log.Last(ctx); err != nil {
		return nil, err
	}
	s.startedAt = s.last
	if s.first, err = c.o.Log.First(ctx); err != nil {
		return nil, err
	}
	if s.kept, err = c.past.newest(ctx); err != nil {
		return nil, err
	}
	if err := c.o.Guard.End(s.last); err != nil {
		s.raise(err)
	}
	s.learnt()
	return s, nil
}

func (c *Controller) followLog(ctx context.Context) error {
	return c.o.Log.Follow(ctx, 1, func(r message.Record) {
		_ = c.post(ctx, func(s *state) { s.fold(ctx, r) })
	})
}

func (c *Controller) watchConfig(ctx context.Context) error {
	return c.o.Store.WatchConfig(ctx, c.o.Tenant, func(seen store.Seen[v1.OSUpgrade]) {
		_ = c.post(ctx, func(s *state) { s.configure(seen) })
	})
}

func (c *Controller) watchRollout(ctx context.Context) error {
	return c.o.Store.WatchRollout(ctx, c.o.Tenant, func(seen store.Seen[v1.Rollout]) {
		_ = c.post(ctx, func(s *state) { s.setRollout(seen) })
	})
}

// watchVersions takes in what hosts report of their versions.
func (c *Controller) watchVersions(ctx context.Context) error {
	return c.o.Store.WatchVersions(ctx, c.o.Tenant, func(r store.Reported) {
		_ = c.post(ctx, func(s *state) { s.report(r) })
	})
}

func (c *Controller) listen(ctx context.Context) error {
	return c.o.HostEvents.Listen(ctx, log.Listener{
		Alive: func(name string, a message.Alive) {
			c.inbox.put(name, func(l *letter) { l.alive, l.aliveAt = a, c.o.Now() })
		},
		Progress: func(name string, p message.Progress) {
			c.inbox.put(name, func(l *letter) { l.progress, l.progressAt = p, c.o.Now() })
		},
		Outcome: func(name string, o message.Outcome) {
			c.inbox.put(name, func(l *letter) { l.outcome = &o })
		},
	})
}
