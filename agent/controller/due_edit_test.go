package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// daily is a configuration with windows at times of day, in UTC.
func daily(spans ...[2]string) *v1.OSUpgrade {
	config := v1.OSUpgrade{WorkerApplications: always.WorkerApplications, MaintenanceWindows: []v1.MaintenanceWindow{}}
	for _, span := range spans {
		config.MaintenanceWindows = append(config.MaintenanceWindows, v1.MaintenanceWindow{
			DaysOfWeek: always.MaintenanceWindows[0].DaysOfWeek, StartTime: span[0], Timezone: "UTC", Duration: span[1],
		})
	}
	return &config
}

// TestEditOfAnOpenWindow checks which edits, made at 03:00, give a second run to
// a night whose window from 01:00 to 05:00 had its run at 01:00, and when; by
// the same controller and by one that is started later.
func TestEditOfAnOpenWindow(t *testing.T) {
	t.Parallel()
	edit := func(spans ...[2]string) func(*memory) {
		return func(m *memory) { m.declare(store.Seen{Object: theConfig, Config: daily(spans...)}) }
	}
	freeze := func(start, duration string) func(*memory) {
		return func(m *memory) {
			c := freezeFrom(start, duration)
			m.declare(store.Seen{Object: calendarNamed("quarter"), Calendar: &c})
		}
	}
	for name, c := range map[string]struct {
		change func(*memory)
		again  string
	}{
		"nothing":                      {func(*memory) {}, ""},
		"it lasts longer":              {edit([2]string{"01:00", "6h"}), ""},
		"it began earlier":             {edit([2]string{"00:30", "4h"}), ""},
		"it began later":               {edit([2]string{"01:30", "4h"}), ""},
		"it began later, in two parts": {edit([2]string{"01:30", "30m"}, [2]string{"02:30", "1h"}), ""},
		"it begins later tonight":      {edit([2]string{"04:00", "2h"}), "04:00"},
		"it begins after its old end":  {edit([2]string{"06:00", "1h"}), "06:00"},
		"another begins after it":      {edit([2]string{"01:00", "4h"}, [2]string{"05:30", "1h"}), "05:30"},
		"a freeze is over already":     {freeze("01:00", "1h"), ""},
		"a freeze is on":               {freeze("02:00", "90m"), "03:30"},
		"a freeze splits what is left": {freeze("03:30", "30m"), "04:00"},
		"the configuration is deleted, too": {func(m *memory) {
			m.declare(store.Seen{Object: theConfig})
			edit([2]string{"01:30", "4h"})(m)
		}, ""},
	} {
		for more, restart := range map[string]bool{"": false, ", and a restart": true} {
			t.Run(name+more, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					m := newMemory("h01")
					m.obedient, m.config = true, daily([2]string{"01:00", "4h"})
					m.control(t)
					m.pass(3*time.Hour, "h01")
					if opened := m.openedAt(); len(opened) != 1 || opened[0] != "01:00" {
						t.Fatalf("before the edit runs are opened at %q", opened)
					}
					c.change(m)
					if restart {
						m.restart(t)
					}
					m.pass(5*time.Hour, "h01")
					opened := m.openedAt()[1:]
					if c.again == "" && len(opened) > 0 || c.again != "" && (len(opened) != 1 || opened[0] != c.again) {
						t.Errorf("further runs are opened at %q, not at %q", opened, c.again)
					}
				})
			})
		}
	}
}

// TestEditWithinTheReserve checks that a window counts to its end, and not to
// that of its run, which was earlier by the rollout's reserve.
func TestEditWithinTheReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.obedient, m.config, m.rollout = true, daily([2]string{"01:00", "2h"}), &v1.Rollout{Reserve: "1h"}
		m.control(t)
		m.pass(150*time.Minute, "h01")
		m.declare(store.Seen{Object: theConfig, Config: daily([2]string{"02:15", "4h"})})
		m.pass(time.Hour, "h01")
		if opened := m.openedAt(); len(opened) != 1 {
			t.Errorf("runs are opened at %q", opened)
		}
	})
}

// openedAt returns the times of day at which runs were opened.
func (m *memory) openedAt() []string {
	var at []string
	for _, r := range m.log.All() {
		if e, err := message.DecodeEvent(r.Body); err == nil && message.Name(e) == "opened" {
			at = append(at, r.Time.UTC().Format("15:04"))
		}
	}
	return at
}

// TestWindowsThatHadNoRun checks that a window which is none of what the last
// run's was gets its run, whatever was edited at 02:00: at once when it is open.
func TestWindowsThatHadNoRun(t *testing.T) {
	t.Parallel()
	first := [2]string{"00:00", "1h"}
	edit := func(config *v1.OSUpgrade) func(*memory) {
		return func(m *memory) { m.declare(store.Seen{Object: theConfig, Config: config}) }
	}
	known := freezeFrom("01:30", "1h")
	for name, c := range map[string]struct {
		config *v1.OSUpgrade
		freeze bool
		change func(*memory)
		want   string
	}{
		"a freeze that was known splits a window": {daily([2]string{"00:00", "5h"}), true, func(*memory) {}, "02:30"},
		"that freeze is made shorter": {daily([2]string{"00:00", "5h"}), true, func(m *memory) {
			shorter := freezeFrom("01:30", "15m")
			m.declare(store.Seen{Object: calendarNamed("quarter"), Calendar: &shorter})
		}, "02:00"},
		"one that is open is added":    {daily(first), false, edit(daily(first, [2]string{"01:45", "1h"})), "02:00"},
		"it is moved to after its end": {daily(first), false, edit(daily([2]string{"01:00", "3h"})), "02:00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01")
				m.obedient, m.config = true, c.config
				if c.freeze {
					m.calendars["quarter"] = known
				}
				m.control(t)
				m.pass(2*time.Hour, "h01")
				c.change(m)
				m.pass(time.Hour, "h01")
				if opened := m.openedAt(); len(opened) != 2 || opened[1] != c.want {
					t.Errorf("runs are opened at %q, and not the second at %s", opened, c.want)
				}
			})
		})
	}
}
