package controller

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestWarnings checks how long a warning is shown, where, and what is logged of it.
func TestWarnings(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		var logged strings.Builder
		m.logger = slog.New(slog.NewTextHandler(&logged, nil))
		c, _ := m.control(t)
		m.beat("h01", "h02")
		changed, stop, err := c.Watch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		shows := func(when string, host, site int) {
			t.Helper()
			h, err := c.Host(t.Context(), "h01")
			if err != nil {
				t.Fatal(err)
			}
			all, err := c.Hosts(t.Context(), v1.HostFilter{})
			if err != nil {
				t.Fatal(err)
			}
			s, err := c.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(h.Warnings) != host || len(all[0].Warnings) != host || len(all[1].Warnings) != 0 || len(s.Warnings) != site || s.WarningCount != site {
				t.Errorf("%s h01 has %+v and %+v, h02 %+v, the site %d of %+v", when, h.Warnings, all[0].Warnings, all[1].Warnings, s.WarningCount, s.Warnings)
			}
		}
		wakes := func(when string, want bool) {
			t.Helper()
			woken := false
			select {
			case <-changed:
				woken = true
			default:
			}
			if woken != want {
				t.Errorf("%s the watchers are woken: %v", when, woken)
			}
		}
		wakes("at first", false)
		c.Warn("h01", message.WarnSecondWorker, "stop one")
		wakes("by a warning", true)
		c.Warn("h01", message.WarnSecondWorker, "stop one")
		wakes("by the same warning", false)
		c.Warn("h77", message.WarnKey, "make a key")
		c.Warn("h01", message.WarnProtocol, "upgrade it")
		shows("after three warnings", 2, 3)
		if s, _ := c.State(t.Context()); s.Warnings[2].Host != "h77" || s.Warnings[0].Text == "" {
			t.Errorf("the site shows %+v; a warning about a key comes last", s.Warnings)
		}
		m.pass(warningFor-time.Minute, "h01", "h02")
		c.Warn("h01", message.WarnProtocol, "upgrade it")
		m.pass(2*time.Minute, "h01", "h02")
		shows("after two were not repeated", 1, 1)
		m.pass(warningFor, "h01", "h02")
		shows("after none was repeated", 0, 0)
		if n := strings.Count(logged.String(), "host has a warning"); n != 2 || strings.Contains(logged.String(), "make a key") {
			t.Errorf("%d warnings are logged:\n%s", n, logged.String())
		}
	})
}

// TestFloodOfWarnings checks that nobody who can merely connect makes warnings
// disappear, or the list long.
func TestFloodOfWarnings(t *testing.T) {
	t.Parallel()
	var logged strings.Builder
	w := newWarnings(Options{Tenant: "acme", Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	now := time.Now()
	for i := range 10_000 {
		w.note(fmt.Sprintf("x%05d", i), message.WarnKey, "make a key", now)
	}
	w.note("h01", message.WarnClone, "clone", now.Add(time.Second))
	list := w.list("", now.Add(time.Second))
	if len(list) != maxKeyWarnings+1 || list[0].Host != "h01" {
		t.Errorf("there are %d warnings, the first of them %+v", len(list), list[0])
	}
	for i := range 10_000 {
		w.note(fmt.Sprintf("h%05d", i), message.WarnClock, "clock", now)
	}
	if n := len(w.list("", now)); n != maxWarnings {
		t.Errorf("there are %d warnings", n)
	}
	if n := strings.Count(logged.String(), "\n"); n > fewWarnings {
		t.Errorf("%d lines are logged", n)
	}
	if n := len(w.list("", now.Add(-time.Hour))); n != maxWarnings {
		t.Errorf("with the clock set back there are %d warnings", n)
	}
	if n := len(w.list("", now.Add(warningFor-time.Hour))); n != 0 {
		t.Errorf("of what was noted by a clock that was ahead there are %d warnings", n)
	}
}

// TestClockOfAHost checks from which difference on a clock is called wrong, that a
// heartbeat which was held up is no wrong clock, and that the warning ends with the
// difference.
func TestClockOfAHost(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		skews []time.Duration
		want  string
	}{
		"right":              {[]time.Duration{0, time.Second, -time.Second}, ""},
		"a minute":           {[]time.Duration{time.Minute, time.Minute}, ""},
		"ahead":              {[]time.Duration{61 * time.Second, 61 * time.Second}, "its clock is 1m0s ahead of the site's"},
		"behind":             {[]time.Duration{-5 * time.Minute, -5*time.Minute - 2*time.Second}, "its clock is 5m0s behind the site's"},
		"by years":           {[]time.Duration{30_000 * time.Hour, 30_000 * time.Hour}, "its clock is 30000h0m0s ahead of the site's"},
		"once":               {[]time.Duration{-5 * time.Minute}, ""},
		"held up":            {[]time.Duration{0, -5 * time.Minute, 0}, ""},
		"on both sides":      {[]time.Duration{-5 * time.Minute, 5 * time.Minute}, ""},
		"set right":          {[]time.Duration{time.Hour, time.Hour, time.Second}, ""},
		"wrong, and held up": {[]time.Duration{time.Hour, time.Hour, 50 * time.Minute}, "its clock is 50m0s ahead of the site's"},
	} {
		s := stateOf(newMemory().options(t))
		at := noon
		for _, skew := range c.skews {
			at = at.Add(message.Heartbeat)
			s.hear([]wait.Item[string, telemetry]{{Key: "h01", Value: telemetry{alive: message.Alive{Application: "app", At: at.Add(skew)}, aliveAt: at}}})
		}
		list := s.warnings.list("h01", at)
		got := ""
		if len(list) > 0 {
			got, _, _ = strings.Cut(list[0].Text, ":")
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
	s := stateOf(newMemory().options(t))
	for n := range 3 { // A worker of an earlier version does not tell its time.
		s.hear([]wait.Item[string, telemetry]{{Key: "h01", Value: telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon.Add(time.Duration(n) * time.Minute)}}})
	}
	if list := s.warnings.list("", noon); !slices.Equal(list, nil) {
		t.Errorf("of a worker that tells no time there is %+v", list)
	}
}

// TestRolledBackText checks what is said of a host whose machine went back by itself.
func TestRolledBackText(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 1, 10, 0, 0, time.UTC)
	first, second := message.RolledBackVersion{Version: "1.9", Running: "1.0", At: at}, message.RolledBackVersion{Version: "2.0", Running: "1.0", At: at}
	const want = "its machine fell back by itself at 2026-11-22T01:10:00Z: from version 2.0 to 1.0; a plan holds 2.0 back until there is another version; to offer it again, type on the host: osupgrade-agent worker accept 2.0"
	for _, c := range []struct {
		told []message.RolledBackVersion
		want string
	}{{nil, ""}, {[]message.RolledBackVersion{second}, want}, {[]message.RolledBackVersion{first, second}, want + " (and 1 before)"}} {
		if got := rolledBackText(c.told); got != c.want {
			t.Errorf("of %v is said %q", c.told, got)
		}
	}
}
