package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// beatRollbacks has hosts say that they can roll back a run, and carry out releases of data.
func (m *memory) beatRollbacks(hosts ...string) {
	for _, name := range hosts {
		m.Alive(name, message.Alive{Application: "app", Rollbacks: true, Releases: []release.Kind{release.OfData}})
	}
	synctest.Wait()
}

// upgradeAll has the hosts of a run prepare, and then each upgrade in its turn.
func (m *memory) upgradeAll(r v1.Run, hosts ...string) {
	for _, host := range hosts {
		m.reply(host, r.ID, message.Prepare)
	}
	for _, host := range hosts {
		m.reply(host, r.ID, message.Upgrade)
	}
	synctest.Wait()
}

func whyRefused(err error) string {
	refused, is := errors.AsType[*run.Refused](err)
	if !is {
		return "not refused"
	}
	return refused.Message
}

// TestRollback checks a rollback: its prepare says what is rolled back, its members are the hosts that the run
// has changed and that can go back, and once all are back there is nothing to roll back.
func TestRollback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}}, {Name: "rest"}}}
		c, _ := m.control(t)
		m.beatRollbacks("h01", "h02")
		m.Alive("h03", message.Alive{Application: "app"})
		synctest.Wait()
		newest := v1.Start{Rollback: true, Reason: "it is slow"}
		if _, err := c.Start(t.Context(), "test", newest); whyRefused(err) != "no run has upgraded a host, so there is nothing to roll back" {
			t.Errorf("without a run: %v", err)
		}
		r, err := c.Start(t.Context(), "test", start)
		if err != nil {
			t.Fatal(err)
		}
		back := v1.Start{RollbackOf: r.ID, Reason: "it is slow"}
		if _, err := c.Start(t.Context(), "test", back); !strings.Contains(whyRefused(err), "is in progress; abort it first: osupgrade-agent abort") {
			t.Errorf("a run that is under way is rolled back: %v", err)
		}
		m.upgradeAll(r, "h01", "h02", "h03")
		if ended, err := c.Find(t.Context(), r.ID); err != nil || ended.Result != "completed" {
			t.Fatalf("the run is %s, %v", ended.Phase, err)
		}
		c = m.restart(t)
		m.beatRollbacks("h01", "h02")
		m.Alive("h03", message.Alive{Application: "app"})
		synctest.Wait()
		undo, err := c.Start(t.Context(), "test", newest)
		if err != nil || undo.RollbackOf != r.ID {
			t.Fatalf("the rollback is %+v, %v", undo, err)
		}
		opened := m.events(`"opened"`)[1]
		for _, want := range []string{`"members":["h02","h01"]`, `"exempt":[{"host":"h03","reason":"its agent cannot roll back; upgrade the agent"}]`, `"rollback-of"`} {
			if !strings.Contains(opened, want) {
				t.Errorf("the rollback is opened by %s, which has no %s", opened, want)
			}
		}
		var header string
		for _, record := range m.log.All() {
			if record.Kind == message.CommandAll {
				header = record.Rollback
			}
		}
		if want := (message.Interval{Since: r.ID, Of: r.ID}).String(); header != want {
			t.Errorf("its prepare rolls back %q, want %q", header, want)
		}
		m.upgradeAll(undo, "h02", "h01")
		retry := v1.Start{OverrideWindow: true, Reason: "again", RetryOf: undo.ID}
		if _, err := c.Start(t.Context(), "test", retry); !strings.Contains(whyRefused(err), fmt.Sprintf("to go on with the rollback: osupgrade-agent rollback %d --reason …", r.ID)) {
			t.Errorf("a retry of the rollback is answered with %v", err)
		}
		if ended, err := c.Find(t.Context(), undo.ID); err != nil || ended.Reason != "2 of 2 hosts rolled back" {
			t.Fatalf("the rollback has ended as %q, %v", ended.Reason, err)
		}
		if _, err := c.Start(t.Context(), "test", back); !strings.Contains(whyRefused(err), "nothing is left to roll back of run") {
			t.Errorf("hosts that are back are rolled back again: %v", err)
		}
		if refused, err := c.Preflight(t.Context(), "test", newest); err != nil || !strings.Contains(refused.Refused, "nothing is left to roll back of run") {
			t.Errorf("the rehearsal of a refused rollback says %+v, %v", refused, err)
		}
		if _, err := c.Start(t.Context(), "test", v1.Start{Rollback: true, Environment: "nope", Reason: "it is slow"}); err == nil || !strings.Contains(err.Error(), "there is no environment nope") {
			t.Errorf("in no environment: %v", err)
		}
		again, err := c.Preflight(t.Context(), "test", v1.Start{RollbackOf: undo.ID, Reason: "it was not that"})
		if err != nil || again.Refused != "" || again.Run == nil || len(again.Run.Stages) != 2 || again.Run.Stages[0].Name != "canary" {
			t.Errorf("the rollback of the rollback would be %+v, %v", again.Run, err)
		}
		forward, err := c.Start(t.Context(), "test", v1.Start{RollbackOf: undo.ID, Reason: "it was not that"})
		if err != nil {
			t.Fatal(err)
		}
		m.upgradeAll(forward, "h01", "h02")
		if after, err := c.Preflight(t.Context(), "test", newest); err != nil || after.Run == nil || after.Run.RollbackOf != forward.ID {
			t.Errorf("after it a rollback would be %+v, %v; want that of run %d", after, err, forward.ID)
		}
	})
}

