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
	"sync"
	"time"
)

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
	if before := c.current; !c.ended && before.beside.active != active {
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
