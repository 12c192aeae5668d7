// Package controller opens the runs of one tenant when a window opens or
// somebody asks, and drives them: it folds the log, asks run for the next
// step, and appends what that says.
//
// It decides nothing that run, window or due do not decide. It keeps nothing
// that the log and the store do not have: kill it anywhere, start another, and
// that one goes on (AV-82).
//
// A controller is active or passive. A passive one follows the log and shows
// what is, and writes nothing. With each change of that role it forgets all that
// it knows and begins anew with the log.
package controller

import (
	"context"
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
	WatchIntent(ctx context.Context, tenant string, see func(store.Seen)) error
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
	Zone *time.Location
	Log  log.Log
	// HostEvents is how it hears of hosts beside the log.
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

// Controller is the controller of one tenant.
type Controller struct {
	o        Options
	watchers watchers

	mu sync.Mutex
	// current is the session that is under way, or is next while Run has not
	// begun or a session has just ended.
	current *session
	// ended tells that Run has ended.
	ended bool
}

// New makes an active controller. It does nothing before Run.
func New(o Options) *Controller {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.At == nil {
		o.At = func(string) {}
	}
	c := &Controller{o: o}
	c.current = newSession(o, true, c.watchers.notify)
	return c
}

// SetActive makes the controller active or passive, at any time, also before
// Run. Whoever waits for the controller then is told that it is not ready.
func (c *Controller) SetActive(active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.current; !c.ended && before.active != active {
		c.current = newSession(c.o, active, c.watchers.notify)
		before.end()
	}
}

// session returns the session that is under way.
func (c *Controller) session() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// Run controls until ctx ends, which is no error, or a part that it stands on
// fails.
func (c *Controller) Run(ctx context.Context) error {
	defer c.end()
	for {
		now := c.session()
		if err := now.run(ctx); err != nil {
			return fmt.Errorf("the controller of tenant %s has stopped: %w", c.o.Tenant, err)
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// end has whoever waits for the controller told that there is none any more.
func (c *Controller) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.current.end()
}
