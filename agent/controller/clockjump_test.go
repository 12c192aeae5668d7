package controller

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// windows returns the days and hours of the windows of all events of a name, as the log
// tells them.
func (m *memory) windows(t *testing.T, event string) []string {
	t.Helper()
	var days []string
	for _, body := range m.events(`{"event":"` + event + `"`) {
		var e struct {
			Window time.Time `json:"window"`
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatal(err)
		}
		days = append(days, e.Window.Format("02T15"))
	}
	return days
}

// dayByDay lets days pass and asks each hour whether the controller is ready, as a probe
// of /readyz does.
func (m *memory) dayByDay(t *testing.T, c *Controller, days int) {
	t.Helper()
	for range days * 24 {
		m.pass(time.Hour, "h01")
		if err := c.Ready(t.Context()); err != nil {
			t.Fatalf("at %s the controller is not ready: %v", time.Now().Format(time.DateTime), err)
		}
	}
}

// TestClockIsSetBack checks that a clock which was three days ahead and is corrected
// costs no window (issue 11): the windows on the days until the date that it showed
// have their runs, whatever was computed, written or opened by the wrong clock.
func TestClockIsSetBack(t *testing.T) {
	t.Parallel()
	const ahead = 72 * time.Hour
	for name, c := range map[string]struct {
		// wrongFor is how long the clock is wrong, from midnight on.
		wrongFor time.Duration
		want     []string
	}{
		"before any window":                   {time.Hour, []string{"01T02", "02T02", "03T02", "04T02"}},
		"within a window, which had its run":  {150 * time.Minute, []string{"04T02", "01T02", "02T02", "03T02", "04T02"}},
		"after a window, which had its run":   {4 * time.Hour, []string{"04T02", "02T02", "03T02", "04T02"}},
		"after a day, with a run of each day": {26*time.Hour + time.Minute, []string{"04T02", "05T02", "02T02", "03T02", "04T02"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := nightly("h01")
				var logged bytes.Buffer
				m.logger, m.obedient = slog.New(slog.NewTextHandler(&logged, nil)), true
				m.setClock(ahead)
				m.configuredAt = m.clock()
				controller, _ := m.control(t)
				w := watched(t, controller)
				m.pass(c.wrongFor, "h01")
				if state, err := controller.State(t.Context()); err != nil || state.NextUpgradeAt == nil || state.NextUpgradeAt.Before(time.Now().Add(48*time.Hour)) {
					t.Fatalf("by the wrong clock the next window is at %v, %v", state.NextUpgradeAt, err)
				}
				m.setClock(0)
				m.pass(time.Minute, "h01")
				m.dayByDay(t, controller, 4-int(c.wrongFor/day))
				if got := m.windows(t, "opened"); !slices.Equal(got[:min(len(got), len(c.want))], c.want) {
					t.Errorf("runs were opened for the windows of %v, want %v", got, c.want)
				}
				if missed := m.windows(t, "missed"); len(missed) > 0 {
					t.Errorf("the windows of %v are told as missed", missed)
				}
				if jumps := w.tells(toldJumps); !slices.Equal(jumps, []string{"-72h0m0s"}) {
					t.Errorf("watchers were told of the jumps %q", jumps)
				}
				if n := strings.Count(logged.String(), "the clock of the site was set"); n != 1 || !strings.Contains(logged.String(), "level=WARN") {
					t.Errorf("the jump is logged %d times: %s", n, logged.String())
				}
			})
		})
	}
}

// TestShownMissedByAWrongClock checks that a window which only a wrong clock says to have closed is
// not shown as missed once the clock is right: not before it opens, and not after its run.
func TestShownMissedByAWrongClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := nightly("h01")
		m.obedient = true
		c, _ := m.control(t)
		lastMissed := func() string {
			t.Helper()
			s, err := c.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if s.LastMissed == nil {
				return "none"
			}
			return s.LastMissed.Start.Format("02T15")
		}
		m.pass(time.Hour, "h01")
		m.setClock(72 * time.Hour)
		m.pass(time.Minute, "h01")
		if got := lastMissed(); got != "03T02" {
			t.Fatalf("by the wrong clock the window missed last is %s", got)
		}
		m.setClock(0)
		for day := range 4 {
			m.pass(time.Minute, "h01")
			if got := lastMissed(); got != "none" {
				t.Errorf("on day %d of the right clock the window missed last is %s", day, got)
			}
			m.dayByDay(t, c, 1)
		}
		if opened := m.windows(t, "opened"); !slices.Contains(opened, "03T02") {
			t.Errorf("runs were opened for the windows of %v", opened)
		}
	})
}

