package controller

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// skip skips the window of an environment as the API does.
func (m *shops) skip(c *Controller, environment string, start time.Time) (v1.SkippedWindow, error) {
	m.t.Helper()
	opens, closes, err := c.Skippable(m.t.Context(), environment, start)
	if err != nil {
		return v1.SkippedWindow{}, err
	}
	before, base, _ := m.Skips(m.t.Context(), "acme", environment)
	skipped := v1.SkippedWindow{Start: opens, End: closes, By: "ann", Reason: "sale"}
	if next, added := before.With(skipped, time.Now()); added {
		if _, err := m.PutSkips(m.t.Context(), "acme", environment, next, base); err != nil {
			m.t.Fatal(err)
		}
	}
	synctest.Wait()
	return skipped, nil
}

// TestSkipWindow skips a window of one of two environments: it opens no run and is not missed, also
// after a restart and though it is written down no more; the other environment has its run, and so has
// the next night. An edit that moves the window makes another one of it.
func TestSkipWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "basel", "c1": "chur"})
		m.obedient = true
		c, _ := m.control(t)
		m.beat()
		basel, chur := inShop("basel", "UTC"), inShop("chur", "UTC")
		m.declareShop("basel", &basel)
		m.declareShop("chur", &chur)
		midnight := time.Now() // A bubble begins at midnight UTC.
		first, err := m.skip(c, "basel", time.Time{})
		if err != nil || !first.Start.Equal(midnight.Add(2*time.Hour)) {
			t.Fatalf("the next window is %+v, %v", first, err)
		}
		if again, err := m.skip(c, "basel", time.Time{}); err != nil || !again.Start.Equal(first.Start) {
			t.Errorf("skipped again it is %+v, %v", again, err)
		}
		m.pass(3 * time.Hour)
		if all := m.runs(c); len(all["basel"]) != 0 || len(all["chur"]) != 1 {
			t.Errorf("basel has %d runs, chur %d", len(all["basel"]), len(all["chur"]))
		}
		_, err = m.skip(c, "chur", first.Start)
		if refused, is := errors.AsType[*run.Refused](err); !is || !strings.Contains(refused.Message, "has had its run") {
			t.Errorf("a window that has had its run is answered %v", err)
		}
		_, err = m.skip(c, "basel", first.Start.Add(time.Minute))
		if refused, is := errors.AsType[*run.Refused](err); !is || !strings.Contains(refused.Message, "no window of environment basel opens at 2000-01-01T02:01:00Z") {
			t.Errorf("a window that does not open is answered %v", err)
		}
		if next, err := m.skip(c, "chur", time.Time{}); err != nil || !next.Start.Equal(first.Start.Add(24*time.Hour)) {
			t.Errorf("the next window of chur is %+v, %v", next, err)
		}
		m.pass(4 * time.Hour)
		c = m.restart(t)
		m.pass(20 * time.Hour) // Until 03:00 on the second day.
		if all := m.runs(c); len(all["basel"]) != 1 || len(all["chur"]) != 1 {
			t.Errorf("after the second night basel has %d runs, chur %d", len(all["basel"]), len(all["chur"]))
		}
		if missed := m.events(`"missed"`); len(missed) != 0 {
			t.Errorf("these windows were missed: %q", missed)
		}

		third, err := m.skip(c, "basel", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		basel.MaintenanceWindows[0].StartTime = "02:30"
		m.declareShop("basel", &basel)
		m.pass(24 * time.Hour)
		if all := m.runs(c); len(all["basel"]) != 2 || !third.Start.Equal(first.Start.Add(48*time.Hour)) {
			t.Errorf("after its third window, which has moved from %s, basel has %d runs", third.Start, len(all["basel"]))
		}
	})
}

