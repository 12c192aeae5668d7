package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// inShop is an environment of the hosts of a shop, with a window each night.
func inShop(city, zone string) v1.Environment {
	e := v1.Environment{Match: v1.Match{Labels: map[string]string{"shop": city}}}
	if zone != "" {
		e.MaintenanceWindows = []v1.MaintenanceWindow{{
			DaysOfWeek: "Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday", StartTime: "02:00", Timezone: zone, Duration: "4h",
		}}
	}
	return e
}

// shops is a tenant with hosts in some shops; "" is none. Each shop is an environment.
type shops struct {
	*memory
	t  *testing.T
	of map[string]string
}

func newShops(t *testing.T, of map[string]string) *shops {
	t.Helper()
	m := &shops{newMemory(), t, of}
	m.rollout = &v1.Rollout{Timeouts: &v1.CommandTimeouts{Prepare: "3h", Upgrade: "3h"}}
	for host, city := range of {
		must(m.PutHost(t.Context(), log.Token(host), store.Host{Tenant: "acme", Name: host, Application: "app", Labels: m.labels(city)}))
	}
	return m
}

func (m *shops) labels(city string) map[string]string {
	if city == "" {
		return nil
	}
	return map[string]string{"shop": city}
}

// beat has all hosts send a heartbeat.
func (m *shops) beat() {
	for host, city := range m.of {
		m.Alive(host, message.Alive{Application: "app", Labels: m.labels(city)})
	}
	synctest.Wait()
}

// pass lets time pass while all hosts send heartbeats.
func (m *shops) pass(span time.Duration) {
	for ; span > 0; span -= message.Heartbeat {
		time.Sleep(min(span, message.Heartbeat))
		m.beat()
	}
}

// declareShop declares an environment.
func (m *shops) declareShop(name string, e *v1.Environment) {
	m.declare(store.Seen{Object: store.Object{Kind: store.Environment, Name: name}, Environment: e})
}

// runs returns the runs by environment, newest first.
func (m *shops) runs(c *Controller) map[string][]v1.Run {
	m.t.Helper()
	all, err := c.Runs(m.t.Context(), v1.RunFilter{})
	if err != nil {
		m.t.Fatal(err)
	}
	by := map[string][]v1.Run{}
	for _, r := range all {
		if r, err = c.Find(m.t.Context(), r.ID); err != nil {
			m.t.Fatal(err)
		}
		by[r.Environment] = append(by[r.Environment], r)
	}
	return by
}

// only returns the only run of an environment.
func (m *shops) only(c *Controller, environment string) v1.Run {
	m.t.Helper()
	all := m.runs(c)[environment]
	if len(all) != 1 {
		m.t.Fatalf("environment %s has %d runs", nameOf(environment), len(all))
	}
	return all[0]
}

func hostsOf(r v1.Run) (names []string) {
	for _, h := range r.Hosts {
		names = append(names, h.Hostname)
	}
	return names
}

