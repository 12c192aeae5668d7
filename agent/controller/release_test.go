package controller

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// springOf is a release for hosts whose base is 1.
func springOf() v1.Release {
	return v1.Release{Version: "2.0", Scheme: release.Semver, Requires: map[string]string{"base": ">= 1, < 2"}, Installs: map[string]string{"base": "2.0"}, Data: []byte(`{"a":1}`)}
}

// releases writes a release; nil deletes it.
func (m *memory) releases(name string, r *v1.Release) {
	_, base, err := m.Release(context.Background(), "acme", name)
	if r != nil {
		_, err = m.PutRelease(context.Background(), "acme", name, v1.Kept[v1.Release]{Value: *r}, base)
	} else if err == nil {
		_, err = m.DeleteRelease(context.Background(), "acme", name, base)
	}
	must(err)
	synctest.Wait()
}

// beatReleases has hosts say that they carry out releases of data.
func (m *memory) beatReleases(hosts ...string) {
	for _, name := range hosts {
		m.Alive(name, message.Alive{Application: "app", Releases: []release.Kind{release.OfData}})
	}
	synctest.Wait()
}

// toSpring is a site with release spring and hosts that may go to it.
func toSpring(t *testing.T, act func(t *testing.T, m *memory, c *Controller, spring release.Pin)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.rollout = &v1.Rollout{Timeouts: &v1.CommandTimeouts{Prepare: "3h", Upgrade: "3h"}}
		for _, host := range []string{"h01", "h02", "h03"} {
			m.versions[host] = message.EncodeVersions(map[string]string{"base": "1.4"})
		}
		c, _ := m.control(t)
		r := springOf()
		m.releases("spring", &r)
		m.beatReleases("h01", "h02", "h03")
		act(t, m, c, r.Pin("spring"))
	})
}

// startSpring is a start with a release.
var startSpring = v1.Start{OverrideWindow: true, Reason: "a test", Release: "spring"}

// pins returns the release in each event that opened a run, and in each prepare.
func (m *memory) pins() (opened []release.Pin, prepared []string) {
	for _, r := range m.log.All() {
		switch event, err := message.DecodeEvent(r.Body); {
		case r.Kind == message.CommandAll:
			prepared = append(prepared, r.Release)
		case r.Kind == message.EventRecord && err == nil:
			if o, ok := event.(message.Opened); ok && o.Release != nil {
				opened = append(opened, *o.Release)
			} else if ok {
				opened = append(opened, release.Pin{})
			}
		}
	}
	return opened, prepared
}

func same(a, b release.Pin) bool { return a.Ref() == b.Ref() && string(a.Text) == string(b.Text) }

// TestRunPinsRelease checks that a run is pinned to the release as it was opened, also after a restart,
// and that its retry has the same one though the release is there no more.
func TestRunPinsRelease(t *testing.T) {
	t.Parallel()
	toSpring(t, func(t *testing.T, m *memory, c *Controller, spring release.Pin) {
		r, err := c.Start(t.Context(), "test", startSpring)
		if err != nil {
			t.Fatal(err)
		}
		if r.Release == nil || r.Release.Name != "spring" || r.Release.Version != "2.0" || r.Release.Digest != spring.Digest || r.Release.Text != nil {
			t.Errorf("the run has the release %+v", r.Release)
		}
		m.releases("spring", nil)
		c = m.restart(t)
		m.beatReleases("h01", "h02", "h03")
		m.answer("h01", r, message.Prepare, message.Failed)
		m.answer("h02", r, message.Prepare, message.Failed)
		m.answer("h03", r, message.Prepare, message.Failed)
		full, err := c.Find(t.Context(), r.ID)
		if err != nil || !full.Finished() || string(full.Release.Text) != string(spring.Text) {
			t.Fatalf("the run is %s with the release %+v, %v", full.Phase, full.Release, err)
		}
		again := start
		again.RetryOf = r.ID
		if _, err := c.Start(t.Context(), "test", again); err != nil {
			t.Fatal(err)
		}
		opened, prepared := m.pins()
		if len(opened) != 2 || !same(opened[0], spring) || !same(opened[1], spring) || !slices.Equal(prepared, []string{spring.Ref().String(), spring.Ref().String()}) {
			t.Errorf("the log has %v, %q", opened, prepared)
		}
		listed, err := c.Runs(t.Context(), v1.RunFilter{})
		if err != nil || len(listed) != 2 || listed[1].Release == nil || listed[1].Release.Text != nil {
			t.Errorf("the list has %+v, %v", listed, err)
		}
	})
}

