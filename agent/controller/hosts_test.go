package controller

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// always is a configuration whose window is open all day, each day.
var always = v1.OSUpgrade{
	WorkerApplications: []v1.WorkerApplication{{Name: "app"}},
	MaintenanceWindows: []v1.MaintenanceWindow{{
		DaysOfWeek: "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday", StartTime: "00:00", Timezone: "UTC", Duration: "24h",
	}},
}

// TestWhatIsNew checks which word of a host has the loop decide anew, and
// which has the host written to the store.
func TestWhatIsNew(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		host             string
		telemetry        telemetry
		decides, written bool
	}{
		"a heartbeat":             {"h01", telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon.Add(message.Heartbeat)}, false, false},
		"a heartbeat after long":  {"h01", telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon.Add(time.Hour)}, true, false},
		"another application":     {"h01", telemetry{alive: message.Alive{Application: "other"}, aliveAt: noon.Add(time.Second)}, true, true},
		"another version":         {"h01", telemetry{alive: message.Alive{Application: "app", AgentVersion: "2"}, aliveAt: noon.Add(time.Second)}, true, true},
		"another host":            {"h02", telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon}, true, true},
		"progress":                {"h01", telemetry{progress: message.Progress{Percent: 3}, progressAt: noon}, false, false},
		"progress of nobody":      {"h77", telemetry{progress: message.Progress{Percent: 3}, progressAt: noon}, false, false},
		"a heartbeat of long ago": {"h01", telemetry{alive: message.Alive{Application: "app"}, aliveAt: noon.Add(-time.Second)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newMemory().options(t)
			s := stateOf(o)
			s.heard("h01", message.Alive{Application: "app"}, noon)
			s.stale = false
			s.writer.queue.Take()
			s.hear([]wait.Item[string, telemetry]{{Key: c.host, Value: c.telemetry}})
			if written := len(s.writer.queue.Items()) > 0; s.stale != c.decides || written != c.written {
				t.Errorf("decides: %v, written: %v; want %v, %v", s.stale, written, c.decides, c.written)
			}
		})
	}
}

// TestGivenLabels checks that the labels that a host was given when it joined win over those that
// it reports, and that the others stay.
func TestGivenLabels(t *testing.T) {
	t.Parallel()
	o, noon := newMemory().options(t), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	given := map[string]string{"shop": "basel"}
	o.Labels = func(host string) map[string]string {
		if host == "h01" {
			return given
		}
		return nil
	}
	s := stateOf(o)
	said := map[string]string{"shop": "bern", "rack": "r1"}
	for _, host := range []string{"h01", "h02"} {
		s.heard(host, message.Alive{Application: "app", Labels: said}, noon)
	}
	if got := s.hosts.known["h01"].Labels; !maps.Equal(got, map[string]string{"shop": "basel", "rack": "r1"}) {
		t.Errorf("h01 has the labels %v", got)
	}
	if got := s.hosts.known["h02"].Labels; !maps.Equal(got, said) || said["shop"] != "bern" || len(given) != 1 {
		t.Errorf("h02 has the labels %v, said %v, given %v", got, said, given)
	}
	if described, _ := s.hosts.heard("h01", message.Alive{Application: "app", Labels: said}, noon); described {
		t.Error("the same heartbeat describes the host anew")
	}
}

// TestVersionsOfHosts checks that versions are shown with their host, and that
// a host is not known by them alone: it may have been deleted.
func TestVersionsOfHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h.01")
		m.versions["h=2e01"] = []byte(`{"kernel":"6.1"}`)
		m.versions["h77"] = []byte(`{"kernel":"6.1"}`)
		m.versions["h=zz"] = []byte(`{}`)
		m.versions["h02"] = []byte(`[]`)
		c, _ := m.control(t)
		hosts, err := c.Hosts(t.Context(), v1.HostFilter{})
		if err != nil || len(hosts) != 1 || hosts[0].Versions["kernel"] != "6.1" || hosts[0].VersionsAt == nil {
			t.Errorf("the hosts are %+v, %v", hosts, err)
		}
	})
}