// TestTwoEnvironments plays two shops with windows in two zones: their runs overlap, the
// controller is killed between, one is aborted and the other completes. Both are in the history,
// and each of their news is told once.
func TestTwoEnvironments(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "b2": "berlin", "l1": "lisbon", "l2": "lisbon", "d1": ""})
		m.news = newShelf()
		c, _ := m.control(t)
		m.beat()
		berlin, lisbon := inShop("berlin", "Europe/Berlin"), inShop("lisbon", "Europe/Lisbon")
		m.declareShop("berlin", &berlin)
		m.declareShop("lisbon", &lisbon)
		m.pass(time.Hour + time.Minute) // A bubble begins at midnight UTC.
		first := m.only(c, "berlin")
		if hosts := hostsOf(first); !slices.Equal(hosts, []string{"b1", "b2"}) {
			t.Errorf("the run of berlin has %q", hosts)
		}
		m.reply("b1", first.ID, message.Prepare)
		m.reply("b2", first.ID, message.Prepare)
		m.pass(time.Hour)
		second := m.only(c, "lisbon")
		if hosts := hostsOf(second); !slices.Equal(hosts, []string{"l1", "l2"}) {
			t.Errorf("the run of lisbon has %q", hosts)
		}
		m.reply("l1", second.ID, message.Prepare)
		c = m.restart(t)
		m.beat()
		m.reply("l2", second.ID, message.Prepare)
		_, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Reason: "which one?"})
		if which, is := errors.AsType[*run.Ambiguous](err); !is || !strings.Contains(which.Message, fmt.Sprintf("run %d of berlin, run %d of lisbon", first.ID, second.ID)) {
			t.Errorf("an abort that names no run is answered %v", err)
		}
		name := "berlin"
		if r, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Environment: name, Reason: "shop is open", Now: true}); err != nil || r.ID != first.ID || r.Result != "aborted" {
			t.Errorf("the abort of berlin is answered %+v, %v", r, err)
		}
		for _, host := range []string{"l1", "l2"} {
			m.reply(host, second.ID, message.Upgrade)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if r := m.only(c, "lisbon"); r.Result != "completed" {
			t.Errorf("the run of lisbon is %+v", r)
		}
		m.pass(10 * time.Hour)
		c = m.restart(t)
		m.beat()
		var kept []string
		must(m.Runs(t.Context(), "acme", func(r v1.Run) bool {
			kept = append(kept, r.Environment+" "+r.Result)
			return true
		}))
		slices.Sort(kept)
		if !slices.Equal(kept, []string{"berlin aborted", "lisbon completed"}) {
			t.Errorf("the history has %q", kept)
		}
		told := map[string]int{}
		for _, n := range m.news.kept() {
			if n.Data.Run != 0 {
				told[fmt.Sprint(n.Type, " ", n.Data.Run)]++
			}
		}
		for _, n := range m.news.kept() {
			want := map[uint64]string{first.ID: "berlin", second.ID: "lisbon"}[n.Data.Run]
			if n.Data.Run != 0 && (n.Data.Environment != want || !strings.Contains(n.Data.Text, "of environment "+want+" of tenant acme")) {
				t.Errorf("it is told of environment %q, want %s: %s", n.Data.Environment, want, n.Data.Text)
			}
		}
		for _, r := range []v1.Run{first, second} {
			for _, kind := range []string{v1.NewsRunOpened, v1.NewsRunFinished} {
				if n := told[fmt.Sprint(kind, " ", r.ID)]; n != 1 {
					t.Errorf("%s of run %d is told %d times", kind, r.ID, n)
				}
			}
		}
		if all := m.runs(c); len(all[""]) != 0 || len(all) != 2 {
			t.Errorf("the environments with runs are %d, default has %d", len(all), len(all[""]))
		}
	})
}

// TestOutcomeOfAnotherRun checks that the outcome of a task reaches its run while other runs are
// under way, and that each run has its own check of the fleet.
func TestOutcomeOfAnotherRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "l1": "lisbon", "m1": "madrid"})
		m.rollout = &v1.Rollout{Checks: &v1.RolloutChecks{
			BeforeHost: []v1.Check{{Type: "exec", Script: "ready"}}, Fleet: []v1.Check{{Type: "exec", Script: "calm"}},
		}}
		m.site = func(_ context.Context, task message.Task) message.Outcome {
			time.Sleep(time.Second)
			return task.Outcome(true, "")
		}
		m.obedient = true
		c, _ := m.control(t)
		m.beat()
		for _, city := range []string{"berlin", "lisbon", "madrid"} {
			e := inShop(city, "UTC")
			m.declareShop(city, &e)
		}
		m.pass(2*time.Hour + 10*time.Second)
		for range 30 {
			for _, task := range m.tasks() {
				m.Outcome(task.Host, task.Outcome(true, ""))
			}
			m.beat()
			time.Sleep(time.Second)
		}
		for _, city := range []string{"berlin", "lisbon", "madrid"} {
			if r := m.only(c, city); r.Result != "completed" {
				t.Errorf("the run of %s is %s, %+v", city, r.Result, r.WaitingFor)
			}
		}
	})
}