// TestSkippedWindowIsNotOwed skips a window that a freeze had cut short, once the freeze is removed: it
// is not written down as missed, although the part before the freeze closed without a run while the log
// could not be written to (seed 20001784).
func TestSkippedWindowIsNotOwed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "basel"})
		c, _ := m.control(t)
		m.beat()
		basel := inShop("basel", "UTC")
		m.declareShop("basel", &basel)
		stop := v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2000-01-01T02:20", Duration: "1h", Timezone: "UTC"}}}
		m.declare(store.Seen{Object: calendarNamed("stop"), Calendar: &stop})
		m.pass(119 * time.Minute)
		m.fails(errors.New("no space left on device"), false)
		m.pass(30 * time.Minute)
		m.declare(store.Seen{Object: calendarNamed("stop")})
		if _, err := m.skip(c, "basel", time.Time{}); err != nil {
			t.Fatal(err)
		}
		m.fails(nil, false)
		m.pass(2 * time.Hour)
		if missed, opened := m.events(`"missed"`), m.runs(c)["basel"]; len(missed) != 0 || len(opened) != 0 {
			t.Errorf("missed are %q, and basel has the runs %+v", missed, opened)
		}
	})
}

// TestSkipIsShown checks that each environment shows its own skips and no other's: those with windows
// of their own, and those that share the windows of the tenant.
func TestSkipIsShown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "basel", "c1": "chur", "d1": "davos", "e1": ""})
		c, _ := m.control(t)
		m.beat()
		basel, chur, davos := inShop("basel", "UTC"), inShop("chur", ""), inShop("davos", "")
		m.declareShop("basel", &basel)
		m.declareShop("chur", &chur)
		m.declareShop("davos", &davos)
		m.declare(store.Seen{Object: theConfig, Config: nightly().config})
		midnight := time.Now()
		for _, name := range []string{"basel", "chur"} {
			if _, err := m.skip(c, name, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		listed := func(all []v1.Window, err error) string {
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, w := range all {
				lines = append(lines, fmt.Sprintf("%s %s skipped=%t", w.Environment, w.Start.UTC().Format("02T15"), w.Skipped != nil))
			}
			return strings.Join(lines, ", ")
		}
		to := midnight.Add(2 * 24 * time.Hour)
		for name, want := range map[string]string{
			"basel": "basel 01T02 skipped=true, basel 02T02 skipped=false", "chur": " 01T02 skipped=true,  02T02 skipped=false",
			"davos": " 01T02 skipped=false,  02T02 skipped=false", "default": " 01T02 skipped=false,  02T02 skipped=false",
		} {
			if got := listed(c.WindowsOf(t.Context(), name, midnight, to, 0)); got != want {
				t.Errorf("the windows of %s are %q", name, got)
			}
		}
		if got := listed(c.AllWindows(t.Context(), midnight, to, 4)); got != " 01T02 skipped=false, chur 01T02 skipped=true, basel 01T02 skipped=true,  02T02 skipped=false" {
			t.Errorf("all windows are %q", got)
		}
		all, err := c.EnvironmentStatuses(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			skips := e.Name == "basel" || e.Name == "chur"
			if (e.SkippedWindow != nil) != skips || (e.Situation().SkippedWindow != nil) != skips || skips == e.NextUpgradeAt.Equal(midnight.Add(2*time.Hour)) {
				t.Errorf("%s is %+v", e.Name, e)
			}
		}
		for name, want := range map[string]bool{"basel": true, "chur": true, "davos": false} {
			p, err := c.Preflight(t.Context(), "ann", v1.Start{Environment: name})
			if err != nil || p.Refused == "" || (p.SkippedWindow != nil) != want {
				t.Errorf("a start in %s would be %+v, %v", name, p, err)
			}
		}
	})
}