// TestReportsSince checks which reports the event stream tells: those after its
// position and no earlier ones, each once, and of a flood the last.
func TestReportsSince(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.versions["h01"], m.versions["h02"] = []byte(`{"kernel":"6.1"}`), []byte(`{"kernel":"6.1"}`)
		c, _ := m.control(t)
		position := uint64(0)
		tells := func(when string, want ...string) {
			t.Helper()
			events, next, err := c.ReportsSince(t.Context(), position)
			var got []string
			for _, e := range events {
				got = append(got, fmt.Sprintf("%s %d", e.Hostname, e.Changed))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s there are %q, %v; want %q", when, got, err, want)
			}
			position = next
		}
		reports := func(key, body string) {
			m.reports(key, report.Versions, []byte(body))
			synctest.Wait()
		}
		tells("at first")
		reports("h02", `{"kernel":"6.2","vim":"9.1"}`)
		reports("h01", `{"kernel":"6.3"}`)
		tells("after two reports", "h02 2", "h01 1")
		tells("a second time")
		reports("h01", `{"kernel":"6.3"}`)
		tells("after one that was told before")
		reports("h01", `[]`)
		tells("after one that cannot be read")
		m.turnStale()
		tells("after all reports were read anew")
		time.Sleep(2 * log.StaleRest)
		for n := range 2 * maxRecent {
			reports("h01", fmt.Sprintf(`{"kernel":"6.4.%d"}`, n))
		}
		events, _, err := c.ReportsSince(t.Context(), position)
		if err != nil || len(events) != maxRecent {
			t.Errorf("of a flood %d reports are told, %v", len(events), err)
		}
	})
}

// TestHost checks that one host is shown with its reports, and that one that is not
// known is told as such.
func TestHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h.01")
		m.versions["h=2e01"] = []byte(`{"kernel":"6.0"}`)
		c, _ := m.control(t)
		m.reports("h=2e01", report.Versions, []byte(`{"kernel":"6.1"}`))
		m.beat("h.01")
		h, err := c.Host(t.Context(), "h.01")
		if err != nil || !h.Online || h.Versions["kernel"] != "6.1" || len(h.Reports) != 2 || len(h.Reports[0].Changes) != 1 || h.Reports[0].Changes[0].From != "6.0" {
			t.Errorf("the host is %+v, %v", h, err)
		}
		if _, err := c.Host(t.Context(), "h77"); !errors.Is(err, run.ErrNoHost) {
			t.Errorf("of a host that is not known the error is %v", err)
		}
	})
}

// TestUpgradedHasNotMissed checks that a host that the run under way has upgraded is not
// shown any more as one that missed its upgrades.
func TestUpgradedHasNotMissed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s, r := stateOf(newMemory().options(t)), halfDone(t, now).ledger.Newest()
	for _, member := range r.Hosts() {
		s.heard(member.Name, message.Alive{Application: "app"}, now)
		s.hosts.known[member.Name].MissedSince = now.Add(-time.Hour)
	}
	for _, h := range s.hosts.view(now, func(string) *run.State { return r }, v1.HostFilter{}) {
		if upgraded := h.LastRun.Status == "upgraded"; upgraded != (h.MissedSince == nil) || upgraded != (h.Hostname == "h01") {
			t.Errorf("%s is %s and missed since %v", h.Hostname, h.LastRun.Status, h.MissedSince)
		}
	}
}

// TestOutdated checks since when a host is outdated: from when the site first hears that an
// upgrade would change something to when it hears that none would, also after a restart, for a
// host that is silent, and for one whose worker does not know for a while.
func TestOutdated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c, _ := m.control(t)
		begun := time.Now()
		beat := func(changes *int) {
			m.Alive("h01", message.Alive{Application: "app", Changes: changes})
			synctest.Wait()
		}
		shows := func(when string, want time.Duration) {
			t.Helper()
			h, err := c.Host(t.Context(), "h01")
			if err != nil || (h.OutdatedSince == nil) != (want < 0) || want >= 0 && !h.OutdatedSince.Equal(begun.Add(want)) || h.MissedSince != nil {
				t.Errorf("%s it is outdated since %v, %v", when, h.OutdatedSince, err)
			}
			if f, err := c.Figures(t.Context()); err != nil || (f.Outdated == 1) != (want >= 0) || want >= 0 && f.OutdatedFor != time.Since(begun.Add(want)) || f.Missed != 0 {
				t.Errorf("%s the figures are %+v, %v", when, f, err)
			}
		}
		none, some, more := 0, 2, 3
		beat(nil)
		shows("before its first offer", -1)
		m.pass(time.Minute)
		beat(&none)
		shows("with nothing to change", -1)
		m.pass(time.Minute)
		beat(&some)
		shows("with changes", 2*time.Minute)
		m.pass(time.Hour)
		beat(&more)
		shows("with more changes", 2*time.Minute)
		c = m.restart(t)
		beat(nil)
		shows("after a restart", 2*time.Minute)
		m.pass(time.Hour)
		shows("silent", 2*time.Minute)
		beat(&none)
		shows("after an upgrade", -1)
	})
}

