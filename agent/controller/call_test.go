package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestWhoHasLeft checks that nothing is kept for somebody who has left, and
// nothing shared with him: with -race, an answer that is still being written
// when its reader gives up is found.
func TestWhoHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := newMemory("h01").control(t)
		for range 500 {
			ctx, leave := context.WithCancel(t.Context())
			go leave()
			if s, err := c.State(ctx); err != nil && s.Status != "" {
				t.Errorf("answered %+v beside %v", s, err)
			}
			if r, err := c.Runs(ctx, v1.RunFilter{}); err != nil && r != nil {
				t.Errorf("answered %+v beside %v", r, err)
			}
			if h, err := c.Hosts(ctx, v1.HostFilter{}); err != nil && h != nil {
				t.Errorf("answered %+v beside %v", h, err)
			}
			if _, stop, err := c.Watch(ctx); err == nil {
				stop()
			}
			if err := c.Seen(ctx, 99); !errors.Is(err, context.Canceled) {
				t.Errorf("configured is answered %v", err)
			}
			_, _ = c.Snapshot(ctx)
			_, _ = c.Current(ctx)
			_ = c.Ready(ctx)
		}
		left, err := ask(t.Context(), c, func(s *state) int { return c.watchers.Count() + len(s.waiters) })
		if err != nil || left != 0 {
			t.Errorf("%d who have left are waited for, %v", left, err)
		}
	})
}

// TestNothingIsBegunForWhoHasLeft checks that a request which was given up
// before its turn has no effect.
func TestNothingIsBegunForWhoHasLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c, _ := m.control(t)
		m.beat("h01")
		held, release := make(chan struct{}), make(chan struct{})
		if err := c.session().post(t.Context(), func(*state) { close(held); <-release }); err != nil {
			t.Fatal(err)
		}
		<-held
		ctx, leave := context.WithCancel(t.Context())
		asked := make(chan error, 1)
		go func() {
			_, err := c.Start(ctx, "test", start)
			asked <- err
		}()
		synctest.Wait()
		leave()
		if err := <-asked; !errors.Is(err, context.Canceled) {
			t.Errorf("answered %v", err)
		}
		close(release)
		synctest.Wait()
		if n := m.size(); n != 0 {
			t.Errorf("there are %d records", n)
		}
	})
}