// TestRunWithoutRelease checks that a run without a release has none on the log.
func TestRunWithoutRelease(t *testing.T) {
	t.Parallel()
	toSpring(t, func(t *testing.T, m *memory, c *Controller, _ release.Pin) {
		if r, err := c.Start(t.Context(), "test", start); err != nil || r.Release != nil {
			t.Fatalf("%+v, %v", r.Release, err)
		}
		if strings.Contains(strings.Join(m.events("opened"), ""), "release") {
			t.Error("the log names a release")
		}
		if _, prepared := m.pins(); prepared[0] != "" {
			t.Errorf("prepare has %q", prepared[0])
		}
	})
}

// TestUnfitHosts checks which hosts a run with a release leaves out, and why, and that nothing begins
// when none is left.
func TestUnfitHosts(t *testing.T) {
	t.Parallel()
	toSpring(t, func(t *testing.T, m *memory, c *Controller, _ release.Pin) {
		m.beat("old")
		m.Alive("images", message.Alive{Application: "app", Releases: []release.Kind{release.OfImages}})
		m.reports("h02", report.Versions, message.EncodeVersions(map[string]string{"base": "2.1"}))
		m.reports("h03", report.Versions, message.EncodeVersions(map[string]string{"kernel": "6"}))
		synctest.Wait()
		want := map[string]string{
			"old":    "its agent cannot carry out releases; upgrade the agent",
			"images": "it carries out releases of images, and the release is of data",
			"h02":    "its base is 2.1, which is newer than 2.0; the release is not for downgrades",
			"h03":    "it reports no version of base; the release requires >= 1, < 2",
		}
		check := func(what string, hosts []v1.RunHost) {
			left := map[string]string{}
			for _, h := range hosts {
				if h.Stage == "" {
					left[h.Hostname] = h.Note
				}
			}
			for host, why := range want {
				if left[host] != why {
					t.Errorf("%s leaves out %s: %q, not %q", what, host, left[host], why)
				}
			}
			if len(left) != len(want) {
				t.Errorf("%s leaves out %v", what, left)
			}
		}
		p, err := c.Preflight(t.Context(), "test", startSpring)
		if err != nil || p.Run == nil || p.Run.Release == nil || p.Run.Release.Name != "spring" {
			t.Fatalf("the preflight is %+v, %v", p, err)
		}
		check("the preflight", p.Run.Hosts)
		only := startSpring
		only.Hosts = []string{"h02", "old"}
		_, err = c.Start(t.Context(), "test", only)
		if refused, is := errors.AsType[*run.Refused](err); !is || refused.Message != "the rollout and release spring leave out every one of 2 hosts; the first is h02: "+want["h02"] {
			t.Errorf("a start of hosts that do not fit is answered %v", err)
		}
		r, err := c.Start(t.Context(), "test", startSpring)
		if err != nil {
			t.Fatal(err)
		}
		check("the run", r.Hosts)
	})
}

// TestWithdrawnRelease checks that no run is opened to a release that is withdrawn, and that the run
// that installs it asks no further host, while the host under way finishes.
func TestWithdrawnRelease(t *testing.T) {
	t.Parallel()
	toSpring(t, func(t *testing.T, m *memory, c *Controller, _ release.Pin) {
		r, err := c.Start(t.Context(), "test", startSpring)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"h01", "h02", "h03"} {
			m.reply(host, r.ID, message.Prepare)
		}
		asked := len(m.upgrades())
		withdrawn := springOf()
		withdrawn.Withdrawn = &release.Withdrawn{Reason: "loses routes", By: "eva", At: time.Now()}
		m.releases("spring", &withdrawn)
		full, err := c.Find(t.Context(), r.ID)
		if err != nil || full.Finished() || full.Aborted != "by eva: release spring is withdrawn: loses routes" {
			t.Fatalf("the run is %s, aborted %q, %v", full.Phase, full.Aborted, err)
		}
		m.reply("h01", r.ID, message.Upgrade)
		full, err = c.Find(t.Context(), r.ID)
		if err != nil || full.Result != string(run.IsAborted) || full.Reason != "aborted by eva: release spring is withdrawn: loses routes" {
			t.Errorf("the run has ended %s: %s, %v", full.Result, full.Reason, err)
		}
		var got []string
		for _, h := range full.Hosts {
			got = append(got, h.Hostname+" "+h.Status)
		}
		if want := "h01 upgraded h02 skipped h03 skipped"; asked != 1 || len(m.upgrades()) != 1 || strings.Join(got, " ") != want {
			t.Errorf("%d hosts were asked, then %d: %v", asked, len(m.upgrades()), got)
		}
		config := *m.config
		config.Target = release.Target{Releases: map[string]string{"os": "spring"}}
		m.declare(store.Seen{Object: theConfig, Config: &config})
		shown, err := c.Snapshot(t.Context())
		if w := shown.Situation.WaitingFor; err != nil || w == nil || w.Detail != "a release: release spring is withdrawn, by eva: loses routes; name another one" {
			t.Errorf("while no window is open it waits for %+v, %v", w, err)
		}
		again := start
		again.RetryOf = r.ID
		for what, request := range map[string]v1.Start{"a start": startSpring, "a retry": again} {
			_, err := c.Start(t.Context(), "test", request)
			if refused, is := errors.AsType[*run.Refused](err); !is || !strings.Contains(refused.Message, "spring is withdrawn") || !strings.Contains(refused.Message, "eva") {
				t.Errorf("%s is answered %v", what, err)
			}
		}
		if _, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test", Release: "autumn"}); err == nil || !strings.Contains(err.Error(), "there is no release autumn") {
			t.Errorf("a start to a release that there is not is answered %v", err)
		}
	})
}