// TestMove checks that a host whose labels have changed stays in the run under way and is in the
// next one of its new environment. A rollback of the former run leaves it alone, and says why.
func TestMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "b2": "berlin", "l1": "lisbon"})
		c, _ := m.control(t)
		m.beat()
		berlin, lisbon := inShop("berlin", "Europe/Berlin"), inShop("lisbon", "Europe/Lisbon")
		m.declareShop("berlin", &berlin)
		m.declareShop("lisbon", &lisbon)
		m.pass(time.Hour + time.Minute)
		first := m.only(c, "berlin")
		m.of["b2"] = "lisbon"
		m.pass(time.Hour)
		second := m.only(c, "lisbon")
		if hosts := hostsOf(second); !slices.Equal(hosts, []string{"l1"}) {
			t.Errorf("while b2 is in the run of berlin, the run of lisbon has %q", hosts)
		}
		m.reply("l1", second.ID, message.Prepare)
		m.reply("l1", second.ID, message.Upgrade)
		for _, host := range []string{"b1", "b2"} {
			m.reply(host, first.ID, message.Prepare)
		}
		for _, host := range []string{"b1", "b2"} {
			m.reply(host, first.ID, message.Upgrade)
		}
		if r := m.only(c, "berlin"); r.Result != "completed" {
			t.Errorf("the run of berlin is %s", r.Result)
		}
		m.Alive("b1", message.Alive{Application: "app", Labels: m.labels("berlin"), Rollbacks: true})
		m.Alive("b2", message.Alive{Application: "app", Labels: m.labels("lisbon"), Rollbacks: true})
		synctest.Wait()
		back, err := c.Preflight(t.Context(), "test", v1.Start{Environment: "berlin", RollbackOf: first.ID, Reason: "a test"})
		if err != nil || back.Run == nil || !slices.ContainsFunc(back.Run.Hosts, func(h v1.RunHost) bool { return h.Hostname == "b2" && h.Note == "it is no longer in this environment" }) {
			t.Errorf("the rollback of the run of berlin would be %+v, %v", back.Run, err)
		}
		m.obedient = true
		m.pass(24 * time.Hour)
		for city, hosts := range map[string][]string{"berlin": {"b1"}, "lisbon": {"b2", "l1"}} {
			if all := m.runs(c)[city]; len(all) != 2 || !slices.Equal(hostsOf(all[0]), hosts) {
				t.Errorf("%s has %d runs, the last of %q", city, len(all), hostsOf(all[0]))
			}
		}
	})
}

// TestContestedHost checks that a host that two environments match is upgraded by nobody if it was in
// neither, also after a restart, and that it is once one lets go of it.
func TestContestedHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin"})
		m.config = &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}, {Name: "till"}}}
		m.obedient = true
		c, _ := m.control(t)
		berlin, tills := inShop("berlin", "Europe/Berlin"), v1.Environment{Match: v1.Match{Applications: []string{"till"}}}
		m.declareShop("berlin", &berlin)
		m.declareShop("tills", &tills)
		till := message.Alive{Application: "till", Labels: m.labels("berlin")}
		m.beat()
		m.Alive("b2", till)
		for range 2 * 60 {
			time.Sleep(time.Minute)
			m.beat()
			m.Alive("b2", till)
		}
		if hosts := hostsOf(m.only(c, "berlin")); !slices.Equal(hosts, []string{"b1"}) {
			t.Errorf("the run of berlin has %q", hosts)
		}
		c = m.restart(t)
		if h, _ := m.kept("b2"); !h.Unplaced || h.Environment != "" {
			t.Errorf("the store has %+v", h)
		}
		m.declareShop("tills", nil)
		for range 24 * 60 {
			time.Sleep(time.Minute)
			m.beat()
			m.Alive("b2", till)
		}
		if all := m.runs(c)["berlin"]; len(all) != 2 || !slices.Equal(hostsOf(all[0]), []string{"b1", "b2"}) {
			t.Errorf("once only berlin matches it, the %d runs of berlin end with %q", len(all), hostsOf(all[0]))
		}
	})
}

