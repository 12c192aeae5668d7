package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// hangingLog does not tell its end. From some moment on it takes long to fail.
type hangingLog struct {
	*memory
	broken    bool
	hangs     time.Time
	hangsFor  time.Duration
	hasHanged bool
}

func (l *hangingLog) Last(ctx context.Context) (uint64, error) {
	if !l.broken {
		return l.memory.Last(ctx)
	}
	if !l.hasHanged && !time.Now().Before(l.hangs) {
		l.hasHanged = true
		time.Sleep(l.hangsFor)
	}
	return 0, errors.New("no answer")
}

// TestLogHangsWhileItIsCompared checks that no host is admitted after not-after (invariant
// 3) by a controller that asked the log for its end just before, and waited for long.
func TestLogHangsWhileItIsCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.rollout = &v1.Rollout{Reserve: "0s", Checks: &v1.RolloutChecks{BeforeHost: script}, Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}, Soak: "10m"}, {Name: "rest"}}}
		o := m.options(t)
		l := &hangingLog{memory: m}
		o.Log = l
		c, _ := m.run(t, o)
		m.beat("h01", "h02")
		r, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test", Duration: "11m"})
		if err != nil {
			t.Fatal(err)
		}
		m.reply("h01", r.ID, message.Prepare)
		m.reply("h02", r.ID, message.Prepare)
		m.tells("h01", m.tasks()[0].Outcome(true, ""))
		release := m.hold() // A record that comes late says less of how late it is.
		m.reply("h01", r.ID, message.Upgrade)
		m.pass(2*time.Minute, "h01", "h02")
		release()
		l.hangs, l.hangsFor, l.broken = time.Now().Add(8*time.Minute), 65*time.Second, true
		m.Alive("h01", message.Alive{Application: "app", Seen: &message.Position{Log: "memory", Seq: 900, Action: message.Upgrade}})
		synctest.Wait()
		m.pass(30*time.Minute, "h01", "h02")
		if got := m.events(`{"event":"admitted"`); len(got) != 1 || !l.hasHanged {
			t.Errorf("admitted were %q; the log hung: %t", got, l.hasHanged)
		}
	})
}
