package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// offers are what a host says of its offers.
type offers struct {
	by      release.Pin
	changes int // is less than 0 if the host does not know.
}

// passSaying has time pass in which hosts say what their offers change.
func (m *memory) passSaying(span time.Duration, hosts map[string]offers) {
	for {
		for name, s := range hosts {
			a := message.Alive{Application: "app", Releases: []release.Kind{release.OfData, release.OfPackages}, Release: s.by.Digest}
			if s.changes >= 0 {
				a.Changes = &s.changes
			}
			m.Alive(name, a)
		}
		synctest.Wait()
		if span <= 0 {
			return
		}
		time.Sleep(min(span, message.Heartbeat))
		span -= message.Heartbeat
	}
}

// TestWindowThatNeedsNoRun checks that a window opens no run if all its hosts say that they have the
// release, and says so while it is open and once it has closed; and that any host which lacks it, or of
// which nobody knows, opens one.
func TestWindowThatNeedsNoRun(t *testing.T) {
	t.Parallel()
	spring := springOf()
	pin, other := spring.Pin("spring"), v1.Release{Data: []byte(`{"b":1}`)}.Pin("autumn")
	moving := v1.Release{Packages: &release.Packages{Select: release.All}}
	const have = "all 2 hosts have release spring"
	for name, c := range map[string]struct {
		names string
		hosts map[string]offers
		edit  func(*memory)
		needs bool
		want  string
	}{
		"all have it":               {"spring", map[string]offers{"h01": {pin, 0}, "h02": {pin, 0}}, nil, false, have},
		"the only one has it":       {"spring", map[string]offers{"h01": {pin, 0}}, nil, false, "the only host has release spring"},
		"one lacks it":              {"spring", map[string]offers{"h01": {pin, 0}, "h02": {pin, 1}}, nil, true, ""},
		"one does not know":         {"spring", map[string]offers{"h01": {pin, 0}, "h02": {pin, -1}}, nil, true, ""},
		"one goes by another":       {"spring", map[string]offers{"h01": {pin, 0}, "h02": {other, 0}}, nil, true, ""},
		"one offers the newest":     {"spring", map[string]offers{"h01": {pin, 0}, "h02": {release.Pin{}, 0}}, nil, true, ""},
		"it installs what there is": {"moving", map[string]offers{"h01": {moving.Pin("moving"), 0}}, nil, true, ""},
		"no release":                {"", map[string]offers{"h01": {release.Pin{}, 0}}, nil, true, ""},
		"it is for other versions": {"spring", map[string]offers{"h01": {pin, 0}, "h02": {pin, 0}}, func(m *memory) {
			for _, host := range []string{"h01", "h02"} {
				m.versions[host] = message.EncodeVersions(map[string]string{"base": "2.0"})
			}
		}, false, have},
		"steps of earlier runs": {"spring", map[string]offers{"h01": {pin, 0}}, func(m *memory) {
			m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all"}}}
		}, false, "the only host has release spring"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := nightly(slices.Collect(maps.Keys(c.hosts))...)
				for host := range c.hosts {
					m.versions[host] = message.EncodeVersions(map[string]string{"base": "1.4"})
				}
				if c.names != "" {
					m.config.Releases = map[string]string{"os": c.names}
				}
				if c.edit != nil {
					c.edit(m)
				}
				m.releases("spring", &spring)
				m.releases("moving", &moving)
				controller, _ := m.control(t)
				m.passSaying(2*time.Hour+30*time.Minute, c.hosts)
				shown, err := controller.Snapshot(t.Context())
				if err != nil || shown.Situation.OpenWindow == nil {
					t.Fatalf("no window is open: %+v, %v", shown.Situation, err)
				}
				if opened := len(m.events(`"opened"`)); (opened == 0) == c.needs || shown.Situation.OpenWindow.UpToDate != c.want || shown.Situation.WaitingFor != nil {
					t.Fatalf("%d runs were opened; %+v, it waits for %+v", opened, shown.Situation.OpenWindow, shown.Situation.WaitingFor)
				}
				if c.needs {
					return
				}
				m.passSaying(time.Hour, c.hosts)
				missed := m.events(`"missed"`)
				if len(missed) != 1 || !strings.Contains(missed[0], `"reason":"`+c.want+`","release":"`+pin.Ref().String()+`"`) {
					t.Errorf("the log has %q", missed)
				}
				shown, err = controller.Snapshot(t.Context())
				if err != nil || shown.Situation.LastMissed != nil || shown.Situation.OpenWindow != nil {
					t.Errorf("after the window: %+v, %v", shown.Situation, err)
				}
			})
		})
	}
}

