package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestAway checks that a controller whose process was stopped, or whose machine was
// suspended, for longer than hosts may be silent, and than an action may take, first reads what
// they have said meanwhile.
func TestAway(t *testing.T) {
	t.Parallel()
	ways := map[string]func(*memory, time.Duration){
		"process stopped": (*memory).stopProcess, "machine suspended": (*memory).setClock,
	}
	for name, c := range map[string]struct {
		away   time.Duration
		gaveUp int
	}{
		"beyond the action's time": {time.Minute, 0},
		"beyond a host's silence":  {2 * message.Silence, 0},
		"for an hour":              {time.Hour, 0},
		"but nobody has an answer": {time.Minute, 1},
	} {
		for way, leave := range ways {
			t.Run(way+" "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := newMemory("h01", "h02")
					m.rollout = &v1.Rollout{Timeouts: &v1.CommandTimeouts{Upgrade: "30s"}}
					_, r := m.begun(t, "h01", "h02")
					leave(m, c.away)
					m.beat("h03") // It is new, so that all is looked at again.
					if c.gaveUp == 0 {
						m.reply("h01", r.ID, message.Upgrade)
					}
					m.pass(2*catchingUp, "h01", "h02")
					if n := len(m.events(`"overdue"`)); n != c.gaveUp || len(m.events(`"silent"`)) != 0 {
						t.Errorf("%d hosts are given up; the log has %q", n, m.events(`"overdue"`))
					}
				})
			})
		}
	}
}

// TestLateAgainAndAgain checks that a controller on a machine that is too busy
// for it does not wait for ever before it judges.
func TestLateAgainAndAgain(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	s := stateOf(newMemory().options(t))
	s.hosts.stall.looked, s.hosts.stall.due = now, now
	judged := 0
	for range 100 {
		now = now.Add(3 * time.Second)
		if s.hosts.stall.wasAway(now); !now.Before(s.hosts.stall.judgeAt) {
			judged++
		}
		s.hosts.stall.looked, s.hosts.stall.due = now, now.Add(time.Millisecond)
	}
	if judged < 50 {
		t.Errorf("it judged %d of 100 times", judged)
	}
}

// TestAwayAndSetBack checks that a clock which was years ahead for a moment
// keeps nobody from judging.
func TestAwayAndSetBack(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	s := stateOf(newMemory().options(t))
	s.hosts.stall.looked, s.hosts.stall.due = now, now
	s.hosts.expire(now.AddDate(2, 0, 0))
	if s.hosts.expire(now.Add(time.Second)); now.Add(time.Second).Before(s.hosts.stall.judgeAt) {
		t.Errorf("it judges at %s", s.hosts.stall.judgeAt)
	}
}