// TestRollbackOfNewest checks which run a rollback means that names none: one of the environment that it
// names, and without one, of the only environment that has such runs.
func TestRollbackOfNewest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c, _ := m.control(t)
		m.declare(store.Seen{Object: store.Object{Kind: store.Environment, Name: "shops"}, Environment: &v1.Environment{Match: v1.Match{Hosts: []string{"h02"}}}})
		newest, ids := v1.Start{Rollback: true, Reason: "it is slow"}, map[string]uint64{}
		for _, of := range []struct{ environment, host string }{{"default", "h01"}, {"shops", "h02"}} {
			m.beatRollbacks("h01", "h02")
			request := start
			request.Environment = of.environment
			r, err := c.Start(t.Context(), "test", request)
			if err != nil {
				t.Fatal(err)
			}
			m.upgradeAll(r, of.host)
			ids[of.environment] = r.ID
			if of.environment == "shops" {
				break
			}
			if p, err := c.Preflight(t.Context(), "test", newest); err != nil || p.Run == nil || p.Run.RollbackOf != r.ID {
				t.Errorf("after one run the rollback would be %+v, %v", p, err)
			}
		}
		_, err := c.Start(t.Context(), "test", newest)
		if several, is := errors.AsType[*run.Ambiguous](err); !is || len(several.Choices) != 2 || !strings.Contains(several.Choices[0].Command, "rollback --environment shops") {
			t.Errorf("with runs of two environments: %v", err)
		}
		for environment, id := range ids {
			newest.Environment = environment
			if r, err := c.Start(t.Context(), "test", newest); err != nil || r.RollbackOf != id {
				t.Errorf("in %s the run is the rollback of %d, %v; want %d", environment, r.RollbackOf, err, id)
			}
		}
	})
}

// TestRolledBackByNoWindow checks that no window brings back a release that was rolled back, until somebody
// starts a run to it or the environment names another one.
func TestRolledBackByNoWindow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * day)
		m := newMemory()
		config := always
		config.Target = release.Target{Releases: map[string]string{"os": "spring"}}
		m.config = &config
		m.versions["h01"] = message.EncodeVersions(map[string]string{"base": "1.4"})
		spring, autumn := springOf(), springOf()
		autumn.Data = []byte(`{"a":2}`)
		m.releases("spring", &spring)
		m.releases("autumn", &autumn)
		c, _ := m.control(t)
		m.beatRollbacks("h01")
		time.Sleep(quiet)
		synctest.Wait()
		runs, err := c.Runs(t.Context(), v1.RunFilter{})
		if err != nil || len(runs) != 1 {
			t.Fatalf("%d runs, %v", len(runs), err)
		}
		m.upgradeAll(runs[0], "h01")
		undo, err := c.Start(t.Context(), "ann", v1.Start{RollbackOf: runs[0].ID, Reason: "it is slow"})
		if err != nil {
			t.Fatal(err)
		}
		m.upgradeAll(undo, "h01")
		time.Sleep(day)
		m.beatRollbacks("h01")
		time.Sleep(quiet)
		synctest.Wait()
		shown, err := c.Snapshot(t.Context())
		want := "nobody: release spring was rolled back by run"
		if w := shown.Situation.WaitingFor; err != nil || w == nil || !strings.HasPrefix(w.Detail, want) || !strings.Contains(w.Detail, "(ann: it is slow); name another release, or to have it again: osupgrade-agent start --release spring --override-window --reason …") {
			t.Errorf("the open window waits for %+v, %v", shown.Situation.WaitingFor, err)
		}
		for words, request := range map[string]v1.Start{
			"start --release spring --override-window":            {OverrideWindow: true, Reason: "test"},
			"start --release spring --host h01 --override-window": {OverrideWindow: true, Reason: "test", Hosts: []string{"h01"}},
		} {
			if _, err := c.Start(t.Context(), "ann", request); !strings.Contains(whyRefused(err), "(ann: it is slow); name another release, or to have it again: osupgrade-agent "+words+" --reason …") {
				t.Errorf("%s: a start that names no release: %v", words, err)
			}
			if request.Release = "spring"; len(request.Hosts) > 0 {
				continue
			}
			if named, err := c.Preflight(t.Context(), "ann", request); err != nil || named.Refused != "" || named.Run == nil || named.Run.Release == nil || named.Run.RollbackOf != 0 {
				t.Errorf("%s: a start that names it would be %+v, %v", words, named, err)
			}
		}
		if _, err := c.Start(t.Context(), "ann", v1.Start{RetryOf: undo.ID, Reason: "test"}); !strings.Contains(whyRefused(err), "to go on with the rollback: osupgrade-agent rollback ") {
			t.Errorf("a rollback is retried: %v", err)
		}
		config.Target = release.Target{Releases: map[string]string{"os": "autumn"}}
		m.declare(store.Seen{Object: theConfig, Config: &config})
		synctest.Wait()
		time.Sleep(quiet)
		synctest.Wait()
		if opened, _ := m.pins(); len(opened) != 3 || opened[2].Name != "autumn" {
			t.Errorf("opened %+v", opened)
		}
	})
}

