// Package controller opens the runs of one tenant, when a window opens or
// somebody asks, and drives them: it folds the log, gathers what is known besides
// the log (run.Seen), asks run for the next step, appends that, and answers the
// callers that have waited for it.
//
// Package run decides the steps of a run, package window and due.go decide when a
// run is opened. The controller keeps nothing that the log and the store do not
// have: when it is killed anywhere, the next one goes on (AV-82).
//
// A controller is active or passive. A passive controller follows the log, shows
// runs and hosts, and writes nothing. When its role changes it forgets all that it
// knows and reads the log from the beginning.
package controller

import (
	"context"
	"fmt"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// Controller is the controller of one tenant.
type Controller struct {
	o        Options
	watchers wait.Watchers
	warnings *warnings

	mu sync.Mutex
	// current is the session that is under way. Before Run, and between two
	// sessions, it is the next one.
	current *session
	// ended tells that Run has ended.
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
	c.current = newSession(o, true, c.watchers.Notify, c.warnings)
	return c
}

// SetActive makes the controller active or passive. It may be called at any time.
// Calls of the controller that wait when its role changes fail with
// run.ErrNotReady.
//
// The controller of a single server is active for as long as it runs. Of several servers
// that of the one beside the leader of the log is active (design.md 10); the simulation
// plays that.
func (c *Controller) SetActive(active bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before := c.current; !c.ended && before.beside.active != active {
		c.current = newSession(c.o, active, c.watchers.Notify, c.warnings)
		before.end()
	}
}

// session returns the session that is under way.
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

// end has all calls that wait fail.
func (c *Controller) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.current.end()
}