// TestOutdatedUntilUpgraded checks that a host whose worker does not know what an upgrade would
// change is outdated until a run upgrades it, and that no run changes what a worker knows.
func TestOutdatedUntilUpgraded(t *testing.T) {
	t.Parallel()
	now, some := time.Now(), 2
	s, r := stateOf(newMemory().options(t)), halfDone(t, now).ledger.Newest()
	s.followGoal(s.standard(), now)
	upgraded, other := "h01", ""
	for _, member := range r.Hosts() {
		if member.Name != upgraded {
			other = member.Name
		}
		s.heard(member.Name, message.Alive{Application: "app"}, now)
	}
	for name, row := range map[string]struct {
		host        string
		changes     *int
		live, stays bool
	}{
		"upgraded, not known":     {upgraded, nil, true, false},
		"upgraded, known":         {upgraded, &some, true, true},
		"not upgraded, not known": {other, nil, true, true},
		"upgraded before a start": {upgraded, nil, false, true},
	} {
		known := s.hosts.known[row.host]
		known.LastRun, known.OutdatedSince = v1.HostRun{}, now.Add(-time.Hour)
		s.heard(row.host, message.Alive{Application: "app", Changes: row.changes}, now)
		var kept []store.Host
		ended := func(live bool) {
			s.hosts.ended(r, live, func(h store.Host) {
				if h.Name == row.host {
					kept = append(kept, h)
				}
			})
		}
		ended(row.live)
		s.heard(row.host, message.Alive{Application: "app"}, now)
		ended(true) // It is noted anew when a host has answered late.
		if known.OutdatedSince.IsZero() == row.stays {
			t.Errorf("%s: it is outdated since %v", name, known.OutdatedSince)
		}
		if (len(kept) == 0) != row.stays || len(kept) > 1 || len(kept) == 1 && !kept[0].OutdatedSince.IsZero() {
			t.Errorf("%s: %+v is kept", name, kept)
		}
	}
}

// TestOutdatedAfterARestart checks that a controller which starts clears nothing that a host has told
// since the end of its run, or all along, before it hears of it.
func TestOutdatedAfterARestart(t *testing.T) {
	t.Parallel()
	none, some := 0, 3
	for name, row := range map[string]struct{ before, after *int }{
		"outdated since its upgrade": {nil, &some},
		"outdated all along":         {&some, &some},
		"not known any more":         {&some, nil},
		"up to date":                 {&some, &none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory("h01", "h02")
				c, _ := m.control(t)
				beat := func(changes *int) {
					m.Alive("h01", message.Alive{Application: "app", Changes: changes})
					m.beat("h02")
				}
				since := func() *time.Time {
					t.Helper()
					h, err := c.Host(t.Context(), "h01")
					if err != nil {
						t.Fatal(err)
					}
					return h.OutdatedSince
				}
				beat(row.before)
				m.upgradedAs(t, c, row.before, "done")
				time.Sleep(time.Minute)
				beat(row.after)
				want := since()
				for range 2 {
					c = m.restart(t)
					if got := since(); (got == nil) != (want == nil) || got != nil && !got.Equal(*want) {
						t.Errorf("after a restart it is outdated since %v, and was since %v", got, want)
					}
				}
			})
		})
	}
}

