package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var errFull = errors.New("no space left on device")

// TestLogThatTakesNothing checks that a controller whose log takes no record
// says so, in the run at once and as not ready half a minute later, and that
// it goes on by itself.
func TestLogThatTakesNothing(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]bool{"nothing is written": false, "the last one is written after all": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				c, r := m.begun(t, "h01")
				m.fails(errFull, false)
				m.reply("h01", r.ID, message.Upgrade)
				shown, err := c.Snapshot(t.Context())
				if w := shown.Run.WaitingFor; err != nil || w == nil || w.What != "log" || !strings.Contains(w.Detail, errFull.Error()) {
					t.Errorf("the run waits for %+v, %v", w, err)
				}
				m.pass(stuckAfter-time.Millisecond, "h01")
				if err := c.Ready(t.Context()); err != nil {
					t.Errorf("before its time it is not ready: %v", err)
				}
				m.pass(time.Millisecond, "h01")
				if err := c.Ready(t.Context()); !errors.Is(err, run.ErrNotReady) || !errors.Is(err, errFull) {
					t.Errorf("ready is answered with %v", err)
				}
				m.fails(nil, false)
				if written {
					m.fails(errFull, true)
				}
				m.pass(longestPause, "h01")
				if err := c.Ready(t.Context()); err != nil || len(m.events(`"finished"`)) != 1 {
					t.Errorf("it is not ready: %v; the log ends with %s", err, m.last())
				}
			})
		})
	}
}

// TestNothingMoreToWrite checks that a controller is ready again when what it
// could not write has to be written no more.
func TestNothingMoreToWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.config = &always
		c, _ := m.control(t)
		m.fails(errFull, false)
		m.beat("h01")
		m.pass(2*stuckAfter, "h01")
		if err := c.Ready(t.Context()); !errors.Is(err, errFull) {
			t.Fatalf("ready is answered with %v", err)
		}
		m.declare(store.Seen{Object: theRollout, Rollout: &v1.Rollout{Exempt: &v1.Match{Hosts: []string{"h01"}}}})
		m.pass(longestPause, "h01")
		if err := c.Ready(t.Context()); err != nil {
			t.Errorf("it is not ready: %v", err)
		}
	})
}