// toldJumps are the jumps of the clock of which a snapshot tells.
func toldJumps(s v1.Snapshot) string {
	if jump := s.Situation.LastClockJump; jump != nil {
		return jump.To.Sub(jump.From).String()
	}
	return ""
}

// TestClockIsSetForward checks that a clock which was behind and is corrected has the
// next window have its run, and the windows that it jumped over told as missed for that
// reason.
func TestClockIsSetForward(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := nightly("h01")
		m.obedient = true
		c, _ := m.control(t)
		w := watched(t, c)
		m.pass(time.Hour, "h01")
		if _, err := c.State(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.setClock(72 * time.Hour)
		m.pass(time.Minute, "h01")
		m.dayByDay(t, c, 1)
		if got, want := m.windows(t, "missed"), []string{"01T02", "02T02", "03T02"}; !slices.Equal(got, want) {
			t.Errorf("the windows of %v are told as missed, want %v", got, want)
		}
		for _, body := range m.events(`"missed"`) {
			if !strings.Contains(body, "the clock of the site was set forward over it") {
				t.Errorf("a window is missed for another reason: %s", body)
			}
		}
		if got, want := m.windows(t, "opened"), []string{"04T02"}; !slices.Equal(got, want) {
			t.Errorf("runs were opened for the windows of %v, want %v", got, want)
		}
		if jumps := w.tells(toldJumps); !slices.Equal(jumps, []string{"72h0m0s"}) {
			t.Errorf("watchers were told of the jumps %q", jumps)
		}
	})
}

// TestSmallJump checks that a jump of less than a minute is followed and not told.
func TestSmallJump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := nightly("h01")
		m.obedient = true
		c, _ := m.control(t)
		m.pass(119*time.Minute, "h01")
		m.setClock(50 * time.Second)
		m.pass(10*time.Second, "h01")
		m.pass(quiet, "h01")
		if got := m.windows(t, "opened"); len(got) != 1 {
			t.Errorf("runs were opened for the windows of %v, want one", got)
		}
		if shown, err := c.Snapshot(t.Context()); err != nil || shown.Situation.LastClockJump != nil {
			t.Errorf("people are told of the jump %+v, %v", shown.Situation.LastClockJump, err)
		}
	})
}

// TestSilentAfterTheClockWasSetBack checks that all hosts that say nothing any more after
// the clock was set back are silent after as long as ever, not one after the other.
func TestSilentAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := nightly("h01", "h02", "h03")
		m.setClock(72 * time.Hour)
		c, _ := m.control(t)
		m.pass(time.Minute, "h01", "h02", "h03")
		m.setClock(0)
		m.pass(message.Silence + 2*longestSleep)
		if shown, err := c.Snapshot(t.Context()); err != nil || shown.Situation.Silent != 3 {
			t.Errorf("%d of 3 hosts are silent, %v", shown.Situation.Silent, err)
		}
	})
}

// TestNotReadySince checks that a log which takes no record is told with how long that
// has been so, whatever the clock does meanwhile: /readyz says neither too early nor too
// late that the site is stuck.
func TestNotReadySince(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jump time.Duration
		// stuckFor is how long the log has then failed; after a jump back it has to fail
		// anew, because nothing is written at first.
		stuckFor time.Duration
	}{
		"set forward": {72 * time.Hour, 35 * time.Second},
		"set back":    {-9 * time.Second, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := nightly("h01")
				controller, _ := m.control(t)
				m.pass(2*time.Hour-time.Second, "h01")
				m.fails(errors.New("no space left on device"), false)
				m.pass(10*time.Second, "h01")
				m.setClock(c.jump)
				m.pass(10*time.Second, "h01")
				if err := controller.Ready(t.Context()); err != nil {
					t.Errorf("after 20 s: %v", err)
				}
				m.pass(c.stuckFor-20*time.Second, "h01")
				if err := controller.Ready(t.Context()); err == nil {
					t.Errorf("after %s the controller is ready, and the log takes no record", c.stuckFor)
				}
			})
		})
	}
}