// TestReleaseFromBefore checks that a run to the release from before the present one is a rollback.
func TestReleaseFromBefore(t *testing.T) {
	t.Parallel()
	toSpring(t, func(t *testing.T, m *memory, c *Controller, spring release.Pin) {
		autumn := springOf()
		autumn.Data = []byte(`{"a":2}`)
		m.releases("autumn", &autumn)
		m.beatRollbacks("h01", "h02", "h03")
		for _, name := range []string{"spring", "autumn"} {
			to := startSpring
			to.Release = name
			r, err := c.Start(t.Context(), "test", to)
			if err != nil || r.RollbackOf != 0 {
				t.Fatalf("%s: the run is the rollback of %d, %v", name, r.RollbackOf, err)
			}
			m.upgradeAll(r, "h01", "h02", "h03")
		}
		autumns, err := c.Runs(t.Context(), v1.RunFilter{})
		if err != nil {
			t.Fatal(err)
		}
		later := startSpring
		later.OverrideWindow = false
		next, err := c.Preflight(t.Context(), "test", later)
		if err != nil || !strings.HasPrefix(next.Refused, "no maintenance window") || next.Run == nil || next.Run.RollbackOf != autumns[0].ID {
			t.Errorf("a run that is refused now would be %+v, %q, %v", next.Run, next.Refused, err)
		}
		stale, err := ask(t.Context(), c, func(s *state) error {
			_, _, err := s.decideStart(s.standard(), s.Now(), "test", startSpring, choice{})
			return err
		})
		if err != nil || !errors.Is(stale, run.ErrNotReady) {
			t.Errorf("a start that was to go elsewhere a moment ago: %v, %v", stale, err)
		}
		back, err := c.Start(t.Context(), "test", startSpring)
		if err != nil || back.RollbackOf != autumns[0].ID || back.Release != nil {
			t.Errorf("the run is the rollback of %d with release %v, %v; want that of %d", back.RollbackOf, back.Release, err, autumns[0].ID)
		}
	})
}

// TestNoWayBackByName checks that a run to the release from before is an ordinary one once hosts have answered
// that they cannot prepare its rollback, unless the reason may pass by itself.
func TestNoWayBackByName(t *testing.T) {
	t.Parallel()
	for class, again := range map[message.Class]bool{"": false, message.Artifact: false, message.Repository: false, message.Transient: true} {
		toSpring(t, func(t *testing.T, m *memory, c *Controller, _ release.Pin) {
			hosts := []string{"h01", "h02", "h03"}
			autumn := springOf()
			autumn.Data = []byte(`{"a":2}`)
			m.releases("autumn", &autumn)
			goesTo := func(name string) v1.Run {
				t.Helper()
				m.beatRollbacks(hosts...)
				r, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "a test", Release: name})
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			m.upgradeAll(goesTo("spring"), hosts...)
			m.upgradeAll(goesTo("autumn"), hosts...)
			back := goesTo("spring")
			for _, name := range hosts {
				m.answers(name, back, message.Reply{Action: message.Prepare, Result: message.NotDone(message.Failed, class, "the old packages are gone")})
			}
			if ended := found(t, c, back.ID); ended.RollbackOf == 0 || ended.Result != "failed" {
				t.Fatalf("class %q: the rollback is %+v", class, ended)
			}
			c = m.restart(t)
			if next := goesTo("spring"); (next.RollbackOf != 0) != again || (next.Release == nil) != again {
				t.Errorf("class %q: the next run rolls back run %d, with release %v", class, next.RollbackOf, next.Release)
			}
		})
	}
}