// TestReleaseOfEnvironment checks to which release the run of a window goes: to the one that is named
// when it is opened, or to packages as of some time, and that none is opened while that is withdrawn.
func TestReleaseOfEnvironment(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		goes release.Target
		kind release.Kind
		want string
		idle string
	}{
		"named":     {release.Target{Releases: map[string]string{"os": "spring"}}, release.OfData, "spring", ""},
		"followed":  {release.Target{Follow: &release.Follow{Age: "1d"}}, release.OfPackages, "all-20000102", ""},
		"withdrawn": {release.Target{Releases: map[string]string{"os": "autumn"}}, release.OfData, "", "a release: release autumn is withdrawn, by eva: too early; name another one"},
		"none fits": {
			release.Target{Releases: map[string]string{"os": "spring"}},
			release.OfImages, "",
			"nobody: the rollout and release spring leave out every one of 1 host; the first is h01: it carries out releases of images, and the release is of data",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(2 * day)
				m := newMemory()
				config := always
				config.Target = c.goes
				m.config = &config
				m.versions["h01"] = message.EncodeVersions(map[string]string{"base": "1.4"})
				spring, autumn := springOf(), springOf()
				autumn.Withdrawn = &release.Withdrawn{Reason: "too early", By: "eva"}
				m.releases("spring", &spring)
				m.releases("autumn", &autumn)
				controller, _ := m.control(t)
				m.Alive("h01", message.Alive{Application: "app", Releases: []release.Kind{c.kind}})
				time.Sleep(quiet)
				synctest.Wait()
				opened, _ := m.pins()
				if c.want == "" {
					shown, err := controller.Snapshot(t.Context())
					if err != nil || len(opened) != 0 || shown.Situation.WaitingFor == nil || shown.Situation.WaitingFor.Detail != c.idle {
						t.Errorf("%d runs were opened; it waits for %+v, %v", len(opened), shown.Situation.WaitingFor, err)
					}
					return
				}
				if len(opened) != 1 || opened[0].Name != c.want {
					t.Errorf("opened %+v", opened)
				}
			})
		})
	}
}

// TestRunsThatGoOnKeepTheirRelease checks that an environment that follows goes on to the release of its
// first run until all stages are done, and begins with the first stage when it goes to another one.
func TestRunsThatGoOnKeepTheirRelease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * day)
		m := newMemory()
		m.config.Target = release.Target{Follow: &release.Follow{Age: "1d"}}
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}}, {Name: "rest"}}}
		c, _ := m.control(t)
		for _, host := range []string{"h01", "h02"} {
			m.Alive(host, message.Alive{Application: "app", Releases: []release.Kind{release.OfPackages}})
		}
		synctest.Wait()
		r := m.until(t, c, "canary")
		m.reply("h01", r.ID, message.Prepare)
		m.reply("h01", r.ID, message.Upgrade)
		time.Sleep(time.Hour)
		for _, host := range []string{"h01", "h02"} {
			m.Alive(host, message.Alive{Application: "app", Releases: []release.Kind{release.OfPackages}})
		}
		synctest.Wait()
		if _, err := c.Start(t.Context(), "test", start); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		opened, _ := m.pins()
		if len(opened) != 2 || !same(opened[0], opened[1]) || opened[0].Name != "all-20000102" {
			t.Fatalf("opened %+v", opened)
		}
		if last := m.events(`"opened"`)[1]; !strings.Contains(last, `"members":["h02"]`) {
			t.Errorf("the second run is %s", last)
		}
	})
}