// TestCarried checks that an environment which has had no run for long does not keep a long log from
// being trimmed: what is known of it is told anew, and the next controller goes on with that.
func TestCarried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "l1": "lisbon"})
		m.obedient = true
		c, _ := m.control(t)
		berlin, lisbon := inShop("berlin", ""), inShop("lisbon", "")
		m.declareShop("berlin", &berlin)
		m.declareShop("lisbon", &lisbon)
		m.budget("shops", &v1.Budget{Per: "shop", MaxUnavailable: "1"})
		begin := func(name string) v1.Run {
			m.beat()
			time.Sleep(gracePeriod)
			r, err := c.Start(t.Context(), "test", startIn(name))
			if err != nil {
				t.Fatal(err)
			}
			m.pass(time.Minute)
			return r
		}
		begin("berlin")
		begin("lisbon")
		m.fill(carryAfter)
		begin("lisbon")
		m.pass(5 * time.Minute)
		carried := m.events(`"carried"`)
		if len(carried) != 2 || !strings.Contains(carried[0], `"budgets":"`) || !strings.Contains(carried[0], `"environment":"berlin"`) || !strings.Contains(carried[1], `"environment":"lisbon"`) {
			t.Fatalf("what is told anew is %q", carried)
		}
		if first, _ := m.trimmed(); first < carryAfter {
			t.Errorf("the log begins at %d", first)
		}
		c = m.restart(t)
		if r := begin("berlin"); r.Environment != "berlin" {
			t.Errorf("the next run of berlin is %+v", r)
		}
		if all := m.runs(c); len(all["berlin"]) != 2 || len(all["lisbon"]) != 2 || all["berlin"][0].Result != "completed" {
			t.Errorf("there are %d runs of berlin and %d of lisbon", len(all["berlin"]), len(all["lisbon"]))
		}
	})
}

// shared are two shops that share a disruption budget of one host; berlin has had its run.
func shared(t *testing.T) (*shops, *Controller) {
	t.Helper()
	m := newShops(t, map[string]string{"b1": "berlin", "b2": "berlin", "l1": "lisbon", "l2": "lisbon"})
	m.budget("fleet", &v1.Budget{MaxUnavailable: "1"})
	c, _ := m.control(t)
	m.beat()
	berlin, lisbon := inShop("berlin", ""), inShop("lisbon", "")
	m.declareShop("berlin", &berlin)
	m.declareShop("lisbon", &lisbon)
	first := m.begin(c, "berlin")
	for _, host := range []string{"b1", "b2"} {
		m.reply(host, first.ID, message.Prepare)
	}
	for _, host := range []string{"b1", "b2"} {
		m.reply(host, first.ID, message.Upgrade)
	}
	if r := m.only(c, "berlin"); r.Result != "completed" {
		t.Fatalf("the run of berlin is %s", r.Result)
	}
	return m, c
}

// begin starts a run of an environment.
func (m *shops) begin(c *Controller, name string) v1.Run {
	m.t.Helper()
	r, err := c.Start(m.t.Context(), "test", startIn(name))
	if err != nil {
		m.t.Fatal(err)
	}
	synctest.Wait()
	return r
}