// TestRollbackOutputs checks which outputs steps get in a rollback: an undo those of its own step and of the
// steps before it, also of one that has no undo; and a step that the rollback of the rollback does again those
// before it.
func TestRollbackOutputs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01")
		m.secrets = &box{}
		hook := func(script string) *v1.Hook { return &v1.Hook{Type: "exec", Script: script, On: "site"} }
		m.rollout = &v1.Rollout{Stages: []v1.Stage{
			{Name: "backup", Step: &v1.Step{Do: hook("backup"), Gives: []string{"COPY"}}},
			{Name: "migrate", Step: &v1.Step{Do: hook("migrate"), Undo: hook("back"), Gives: []string{"ID"}}},
			{Name: "all"},
			{Name: "report", Step: &v1.Step{Do: hook("report"), Undo: hook("withdraw"), Gives: []string{"ID"}}},
		}}
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			if task.Kind == message.Undo {
				return task.Outcome(true, "")
			}
			return gives(task, map[string]string{task.Gives[0]: task.Stage})
		}
		c, _ := m.control(t)
		m.beatRollbacks("h01")
		synctest.Wait()
		of, before := uint64(0), 0
		for _, want := range []map[string]map[string]string{
			{"backup": nil, "migrate": {"COPY": "backup"}, "report": {"COPY": "backup", "ID": "migrate"}},
			{"report": {"COPY": "backup", "ID": "report"}, "migrate": {"COPY": "backup", "ID": "migrate"}},
			{"migrate": {"COPY": "backup"}, "report": {"COPY": "backup", "ID": "migrate"}},
		} {
			r, err := c.Start(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "because", RollbackOf: of})
			if err != nil {
				t.Fatal(err)
			}
			m.upgradeAll(r, "h01")
			got := map[string]map[string]string{}
			for _, task := range m.siteTasks()[before:] {
				got[task.Stage] = task.Outputs
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("in the run that rolls back %d steps have the outputs %v, want %v", of, got, want)
			}
			of, before = r.ID, len(m.siteTasks())
		}
	})
}

// TestWindowToReleaseFromBefore checks that a window to the release from before the present one opens a
// rollback, goes on with it in the next window, and opens no run once all hosts are back.
func TestWindowToReleaseFromBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hosts := []string{"h01", "h02"}
		m := nightly(hosts...)
		m.rollout = &v1.Rollout{Timeouts: &v1.CommandTimeouts{Prepare: "3h", Upgrade: "3h"}, Stages: []v1.Stage{
			{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}}, {Name: "rest"},
		}}
		spring, autumn := springOf(), springOf()
		autumn.Data = []byte(`{"a":2}`)
		m.releases("spring", &spring)
		m.releases("autumn", &autumn)
		for _, name := range hosts {
			m.versions[name] = message.EncodeVersions(map[string]string{"base": "1.4"})
		}
		m.config.Target = release.Target{Releases: map[string]string{"os": "spring"}}
		c, _ := m.control(t)
		window := func(names string) v1.Run {
			t.Helper()
			config := *m.config
			config.Target = release.Target{Releases: map[string]string{"os": names}}
			m.declare(store.Seen{Object: theConfig, Config: &config})
			before := len(m.events(`"opened"`))
			for range 25 * 60 {
				m.beatRollbacks(hosts...)
				if len(m.events(`"opened"`)) > before {
					break
				}
				time.Sleep(time.Minute)
			}
			runs, err := c.Runs(t.Context(), v1.RunFilter{})
			if err != nil || len(runs) != before+1 {
				t.Fatalf("to %s: %d runs, %v", names, len(runs), err)
			}
			return runs[0]
		}
		end := func(r v1.Run) {
			t.Helper()
			if ended, err := c.Find(t.Context(), r.ID); err != nil || !ended.Finished() {
				t.Fatalf("run %d is %s: %v", r.ID, ended.Phase, err)
			}
		}
		m.upgradeAll(window("spring"), hosts...)
		autumns := window("autumn")
		m.upgradeAll(autumns, hosts...)
		end(autumns)
		back := window("spring")
		if back.RollbackOf != autumns.ID || back.Release != nil || back.Trigger != message.TriggerWindow {
			t.Fatalf("the window opens %+v, and not the rollback of run %d", back, autumns.ID)
		}
		if opened := m.events(`"opened"`); !strings.Contains(opened[2], `"members":["h02","h01"]`) {
			t.Errorf("it is opened by %s", opened[2])
		}
		for _, name := range hosts {
			m.reply(name, back.ID, message.Prepare)
		}
		m.reply("h02", back.ID, message.Upgrade)
		m.answer("h01", back, message.Upgrade, message.Failed)
		end(back)
		c = m.restart(t)
		again := window("spring")
		if again.RollbackOf != autumns.ID {
			t.Fatalf("the next window opens %+v", again)
		}
		m.upgradeAll(again, hosts...)
		end(again)
		if ordinary := window("spring"); ordinary.RollbackOf != 0 || ordinary.Release == nil {
			t.Errorf("once all hosts are back a window opens %+v", ordinary)
		}
	})
}