// TestSkipsUnreadable checks that no window opens a run while nobody knows which are skipped: only those
// of that environment, not a start by hand, and until a window is skipped anew.
func TestSkipsUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "basel", "c1": "chur"})
		m.obedient = true
		said := &notes{count: map[string]int{}}
		m.logger = slog.New(said)
		c, _ := m.control(t)
		m.beat()
		basel, chur := inShop("basel", "UTC"), inShop("chur", "UTC")
		m.declareShop("basel", &basel)
		m.declareShop("chur", &chur)
		m.declare(store.Seen{Object: skipsOf("basel"), Err: errors.New("damaged")})
		m.pass(3 * time.Hour)
		if all := m.runs(c); len(all["basel"]) != 0 || len(all["chur"]) != 1 {
			t.Errorf("basel has %d runs, chur %d", len(all["basel"]), len(all["chur"]))
		}
		all, err := c.EnvironmentStatuses(t.Context())
		if w := all[0].WaitingFor; err != nil || w == nil || !strings.Contains(w.Detail, "somebody to repair the skipped windows of environment basel: ") || all[1].WaitingFor != nil {
			t.Errorf("the environments are %+v, %v", all, err)
		}
		if n := said.of("nobody knows which windows are skipped; no window of the environment opens a run"); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
		if _, err := c.Start(t.Context(), "ann", startIn("basel")); err != nil {
			t.Errorf("a start by hand is answered %v", err)
		}
		m.pass(4 * time.Hour)
		m.declare(store.Seen{Object: skipsOf("basel"), Err: errors.New("damaged")})
		second, err := m.skip(c, "basel", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		m.pass(44 * time.Hour) // Until 03:00 on the third day.
		runs := m.runs(c)["basel"]
		if len(runs) != 2 || !runs[0].OpenedAt.After(second.End) {
			t.Errorf("after a skip of %s basel has the runs %+v", second.Start, runs)
		}
	})
}

// TestSkipAcrossClockChange skips a window whose start a change of the clock moves; the window of the
// next night is at its usual time, and has its run.
func TestSkipAcrossClockChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "basel"})
		m.obedient = true
		c, _ := m.control(t)
		eve := time.Date(2000, 3, 25, 20, 0, 0, 0, time.UTC) // On the 26th 02:00 becomes 03:00.
		time.Sleep(time.Until(eve))
		m.beat()
		basel := inShop("basel", "Europe/Zurich")
		basel.MaintenanceWindows[0].StartTime = "02:30"
		m.declareShop("basel", &basel)
		skipped, err := m.skip(c, "basel", time.Time{})
		if err != nil || !skipped.Start.Equal(time.Date(2000, 3, 26, 1, 0, 0, 0, time.UTC)) {
			t.Fatalf("the next window is %+v, %v", skipped, err)
		}
		m.pass(12 * time.Hour)
		if all, missed := m.runs(c)["basel"], m.events(`"missed"`); len(all) != 0 || len(missed) != 0 {
			t.Errorf("in the night of the change there are the runs %+v, and %q was missed", all, missed)
		}
		m.pass(20 * time.Hour)
		if r := m.only(c, "basel"); r.OpenedAt.Format(time.DateTime) != "2000-03-27 00:30:00" {
			t.Errorf("the next run is opened at %s", r.OpenedAt)
		}
	})
}

// TestSkipAcrossClockJump sets the clock over a skipped window and back again: it is neither missed
// nor has a run, and the window of another environment that nobody has skipped was missed.
func TestSkipAcrossClockJump(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "basel", "c1": "chur"})
		m.obedient = true
		c, _ := m.control(t)
		m.beat()
		basel, chur := inShop("basel", "UTC"), inShop("chur", "UTC")
		m.declareShop("basel", &basel)
		m.declareShop("chur", &chur)
		if _, err := m.skip(c, "basel", time.Time{}); err != nil {
			t.Fatal(err)
		}
		m.pass(time.Hour)
		m.setClock(8 * time.Hour)
		m.pass(time.Hour)
		if missed := m.events(`"missed"`); len(missed) != 1 || !strings.Contains(missed[0], `"environment":"chur"`) {
			t.Errorf("over the windows these were missed: %q", missed)
		}
		m.setClock(0)
		m.pass(5 * time.Hour)
		if all := m.runs(c)["basel"]; len(all) != 0 {
			t.Errorf("the skipped window has the runs %+v", all)
		}
		m.pass(20 * time.Hour)
		if all := m.runs(c)["basel"]; len(all) != 1 {
			t.Errorf("after the second night there are the runs %+v", all)
		}
	})
}