// TestNeighbourOfAnotherEnvironment has a host fall silent whose environment has no run under way: it
// takes the place of the budget that it shares with a run of another environment, until it is heard
// of again, also over a restart.
func TestNeighbourOfAnotherEnvironment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c := shared(t)
		second := m.begin(c, "lisbon")
		delete(m.of, "b2")
		m.pass(5 * time.Minute)
		if want := `{"event":"silent","hosts":["b2"],"cells":[{"budget":"fleet","max-unavailable":1,"hosts":["b2"]}]}`; m.last() != want {
			t.Fatalf("b2 is silent, and the log ends with %s", m.last())
		}
		m.reply("l1", second.ID, message.Prepare)
		m.reply("l2", second.ID, message.Prepare)
		if got := len(m.upgrades()); got != 2 {
			t.Errorf("%d hosts are upgraded while b2 has the only place", got)
		}
		if w := m.waiting(t, c, second.ID); w.What != "budget" || !strings.Contains(w.Detail, "b2 (it is silent)") {
			t.Errorf("the run waits for %+v", w)
		}
		c = m.restart(t)
		m.of["b2"] = "berlin"
		m.beat()
		if got := m.upgrades(); len(got) != 3 || !strings.Contains(got[2], "l1") {
			t.Errorf("b2 is heard of, and the log has %s", got)
		}
		if f, err := c.Figures(t.Context()); err != nil || len(f.Budgets) != 1 || f.Budgets[0].Out != 1 {
			t.Errorf("the figures have %+v, %v", f.Budgets, err)
		}
	})
}

// TestBudgetThatCannotBeRead checks that a disruption budget which can no longer be read is shown while
// it counts, for the only run under way, which is not of the default environment.
func TestBudgetThatCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c := shared(t)
		second := m.begin(c, "lisbon")
		m.reply("l1", second.ID, message.Prepare)
		m.reply("l2", second.ID, message.Prepare)
		m.declare(store.Seen{Object: store.Object{Kind: store.Budget, Name: "fleet"}, Err: store.ErrDamaged})
		synctest.Wait()
		if f, err := c.Figures(t.Context()); err != nil || len(f.Budgets) != 1 || f.Budgets[0].Out != 1 {
			t.Errorf("the figures have %+v, %v", f.Budgets, err)
		}
	})
}

// TestSilentBeforeTheRun checks that a host of another environment that was silent before a run was
// opened is absent, and takes no place.
func TestSilentBeforeTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c := shared(t)
		delete(m.of, "b2")
		m.pass(5 * time.Minute)
		second := m.begin(c, "lisbon")
		m.pass(5 * time.Minute)
		m.reply("l1", second.ID, message.Prepare)
		m.reply("l2", second.ID, message.Prepare)
		if got := m.upgrades(); len(got) != 3 || len(m.events(`"silent"`)) > 0 {
			t.Errorf("the log has %s and %s", got, m.events(`"silent"`))
		}
	})
}

// TestBudgetEditedBetweenRuns has a budget declared while a host of one environment owes an answer:
// it counts in the run of another one that is opened next.
func TestBudgetEditedBetweenRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, c := shared(t)
		m.budget("fleet", nil)
		first := m.begin(c, "berlin")
		m.reply("b1", first.ID, message.Prepare)
		m.reply("b2", first.ID, message.Prepare)
		if _, err := c.Ask(t.Context(), "test", run.Abort, v1.Ask{Environment: "berlin", Reason: "shop is open", Now: true}); err != nil {
			t.Fatal(err)
		}
		m.budget("fleet", &v1.Budget{MaxUnavailable: "1"})
		synctest.Wait()
		upgrades := len(m.upgrades())
		second := m.begin(c, "lisbon")
		m.reply("l1", second.ID, message.Prepare)
		m.reply("l2", second.ID, message.Prepare)
		if w := m.waiting(t, c, second.ID); len(m.upgrades()) != upgrades || !strings.Contains(w.Detail, "b1 (it has not answered upgrade)") {
			t.Errorf("%d hosts of lisbon are upgraded beside b1, and the run waits for %+v", len(m.upgrades())-upgrades, w)
		}
	})
}

// startIn is start of a run of an environment, given by its name on the log.
func startIn(environment string) v1.Start {
	of := start
	of.Environment = nameOf(environment)
	return of
}