// TestWindowNeedsARunAfterAll checks that a window which needed no run opens one once a host lacks the
// release, and that silent hosts, though nobody knows what they have, open none before they are back.
func TestWindowNeedsARunAfterAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spring := springOf()
		pin := spring.Pin("spring")
		m := nightly("h01", "h02")
		m.config.Releases = map[string]string{"os": "spring"}
		m.versions["h01"], m.versions["h02"] = message.EncodeVersions(map[string]string{"base": "1.4"}), message.EncodeVersions(map[string]string{"base": "1.4"})
		m.releases("spring", &spring)
		c, _ := m.control(t)
		m.passSaying(time.Minute, map[string]offers{"h01": {pin, 0}, "h02": {pin, 0}})
		m.passSaying(2*time.Hour+5*time.Minute, map[string]offers{"h01": {pin, 0}})
		waits := func() string {
			shown, err := c.Snapshot(t.Context())
			if err != nil || shown.Situation.WaitingFor == nil {
				return ""
			}
			return shown.Situation.WaitingFor.Detail
		}
		if got := waits(); got != "a host to come back: 1 host, all silent; the others have release spring" || len(m.events(`"opened"`)) != 0 {
			t.Fatalf("it waits for %q", got)
		}
		m.passSaying(5*time.Minute, map[string]offers{"h01": {pin, 0}, "h02": {pin, 0}})
		if got := waits(); got != "" || len(m.events(`"opened"`)) != 0 {
			t.Fatalf("it waits for %q", got)
		}
		m.passSaying(time.Minute, map[string]offers{"h01": {pin, 0}, "h02": {pin, 2}})
		if opened := m.events(`"opened"`); len(opened) != 1 {
			t.Errorf("opened %q", opened)
		}
	})
}

// TestWindowThatOthersFollow checks that an environment in which all hosts have the release opens a run
// as long as one that comes after it has something to do, because that follows the run.
func TestWindowThatOthersFollow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		changes int
		opened  int
	}{"the shops lack it": {1, 1}, "the shops have it": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				spring := springOf()
				pin := spring.Pin("spring")
				m := nightly("h01", "h02")
				m.config.Releases = map[string]string{"os": "spring"}
				m.releases("spring", &spring)
				for _, host := range []string{"h01", "h02"} {
					m.versions[host] = message.EncodeVersions(map[string]string{"base": "1.4"})
				}
				control, _ := m.control(t)
				m.declare(store.Seen{Object: store.Object{Kind: store.Environment, Name: "shops"}, Environment: &v1.Environment{
					Match: v1.Match{Hosts: []string{"h02"}}, After: &v1.After{Environments: []string{"default"}, Soak: "0s"},
				}})
				m.passSaying(2*time.Hour+30*time.Minute, map[string]offers{"h01": {pin, 0}, "h02": {pin, c.changes}})
				if opened := m.events(`"opened"`); len(opened) != c.opened {
					t.Errorf("opened %q", opened)
				}
				statuses, err := control.EnvironmentStatuses(t.Context())
				if err != nil || len(statuses) != 2 || c.opened == 0 && (statuses[1].OpenWindow == nil || statuses[1].OpenWindow.UpToDate != "the only host has release spring" || len(statuses[1].Needs) > 0) {
					t.Errorf("%+v, %v", statuses, err)
				}
			})
		})
	}
}