// TestLastRunOfAHost checks what a host shows of its last run, and since when it has missed
// its upgrades: from the end of the first run that did not upgrade it to the next that
// does, also after a restart and for a host that is silent.
func TestLastRunOfAHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.obedient, m.config = true, daily([2]string{"01:00", "2h"})
		m.rollout = &v1.Rollout{RetryAfter: "1d"} // One run a night.
		c, _ := m.control(t)
		begun := time.Now().UTC()
		night := func(n int) string { return begun.AddDate(0, 0, n).Format(time.DateOnly) }
		shows := func(when, h01, h02 string) {
			t.Helper()
			for name, want := range map[string]string{"h01": h01, "h02": h02} {
				h, err := c.Host(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				got := "nothing"
				if h.LastRun != nil {
					got = fmt.Sprintf("%s %s, %s", h.LastRun.EndedAt.Format(time.DateOnly), h.LastRun.Result, h.LastRun.Status)
				}
				if h.MissedSince != nil {
					got += ", missed since " + h.MissedSince.Format(time.DateOnly)
				}
				if got != want {
					t.Errorf("%s %s shows %q, not %q", when, name, got, want)
				}
			}
		}
		shows("before a run", "nothing", "nothing")
		m.pass(12*time.Hour, "h01", "h02")
		shows("after a run", night(0)+" completed, upgraded", night(0)+" completed, upgraded")
		m.setObedient(false)
		m.pass(24*time.Hour, "h01", "h02")
		missed := ", missed since " + night(1)
		failed := night(1) + " failed, failed" + missed
		shows("after a run that nobody answers", failed, failed)
		m.pass(24*time.Hour, "h01", "h02")
		failed = night(2) + " failed, failed" + missed
		shows("after another", failed, failed)
		c = m.restart(t)
		m.beat("h01")
		shows("after a restart", failed, failed)
		m.setObedient(true)
		m.pass(24*time.Hour, "h01", "h02")
		shows("after a run that they answer", night(3)+" completed, upgraded", night(3)+" completed, upgraded")
	})
}

// TestHostsOfTheVersionBefore checks that a host shows what is kept of it by a version that wrote
// each host after each run: of a run that is trimmed, and of the newest one, with what it has said
// since.
func TestHostsOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, _ := m.control(t)
		newest := m.upgraded(t, c, "no space")
		m.stop()
		ended, outdated := newest.EndedAt.Add(-24*time.Hour), newest.EndedAt.Add(time.Hour)
		trimmed := v1.HostRun{ID: 1, Phase: "finished", Result: "failed", Status: "failed", EndedAt: &ended}
		of := func(status string) v1.HostRun {
			return v1.HostRun{ID: newest.ID, Phase: "finished", Result: newest.Result, Status: status, EndedAt: newest.EndedAt}
		}
		kept := []store.Host{
			{Name: "h01", LastRun: of("upgraded"), OutdatedSince: outdated},
			{Name: "h02", LastRun: of("failed"), MissedSince: ended},
			{Name: "h03", LastRun: trimmed, MissedSince: ended},
		}
		for _, h := range kept {
			h.Tenant, h.Application = "acme", "app"
			must(m.Store.PutHost(t.Context(), h.Name, h))
		}
		c, _ = m.control(t)
		all, err := c.Hosts(t.Context(), v1.HostFilter{})
		if err != nil || len(all) != len(kept) {
			t.Fatalf("the hosts are %+v, %v", all, err)
		}
		for i, h := range all {
			want := kept[i]
			if !reflect.DeepEqual(h.LastRun, &want.LastRun) || !sameTime(h.MissedSince, want.MissedSince) || !sameTime(h.OutdatedSince, want.OutdatedSince) {
				t.Errorf("%s shows %+v, missed since %v, outdated since %v", h.Hostname, h.LastRun, h.MissedSince, h.OutdatedSince)
			}
		}
	})
}

// sameTime reports whether a time that may be absent is another, which is zero for absent.
func sameTime(got *time.Time, want time.Time) bool {
	return got == nil && want.IsZero() || got != nil && got.Equal(want)
}

// setObedient has hosts answer each command at once from now on, or none.
func (m *memory) setObedient(obedient bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.obedient = obedient
}

