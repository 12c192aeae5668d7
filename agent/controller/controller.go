package controller

import (
	"context"
	"fmt"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
)

// Controller is the controller of one tenant.
type Controller struct {
	o        Options
	watchers wait.Watchers
	warnings *warnings

	mu sync.Mutex
	// current is the current session. Before Run, and between two sessions, it is the next
	// one.
	current *session
	// ended means that Run has returned.
	ended bool
}

// New makes an active controller. It does nothing before Run.
func New(o Options) *Controller {
	if o.Now == nil {
		o.Now = wallClock
	}
	if o.At == nil {
		o.At = func(string) {}
	}
	c := &Controller{o: o, warnings: newWarnings(o)}
	c.current = c.newSession(true)
	return c
}

// newSession makes a session in a role.
func (c *Controller) newSession(active bool) *session {
	n := newSession(c.o, active, c.watchers.Notify, c.warnings)
	n.beside.chooseRollback = c.chooseRollback
	return n
}

// SetActive makes the controller active or passive. It may be called at any time.
// Calls of the controller that wait when its role changes fail with
// run.ErrNotReady.
//
// The controller of a single server is active for as long as it runs. With several servers,
// the controller next to the leader of the log is the active one; the simulation does that.
func (c *Controller) SetActive(active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.current; !c.ended && before.beside.active != active {
		c.current = c.newSession(active)
		before.end()
	}
}

// session returns the current session.
func (c *Controller) session() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// Run runs the controller until ctx ends, which is no error, or the log or the
// store fails.
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

// end makes all waiting calls fail, and those who watch look again and find that out.
func (c *Controller) end() {
	c.mu.Lock()
	c.ended = true
	c.current.end()
	c.mu.Unlock()
	c.watchers.Notify()
}