// TestWindowThatManyFollow checks that each environment is looked at once, though the ways through their
// order double with each of its 24 layers: else the controller would still be counting.
func TestWindowThatManyFollow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spring := springOf()
		pin := spring.Pin("spring")
		hosts, has := []string{"h00"}, map[string]offers{"h00": {pin, 0}}
		for n := range 48 {
			name := fmt.Sprintf("h%02d", n+1)
			hosts, has[name] = append(hosts, name), offers{pin, 0}
		}
		m := nightly(hosts...)
		m.config.Releases = map[string]string{"os": "spring"}
		m.releases("spring", &spring)
		for _, host := range hosts {
			m.versions[host] = message.EncodeVersions(map[string]string{"base": "1.4"})
		}
		control, _ := m.control(t)
		before := []string{"default"}
		for layer := range 24 {
			var names []string
			for n := 2*layer + 1; n <= 2*layer+2; n++ {
				name := fmt.Sprintf("e%02d", n)
				m.declare(store.Seen{Object: store.Object{Kind: store.Environment, Name: name}, Environment: &v1.Environment{
					Match: v1.Match{Hosts: hosts[n : n+1]}, After: &v1.After{Environments: before, Soak: "0s"},
				}})
				names = append(names, name)
			}
			before = names
		}
		m.passSaying(2*time.Hour+10*time.Minute, has)
		status, err := control.EnvironmentStatus(t.Context(), "default")
		if err != nil || status.OpenWindow == nil || status.OpenWindow.UpToDate != "the only host has release spring" {
			t.Errorf("%+v, %v", status, err)
		}
	})
}

// told are the releases that hosts were told.
type told struct {
	mu  sync.Mutex
	all []string
}

func (l *told) ask(host string, a log.Ask) {
	if a.Kind != report.Offer || !a.ByRelease {
		return
	}
	what := host + " none"
	if a.Release != nil {
		what = host + " " + a.Release.Name
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, what)
}

// take returns what hosts were told since, in order.
func (l *told) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.all)
	text := strings.Join(l.all, ", ")
	l.all = nil
	return text
}

// TestHostsAreToldTheirRelease checks that a host is told to which release its environment goes as soon
// as that changes, again while it does not take note, and no more once it does.
func TestHostsAreToldTheirRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spring, moving, images := springOf(), v1.Release{Packages: &release.Packages{Select: release.All}}, v1.Release{Images: []release.Image{{URL: "https://images.example/a.img"}}}
		m, l := newMemory("h01", "h02"), &told{}
		m.answersAsk = l.ask
		for name, r := range map[string]*v1.Release{"spring": &spring, "moving": &moving, "images": &images} {
			m.releases(name, r)
		}
		_, _ = m.control(t)
		is := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := l.take(); got != want {
				t.Errorf("%s: %q is told, not %q", when, got, want)
			}
		}
		goTo := func(name string) {
			config := *m.config
			if config.Releases = nil; name != "" {
				config.Releases = map[string]string{"os": name}
			}
			m.declare(store.Seen{Object: theConfig, Config: &config})
		}
		none, by := release.Pin{}, spring.Pin("spring")
		m.passSaying(5*time.Minute, map[string]offers{"h01": {none, 1}, "h02": {none, 1}})
		is("without a release", "")
		goTo("spring")
		is("at once", "h01 spring, h02 spring")
		m.passSaying(4*time.Minute, map[string]offers{"h01": {none, 1}, "h02": {by, -1}})
		is("to the one that does not take note", "h01 spring")
		m.passSaying(time.Hour, map[string]offers{"h01": {by, 0}, "h02": {by, 1}})
		is("to those that have", "")
		goTo("images")
		is("to hosts that do not carry it out", "")
		goTo("moving")
		is("to another one", "h01 moving, h02 moving")
		r := moving
		r.Withdrawn = &release.Withdrawn{Reason: "bad"}
		m.releases("moving", &r)
		m.passSaying(time.Hour, map[string]offers{"h01": {by, 0}, "h02": {by, 1}})
		is("while it is withdrawn", "")
		goTo("")
		is("to none", "h01 none, h02 none")
	})
}

// TestGoalTells checks that the wait doubles until a host is told again that does not take note.
func TestGoalTells(t *testing.T) {
	t.Parallel()
	now := time.Now()
	pin := v1.Release{Data: []byte(`{}`)}.Pin("nov")
	g := goal{pin: &pin, known: true, kind: release.OfData}
	h := &host{}
	h.Releases = []release.Kind{release.OfData}
	if !g.tells(h, now) {
		t.Error("it is not told at first")
	}
	for times, wait := range map[int]time.Duration{1: message.Silence, 2: 2 * message.Silence, 6: 32 * message.Silence, 90: 32 * message.Silence} {
		h.told = toldGoal{digest: pin.Digest, at: now, times: times}
		if g.tells(h, now.Add(wait-1)) || !g.tells(h, now.Add(wait)) {
			t.Errorf("after %d times it does not wait %s", times, wait)
		}
	}
	if h.told.digest = "another"; !g.tells(h, now) {
		t.Error("it is not told of another release at once")
	}
	if h.offersBy = pin.Digest; g.tells(h, now.Add(day)) {
		t.Error("it is told what it knows")
	}
}