// TestRunWritesNoHost checks that a run writes no host of which the log tells all, also at a stop,
// and that a controller knows after a kill how hosts came out of it.
func TestRunWritesNoHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		c, stop := m.control(t)
		m.beat("h01", "h02")
		time.Sleep(2 * hostPause)
		_, before := m.kept("h01")
		m.upgraded(t, c, "no space")
		time.Sleep(2 * hostPause)
		m.upgraded(t, c, "no space")
		want, err := c.Hosts(t.Context(), v1.HostFilter{})
		if err != nil || want[0].LastRun.Status != "upgraded" || want[1].LastRun.Status != "failed" || want[1].MissedSince == nil {
			t.Fatalf("the hosts are %+v, %v", want, err)
		}
		stop()
		if _, after := m.kept("h01"); after != before {
			t.Errorf("two runs of two hosts wrote %d hosts", after-before)
		}
		c, _ = m.control(t)
		got, err := c.Hosts(t.Context(), v1.HostFilter{})
		if err != nil || len(got) != len(want) {
			t.Fatalf("the hosts are %+v, %v", got, err)
		}
		for i := range got {
			if !reflect.DeepEqual(got[i].LastRun, want[i].LastRun) || !reflect.DeepEqual(got[i].MissedSince, want[i].MissedSince) {
				t.Errorf("after a restart %s shows %+v, missed since %v; before that %+v, %v", got[i].Hostname, got[i].LastRun, got[i].MissedSince, want[i].LastRun, want[i].MissedSince)
			}
		}
	})
}

// BenchmarkHeartbeat is what the loop does on the heartbeat of a known host
// while a window is open; its time must not grow with the number of hosts.
func BenchmarkHeartbeat(b *testing.B) {
	for _, hosts := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("%d-hosts", hosts), func(b *testing.B) {
			o := newMemory().options(b)
			s := stateOf(o)
			s.intent.set(store.Seen{Object: theConfig, Config: &always, Number: 1})
			now := time.Now()
			for i := range hosts {
				s.heard(fmt.Sprintf("h%05d", i), message.Alive{Application: "app"}, now)
			}
			queue := wait.NewQueue[string, telemetry]()
			timer := time.NewTimer(time.Hour)
			defer timer.Stop()
			for i := 0; b.Loop(); i++ {
				queue.Change(fmt.Sprintf("h%05d", i%hosts), func(l *telemetry) {
					l.alive, l.aliveAt = message.Alive{Application: "app"}, now
				})
				s.hear(queue.Take())
				s.refresh(b.Context(), timer)
			}
		})
	}
}

// TestHostsInParts checks that the hosts come in parts of their order, each that stays exactly
// once, also when others come and go between two parts.
func TestHostsInParts(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, between := range map[string]func(h *hosts){
		"nothing happens":     func(*hosts) {},
		"a host comes before": func(h *hosts) { h.heard("h000", message.Alive{Application: "app"}, now) },
		"a host comes behind": func(h *hosts) { h.heard("h99", message.Alive{Application: "app"}, now) },
		"a host goes":         func(h *hosts) { h.delete("h02", run.Deletion{}) },
		"the last host of the part goes": func(h *hosts) {
			h.delete("h03", run.Deletion{})
			h.delete("h06", run.Deletion{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stateOf(newMemory().options(t))
			for n := range 10 {
				s.hosts.heard(fmt.Sprintf("h%02d", n), message.Alive{Application: "app"}, now)
			}
			seen, after := map[string]int{}, ""
			for parts := 1; ; parts++ {
				part := s.hosts.view(now, s.newestOf, v1.HostFilter{After: after, Limit: 4})
				for _, h := range part {
					if h.Hostname <= after {
						t.Errorf("%s is behind %s", h.Hostname, after)
					}
					after = h.Hostname
					seen[after]++
				}
				if len(part) < 4 {
					break
				}
				between(&s.hosts)
				if all, counted := len(s.hosts.view(now, s.newestOf, v1.HostFilter{})), s.hosts.count(now); counted != all {
					t.Fatalf("it counts %d hosts of %d", counted, all)
				}
				if parts > 10 {
					t.Fatal("it never ends")
				}
			}
			for _, host := range []string{"h00", "h01", "h04", "h05", "h07", "h08", "h09"} {
				if seen[host] != 1 {
					t.Errorf("%s is in %d parts", host, seen[host])
				}
			}
			whole := s.hosts.view(now, s.newestOf, v1.HostFilter{})
			if len(whole) != len(s.hosts.known) || !slices.IsSortedFunc(whole, func(a, b v1.Host) int { return strings.Compare(a.Hostname, b.Hostname) }) {
				t.Errorf("the whole is %v of %d hosts", whole, len(s.hosts.known))
			}
			if behind := s.hosts.view(now, s.newestOf, v1.HostFilter{After: "zzz"}); behind == nil || len(behind) != 0 {
				t.Errorf("behind the last there are %v", behind)
			}
		})
	}
}
