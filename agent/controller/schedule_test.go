package controller

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// freezeFrom is a calendar that freezes for some time; a bubble's time begins
// at midnight of 2000-01-01.
func freezeFrom(start, duration string) v1.Calendar {
	return v1.Calendar{Kind: "freeze", Events: []v1.Event{{Summary: "stocktaking", Start: "2000-01-01T" + start, Duration: duration, Timezone: "UTC"}}}
}

// TestFreezeWins checks that no run is opened in a freeze, by a window or by
// hand, and that one is when the freeze is over.
func TestFreezeWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.config, m.calendars = &always, map[string]v1.Calendar{"quarter": freezeFrom("00:00", "2h")}
		c, _ := m.control(t)
		m.pass(time.Hour, "h01")
		if m.size() != 0 {
			t.Fatalf("in a freeze there is %s", m.last())
		}
		var refused *run.Refused
		for name, request := range map[string]v1.Start{"with --override-window": start, "without": {}} {
			if _, err := c.Start(t.Context(), "test", request); !errors.As(err, &refused) ||
				err.Error() != "a freeze is on until 2000-01-01T02:00:00Z, and wins over every window and every start: quarter (stocktaking); "+
					"to start now, change or delete its calendar: osupgrade-agent edit calendar/quarter" {
				t.Errorf("a start in a freeze, %s, is answered %v", name, err)
			}
		}
		if s, err := c.State(t.Context()); err != nil || s.Frozen == nil || s.NextUpgradeIn != "59m59s" && s.NextUpgradeIn != "1h" {
			t.Errorf("the state is %+v, %v", s, err)
		}
		m.pass(time.Hour+time.Minute, "h01")
		if opened := m.events(`"opened"`); len(opened) != 1 || !strings.Contains(opened[0], `"window":"2000-01-01T02:00:00Z"`) {
			t.Errorf("after the freeze there is %q", opened)
		}
	})
}

// TestFreezeDuringARun checks that a freeze which comes during a run ends it
// when the freeze begins, and that one which was known cuts a start by hand.
func TestFreezeDuringARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.calendars = map[string]v1.Calendar{"late": freezeFrom("03:00", "1h")}
		c, r := m.begun(t, "h01", "h02")
		if !r.NotAfter.Equal(time.Date(2000, 1, 1, 3, 0, 0, 0, time.UTC)) {
			t.Errorf("the run ends at %s, though a freeze begins at 03:00", r.NotAfter)
		}
		freeze := freezeFrom("00:30", "1h")
		m.declare(store.Seen{Object: calendarNamed("quarter"), Calendar: &freeze})
		want := `{"event":"frozen","freeze":"quarter (stocktaking)","not-after":"2000-01-01T00:30:00Z","until":"2000-01-01T01:30:00Z"}`
		if m.last() != want {
			t.Fatalf("the log ends with %s, not %s", m.last(), want)
		}
		m.pass(31*time.Minute, "h01", "h02")
		m.reply("h01", r.ID, message.Upgrade)
		view, err := c.Find(t.Context(), r.ID)
		if err != nil || view.Result != "timed-out" || !strings.Contains(view.Reason, "a freeze began at 2000-01-01T00:30:00Z: quarter (stocktaking)") || len(m.upgrades()) != 1 {
			t.Errorf("the run ended as %s: %s, %v", view.Result, view.Reason, err)
		}
	})
}

// TestUnreadableCalendar checks that a calendar which cannot be read closes all
// windows: it may be a freeze.
func TestUnreadableCalendar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.config, m.calendars = &always, map[string]v1.Calendar{"quarter": {Kind: "freeze", ICS: new("BEGIN:NONSENSE")}}
		c, _ := m.control(t)
		m.pass(time.Hour, "h01")
		if s, err := c.State(t.Context()); err != nil || m.size() != 0 || s.NextUpgradeAt != nil {
			t.Errorf("the state is %+v, %v", s, err)
		}
	})
}

// TestAllowOpens checks that an event of a calendar opens a run as a window
// does.
func TestAllowOpens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		allow := freezeFrom("01:00", "1h")
		allow.Kind = "allow"
		m.calendars = map[string]v1.Calendar{"once": allow}
		c, _ := m.control(t)
		m.pass(61*time.Minute, "h01")
		if opened := m.events(`"opened"`); len(opened) != 1 || !strings.Contains(opened[0], `"not-after":"2000-01-01T02:00:00Z"`) {
			t.Errorf("there is %q", opened)
		}
		ahead, err := c.Windows(t.Context(), time.Now(), time.Now().Add(48*time.Hour), 0)
		if err != nil || len(ahead) != 1 || ahead[0].Sources[0].Calendar != "once" {
			t.Errorf("the windows ahead are %+v, %v", ahead, err)
		}
	})
}

// TestMissedWindows checks that windows which were open while no controller was
// there, or while no host was, are written down once, with the reason, and
// those before the configuration was written are not.
func TestMissedWindows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		hourly := v1.OSUpgrade{WorkerApplications: always.WorkerApplications, MaintenanceWindows: []v1.MaintenanceWindow{{
			DaysOfWeek: always.MaintenanceWindows[0].DaysOfWeek, StartTime: "02:00", Timezone: "UTC", Duration: "1h",
		}}}
		m.config, m.configuredAt = &hourly, time.Now().Add(-time.Hour)
		time.Sleep(3*24*time.Hour + time.Hour)
		c, _ := m.control(t)
		m.pass(time.Minute)
		missed := m.events(`"missed"`)
		if len(missed) != 3 || missed[0] != `{"event":"missed","window":"2000-01-01T02:00:00Z","window-end":"2000-01-01T03:00:00Z","reason":"the agent was not running"}` {
			t.Fatalf("missed are %q", missed)
		}
		m.pass(3 * time.Hour) // A window in which h01 is silent.
		missed = m.events(`"missed"`)
		if len(missed) != 4 || !strings.Contains(missed[3], "it was waiting for a host to come back: 1 host, all silent") {
			t.Errorf("missed are %q", missed)
		}
		s, err := c.State(t.Context())
		if err != nil || s.LastMissed == nil || !s.LastMissed.Start.Equal(time.Date(2000, 1, 4, 2, 0, 0, 0, time.UTC)) {
			t.Errorf("the state is %+v, %v", s.LastMissed, err)
		}
		c = m.restart(t)
		m.pass(24*time.Hour, "h01")
		if again := m.events(`"missed"`); len(again) != 4 || len(m.events(`"opened"`)) != 1 {
			t.Errorf("after a restart there are %q", again)
		}
		if err := c.Ready(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestOutlookFollowsTheWallClock checks that the cached opening is bounded by
// times without a monotonic reading: between two times that have one, Before
// ignores a clock that was set back. time.Now has one outside of a bubble.
func TestOutlookFollowsTheWallClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	if !strings.Contains(now.String(), " m=") {
		t.Skip("this system's clock has no monotonic reading")
	}
	var o outlook[window.Opening]
	if _, found := o.look(now, window.Schedule{}.Next, endOfOpening); found {
		t.Error("a schedule without windows has an opening")
	}
	if o.from != now.Round(0) || o.until != o.until.Round(0) {
		t.Errorf("the answer holds from %v to %v, want times of the wall clock", o.from, o.until)
	}
}