// TestOutdatedByRelease checks that a host is outdated if its offer by the release of its environment is
// not empty, and that an offer by another one changes nothing.
func TestOutdatedByRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spring := springOf()
		by := spring.Pin("spring")
		m := newMemory("h01")
		m.config.Releases = map[string]string{"os": "spring"}
		m.releases("spring", &spring)
		c, _ := m.control(t)
		for _, row := range []struct {
			when     string
			offers   offers
			outdated bool
		}{
			{"the newest", offers{release.Pin{}, 3}, false},
			{"unknown", offers{by, -1}, false},
			{"some", offers{by, 3}, true},
			{"nothing newer", offers{release.Pin{}, 0}, true},
			{"unknown again", offers{by, -1}, true},
			{"none", offers{by, 0}, false},
		} {
			m.passSaying(time.Minute, map[string]offers{"h01": row.offers})
			hosts, err := c.Hosts(t.Context(), v1.HostFilter{})
			if err != nil || len(hosts) != 1 || (hosts[0].OutdatedSince != nil) != row.outdated {
				t.Errorf("%s: %+v, %v", row.when, hosts, err)
			}
		}
	})
}

// TestGoalChangesByItself checks that hosts of an environment that follows are told at the moment at which
// it goes to another release, though nothing else happens then.
func TestGoalChangesByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(5 * day) // No release is as of a time before 2000.
		m, l := newMemory("h01", "h02"), &told{}
		m.answersAsk = l.ask
		m.config.Target = release.Target{Follow: &release.Follow{Age: "36h"}}
		_, _ = m.control(t)
		none := map[string]offers{"h01": {release.Pin{}, 1}, "h02": {release.Pin{}, 1}}
		next := time.Now().UTC().Truncate(day).Add(day / 2)
		for _, want := range []string{"all-20000105", "all-20000106"} {
			m.passSaying(time.Until(next)-time.Second, none)
			_ = l.take()
			time.Sleep(time.Second)
			synctest.Wait()
			if got := l.take(); got != "h01 "+want+", h02 "+want {
				t.Errorf("at %s %q is told, want %s", next, got, want)
			}
			next = next.Add(day)
		}
	})
}

// TestGoalAt checks to which release an environment goes, and when it goes to another one by itself.
func TestGoalAt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 15, 0, 0, 0, time.UTC)
	midnight := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	spring, withdrawn := springOf(), springOf()
	withdrawn.Withdrawn = &release.Withdrawn{Reason: "bad"}
	goesOn := springOf().Pin("of-the-runs-before")
	follows := release.Target{Follow: &release.Follow{Age: "7d"}}
	for name, c := range map[string]struct {
		target release.Target
		goesOn *release.Pin
		want   string
		known  bool
		until  time.Time
	}{
		"none":                     {release.Target{}, nil, "", true, time.Time{}},
		"named":                    {release.Target{Releases: map[string]string{"os": "spring"}}, &goesOn, "spring", true, time.Time{}},
		"withdrawn":                {release.Target{Releases: map[string]string{"os": "autumn"}}, nil, "", false, time.Time{}},
		"not there":                {release.Target{Releases: map[string]string{"os": "winter"}}, nil, "", false, time.Time{}},
		"followed":                 {follows, nil, "all-20261121", true, midnight},
		"followed without an age":  {release.Target{Follow: &release.Follow{}}, nil, "all", true, time.Time{}},
		"followed, and runs go on": {follows, &goesOn, "of-the-runs-before", true, time.Time{}},
	} {
		i := intent{releases: map[string]v1.Release{"spring": spring, "autumn": withdrawn}, config: &v1.OSUpgrade{Target: c.target}}
		got, pinned := i.goalAt("", c.goesOn, now), ""
		if got.pin != nil {
			pinned = got.pin.Name
		}
		if pinned != c.want || got.known != c.known || !got.until.Equal(c.until) {
			t.Errorf("%s: it goes to %q (known: %t) until %s", name, pinned, got.known, got.until)
		}
	}
}
