package controller

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// prepares has each host answer the prepare of the run under way with a result.
func (m *memory) prepares(t *testing.T, c *Controller, result message.ReplyOutcome, hosts ...string) v1.Run {
	t.Helper()
	r, _, found, err := newestOf(t, c)
	if err != nil || !found || r.Finished() {
		t.Fatalf("at %s there is no run in progress: %+v, %v", time.Now().Format(time.TimeOnly), r, err)
	}
	for _, host := range hosts {
		m.answer(host, r, message.Prepare, result)
	}
	return r
}

// newestOf returns the newest run.
func newestOf(t *testing.T, c *Controller) (r v1.Run, seq uint64, found bool, err error) {
	t.Helper()
	shown, err := c.Snapshot(t.Context())
	if err != nil || shown.Run == nil {
		return v1.Run{}, 0, false, err
	}
	return *shown.Run, shown.Seq, true, nil
}

// openings returns at which times of day runs were opened.
func (m *memory) openings() []string {
	var times []string
	for _, r := range m.log.All() {
		if strings.HasPrefix(string(r.Body), `{"event":"opened"`) {
			times = append(times, r.Time.Format("15:04"))
		}
	}
	return times
}

// TestRetryInTheWindow checks that a run which touched no host does not use up its
// window: it is tried again after retry-after while time is left before the reserve, the
// state says when, and a run that has touched a host is not tried again. The window is
// from 02:00 to 03:00.
func TestRetryInTheWindow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rollout v1.Rollout
		// during is what happens in each run that is opened.
		during func(t *testing.T, m *memory, c *Controller)
		want   []string
	}{
		"no host is touched": {v1.Rollout{}, unprepared, []string{"02:00", "02:15", "02:30", "02:45"}},
		"with a reserve":     {v1.Rollout{Reserve: "20m"}, unprepared, []string{"02:00", "02:15", "02:30"}},
		"after its own span": {v1.Rollout{RetryAfter: "25m"}, unprepared, []string{"02:00", "02:25", "02:50"}},
		"it takes too long":  {v1.Rollout{RetryAfter: "1h"}, unprepared, []string{"02:00"}},
		"a host is touched": {v1.Rollout{}, func(t *testing.T, m *memory, c *Controller) {
			t.Helper()
			r := m.prepares(t, c, message.Done, "h01")
			m.answer("h01", r, message.Upgrade, "no space left")
		}, []string{"02:00"}},
		"a person aborts": {v1.Rollout{}, func(t *testing.T, _ *memory, c *Controller) {
			t.Helper()
			if got := answered(t, asking(t.Context(), c, "ann", run.Abort, v1.Ask{Reason: "not tonight"})); got.err != nil {
				t.Fatal(got.err)
			}
		}, []string{"02:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := nightly("h01")
				m.rollout = &c.rollout
				controller, _ := m.control(t)
				m.pass(2*time.Hour, "h01")
				for opened := 0; time.Now().Hour() < 4; m.pass(time.Minute, "h01") {
					if n := len(m.openings()); n > opened {
						opened = n
						c.during(t, m, controller)
					}
				}
				if got := m.openings(); !slices.Equal(got, c.want) {
					t.Errorf("runs were opened at %v, want %v", got, c.want)
				}
				if missed := m.events(`"missed"`); len(missed) > 0 {
					t.Errorf("the log has %q", missed)
				}
			})
		})
	}
}

func unprepared(t *testing.T, m *memory, c *Controller) {
	t.Helper()
	m.prepares(t, c, "the mirror does not answer", "h01")
}

// TestRetryIsTold checks what the state says between two tries, also after a restart;
// that a rollout which is written meanwhile counts at once; and that a run by hand which
// touches no host does not open a window again that had its run.
func TestRetryIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := nightly("h01")
		c, _ := m.control(t)
		m.pass(2*time.Hour+time.Minute, "h01")
		failed := m.prepares(t, c, "the mirror does not answer", "h01")
		says := func(at string) {
			t.Helper()
			state, err := c.State(t.Context())
			if err != nil || state.WaitingFor == nil || state.NextUpgradeAt == nil {
				t.Fatalf("the state says %+v, %v", state, err)
			}
			want := "2000-01-01T" + at + ":00Z to try again: run " + strconv.FormatUint(failed.ID, 10) + " touched no host: 0 of 1 host prepared"
			if w := state.WaitingFor; w.What != "retry" || !strings.HasPrefix(w.Detail, want) {
				t.Errorf("the state waits for %+v, want %s", w, want)
			}
			if got := state.NextUpgradeAt.Format("15:04"); got != at {
				t.Errorf("the next upgrade is at %s, want %s", got, at)
			}
		}
		says("02:16")
		c = m.restart(t)
		m.beat("h01")
		says("02:16")
		m.declare(store.Seen{Object: theRollout, Rollout: &v1.Rollout{RetryAfter: "5m"}})
		says("02:06")
		m.pass(6*time.Minute, "h01")
		r := m.prepares(t, c, message.Done, "h01")
		m.answer("h01", r, message.Upgrade, message.Done)
		if _, err := c.Start(t.Context(), "test", v1.Start{Reason: "again"}); err != nil {
			t.Fatal(err)
		}
		m.prepares(t, c, "the mirror does not answer", "h01")
		m.pass(time.Hour, "h01")
		if got, want := m.openings(), 3; len(got) != want {
			t.Errorf("runs were opened at %v, want %d", got, want)
		}
	})
}
