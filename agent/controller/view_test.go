package controller

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestNextUpgrade checks what is told of the next window before it, in it and
// after it: the absolute time stands still in between.
func TestNextUpgrade(t *testing.T) {
	t.Parallel()
	s := stateOf(Options{Zone: time.UTC, Now: time.Now})
	s.intent.set(store.Seen{Object: theConfig, Config: &v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{
		{DaysOfWeek: "Friday, Saturday", StartTime: "01:00", Timezone: "UTC", Duration: "4h"},
	}}})
	friday, saturday := time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		now time.Time
		in  string
		at  time.Time
	}{
		"a day before":     {friday.Add(-24*time.Hour - 18*time.Second), "1d18s", friday},
		"a moment before":  {friday.Add(-time.Millisecond), "1s", friday},
		"as it opens":      {friday, "0s", friday},
		"while it is open": {friday.Add(3 * time.Hour), "0s", friday},
		"as it closes":     {friday.Add(4 * time.Hour), "20h", saturday},
	} {
		view := s.status(c.now)
		if view.NextUpgradeIn != c.in || view.NextUpgradeAt == nil || !view.NextUpgradeAt.Equal(c.at) {
			t.Errorf("%s: in %s, at %v; want %s, %s", name, view.NextUpgradeIn, view.NextUpgradeAt, c.in, c.at)
		}
	}
	s.intent.set(store.Seen{Object: theConfig})
	if view := s.status(friday); view.NextUpgradeIn != "" || view.NextUpgradeAt != nil {
		t.Errorf("without a window there is %s, %v", view.NextUpgradeIn, view.NextUpgradeAt)
	}
}

// TestNextUpgradeAfterTheRun checks that a window which is open counts as the
// next one until its run has ended, and then the one after it does: what is told
// is when hosts are upgraded next.
func TestNextUpgradeAfterTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.config = daily([2]string{"00:00", "2h"}, [2]string{"22:00", "1h"})
		c, _ := m.control(t)
		m.pass(time.Minute, "h01")
		tells := func(when, in, at string) {
			t.Helper()
			s, err := c.State(t.Context())
			if err != nil || s.NextUpgradeIn != in || s.NextUpgradeAt == nil || s.NextUpgradeAt.Format("15:04") != at {
				t.Errorf("%s the next upgrade is in %s, at %s, %v; want in %s, at %s", when, s.NextUpgradeIn, s.NextUpgradeAt, err, in, at)
			}
		}
		tells("while the run is in progress", "0s", "00:00")
		m.finish(t, c)
		tells("when it has ended", "21h59m", "22:00")
		c = m.restart(t)
		m.beat("h01")
		tells("after a restart", "21h59m", "22:00")
		m.pass(3*time.Hour, "h01")
		tells("when the window has closed", "18h59m", "22:00")
	})
}

// TestForecastIsTold checks that a run tells when its hosts are expected to be
// done, and why no end is foreseen while one of them is silent.
func TestForecastIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02", "h03")
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "2"}}}
		c, r := m.begun(t, "h01", "h02", "h03")
		m.pass(10*time.Minute, "h01", "h02", "h03")
		m.reply("h02", r.ID, message.Upgrade)
		view, err := c.Find(t.Context(), r.ID)
		if err != nil || view.ExpectedEnd == nil || view.Hosts[2].ExpectedEnd == nil || view.Forecast != "" {
			t.Errorf("it ends at %v: %q, %v", view.ExpectedEnd, view.Forecast, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02", "h03")
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "2"}}}
		c, r := m.begun(t, "h01", "h02", "h03")
		m.pass(10*time.Minute, "h01", "h02")
		m.reply("h01", r.ID, message.Upgrade)
		m.pass(time.Minute, "h01", "h02")
		view, err := c.Find(t.Context(), r.ID)
		if want := "no forecast while it waits for h03 to come back"; err != nil || view.ExpectedEnd != nil || !strings.HasPrefix(view.Forecast, want) {
			t.Errorf("it ends at %v: %q, %v", view.ExpectedEnd, view.Forecast, err)
		}
	})
}

// TestForecastCost checks that a forecast which took long is not made again for a
// multiple of that time, however often a run is shown, and that the forecast of
// another run is none of this one.
func TestForecastCost(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	costs := func(cost time.Duration) func() time.Time {
		calls := 0
		return func() time.Time {
			calls++
			return now.Add(time.Duration(calls-1) * cost)
		}
	}
	s, other := halfDone(t, now), halfDone(t, now)
	foreseen := func(cost time.Duration) *run.Forecast {
		s.Now = costs(cost)
		return s.forecastOf(s.standard(), s.ledger.Current())
	}
	first := foreseen(10 * time.Millisecond)
	if first == nil || first.Hosts[1].IsZero() {
		t.Fatalf("the forecast is %+v", first)
	}
	now = now.Add(150 * time.Millisecond)
	if foreseen(0) != first {
		t.Error("a forecast is made again at once")
	}
	now = now.Add(100 * time.Millisecond)
	second := foreseen(time.Hour) // The clock was set.
	if second == first {
		t.Error("a forecast is not made again")
	}
	other.standard().forecast, other.Now = s.standard().forecast, costs(0)
	if other.forecastOf(other.standard(), other.ledger.Current()) == second {
		t.Error("a run has the forecast of another one")
	}
	foreseen(time.Hour)
	now = now.Add(forecastPause * longestForecast)
	if third := foreseen(0); third == nil || third == second {
		t.Error("a clock that was set keeps forecasts from being made")
	}
}

// halfDone is a controller of a run in which the first of two hosts was upgraded within a minute,
// at a time.
func halfDone(t *testing.T, now time.Time) *state {
	t.Helper()
	s := stateOf(Options{Tenant: "acme", Now: func() time.Time { return now }})
	seq := uint64(0)
	fold := func(at time.Time, r message.Record) {
		t.Helper()
		seq++
		r.Seq, r.Time = seq, at
		if err := s.ledger.Fold(r.Decode()); err != nil {
			t.Fatal(err)
		}
	}
	reply := func(at time.Time, host string, action message.Action) {
		fold(at, message.Record{Kind: message.ReplyRecord, Run: 2, Host: host, Action: action, Body: message.Reply{Action: action, Result: message.Result{Outcome: message.Done}}.Encode()})
	}
	hosts, end := []string{"h01", "h02"}, now.Add(time.Hour)
	fold(now.Add(-time.Minute), message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{Members: hosts, Rollout: rollout.Default(2), NotAfter: end})})
	fold(now.Add(-time.Minute), message.Record{Kind: message.CommandAll, Body: message.Command{Action: message.Prepare, Hosts: hosts, NotAfter: end}.Encode()})
	reply(now.Add(-time.Minute), "h01", message.Prepare)
	reply(now.Add(-time.Minute), "h02", message.Prepare)
	fold(now.Add(-time.Minute), message.Record{Kind: message.CommandHost, Run: 2, Body: message.Command{Action: message.Upgrade, Host: "h01"}.Encode()})
	reply(now, "h01", message.Upgrade)
	s.touched()
	return s
}

// TestForecastOfAll checks that runs which share the places of a disruption budget are played once for
// all of them.
func TestForecastOfAll(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	s := halfDone(t, now)
	seq := s.ledger.LastSeq
	fold := func(r message.Record) {
		t.Helper()
		seq++
		r.Seq, r.Time = seq, now
		if err := s.ledger.Fold(r.Decode()); err != nil {
			t.Fatal(err)
		}
		s.touched()
	}
	cells := []message.Cell{{Budget: "fleet", MaxUnavailable: 1, Hosts: []string{"h01", "h02", "b01"}}}
	end := now.Add(time.Hour)
	fold(message.Record{Kind: message.EventRecord, Body: message.EncodeEvent(message.Opened{
		Environment: "bern", Members: []string{"b01"}, Rollout: rollout.Default(1), NotAfter: end, Budgets: "v1", Cells: cells,
	})})
	fold(message.Record{Kind: message.CommandAll, Environment: "bern", Body: message.Command{Action: message.Prepare, Hosts: []string{"b01"}, NotAfter: end}.Encode()})
	fold(message.Record{Kind: message.ReplyRecord, Run: seq, Host: "b01", Action: message.Prepare, Body: message.Reply{Action: message.Prepare, Result: message.Result{Outcome: message.Done}}.Encode()})
	bern := s.environment("bern")
	f := s.forecastOf(bern, bern.ledger.Current())
	if f == nil || !f.End.Equal(now.Add(2*time.Minute)) {
		t.Errorf("foreseen of bern is %+v, and a host of another environment goes before its own", f)
	}
	if other := s.standard().forecast.found; other == nil || !other.End.Equal(now.Add(time.Minute)) {
		t.Errorf("foreseen of the other is %+v", other)
	}
	if f := s.forecastOf(s.standard(), bern.ledger.Current()); f != nil {
		t.Errorf("a run of another environment has the forecast %+v", f)
	}
}
