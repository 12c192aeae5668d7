package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/oracle"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// mostEnvironments is how many environments a seed may have besides default.
const mostEnvironments = 4

// drawEnvironments declares the environments of a third of the seeds.
func (w *World) drawEnvironments() {
	if !w.rng.chance("environments", 1.0/3) {
		return
	}
	w.environments = 1 + w.rng.n("how many environments", mostEnvironments)
	w.count("seeds with environments")
	w.oracle.Grouped()
	w.drawOrders()
	for n := range w.environments {
		w.changeEnvironment(environmentNamed(n))
	}
}

// drawOrders has some of the environments come after others in half of the seeds. That does not change
// within a seed, so that the oracle knows it.
func (w *World) drawOrders() {
	w.orders = map[string]*v1.After{}
	if !w.rng.chance("order of environments", 0.5) {
		return
	}
	w.inLine = w.rng.chance("environments in line", 0.5)
	for n := range w.environments {
		if !w.inLine && !w.rng.chance("environment has an order", 0.6) || w.inLine && n == 0 {
			continue
		}
		before, onLog := v1.DefaultEnvironment, ""
		if n > 0 && (w.inLine || w.rng.chance("order names an environment", 0.7)) {
			before = environmentNamed(n - 1)
			onLog = before
		}
		soak := one(w.rng, "soak of an environment", time.Duration(0), 30*time.Second, 2*time.Minute, 5*time.Minute)
		w.orders[environmentNamed(n)] = &v1.After{Environments: []string{before}, Soak: rollout.SpanOf(soak)}
		w.oracle.Order(environmentNamed(n), oracle.Order{After: []string{onLog}, Soak: soak})
		w.count("environments that come after another")
	}
}

// drawInLine draws an environment of those that go one after the other: each has one host, a long window
// and nothing that keeps a run from completing, so that the next one waits for it to complete and to soak.
func (w *World) drawInLine(name string) v1.Environment {
	var n int
	_, err := fmt.Sscanf(name, "e%d", &n)
	w.must(err)
	windows := w.drawConfig().MaintenanceWindows[:1]
	windows[0].StartTime, windows[0].Duration = fmt.Sprintf("00:%02d", 1+w.rng.n("window in line", 3)), "30m"
	return v1.Environment{
		Match: v1.Match{Hosts: []string{fmt.Sprintf("h%02d", n)}}, After: w.orders[name], Rollout: &v1.Rollout{RetryAfter: "1m"}, MaintenanceWindows: windows,
	}
}

// drawStart draws what an operator starts in addition to its bounds: a run until a stage, which the rollout
// may not have, some hosts of an environment, or all of them in spite of the order of environments.
func (w *World) drawStart(start v1.Start) v1.Start {
	if start.RetryOf == 0 && w.rng.chance("operator starts until a stage", 0.3) {
		start.Until = one(w.rng, "operator until", "first", "s0", "s0", "s1", "s1", "s2", "rest", "all")
	}
	if len(w.releases) > 0 && w.rng.chance("operator names a release", 0.4) {
		start.Release = one(w.rng, "operator release", w.releases...)
	}
	if len(w.orders) == 0 {
		return start
	}
	if w.rng.chance("operator overrides the order", 0.3) {
		start.OverrideAfter = "now"
	}
	if start.RetryOf == 0 && start.Until == "" && w.rng.chance("operator chooses hosts", 0.2) {
		start.Hosts = []string{w.inOrder[w.rng.n("chosen host", len(w.inOrder))].name}
	}
	return start
}

func environmentNamed(n int) string { return fmt.Sprintf("e%d", n+1) }

// anEnvironment draws the name of an environment, which may not be declared; empty names none.
func (w *World) anEnvironment(purpose string) string {
	if w.environments == 0 || w.rng.chance(purpose+" names none", 0.3) {
		return ""
	}
	if n := w.rng.n(purpose+" environment", w.environments+1); n > 0 {
		return environmentNamed(n - 1)
	}
	return v1.DefaultEnvironment
}

// changeEnvironment writes an environment anew.
func (w *World) changeEnvironment(name string) {
	d := w.rng
	e := v1.Environment{Match: w.drawMatch("match of " + name), After: w.orders[name]}
	if d.chance("windows of "+name, 0.7) {
		e.MaintenanceWindows = w.drawConfig().MaintenanceWindows
	}
	if d.chance("rollout of "+name, 0.5) {
		e.Rollout = w.drawRollout("rollout of " + name)
	}
	e.Target = w.drawOfEnvironment("environment", 0.3)
	if w.inLine {
		e = w.drawInLine(name)
	}
	w.setEnvironment(name, &e)
	w.count("environments written")
	windows := e.MaintenanceWindows
	if windows == nil {
		windows = w.tenants
	}
	w.announce(name, windows)
}

// withdraw tells the oracle that an environment is written anew or deleted.
func (w *World) withdraw(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.editions[name]++
	w.oracle.Regrouped(name, time.Now())
}

// drawMatch draws what an environment matches: hosts that others match, too, or none.
func (w *World) drawMatch(purpose string) v1.Match {
	hosts := []string{"h01", "h02", "h03", "h04"}
	return one(w.rng, purpose,
		v1.Match{Hosts: hosts[:1]}, v1.Match{Hosts: hosts[1:2]}, v1.Match{Hosts: hosts[2:]},
		v1.Match{Labels: map[string]string{"ring": "0"}}, v1.Match{Labels: map[string]string{"ring": "1"}}, v1.Match{Labels: map[string]string{"ring": "2"}},
		v1.Match{Roles: []string{"web"}}, v1.Match{Roles: []string{"db"}})
}

// setEnvironment writes an environment; nil deletes it.
func (w *World) setEnvironment(name string, e *v1.Environment) {
	ctx := context.Background()
	_, base, err := w.store.Environment(ctx, tenant, name)
	switch {
	case e != nil:
		_, err = w.store.PutEnvironment(ctx, tenant, name, v1.Kept[v1.Environment]{Value: *e}, base)
	case err == nil:
		_, err = w.store.DeleteEnvironment(ctx, tenant, name, base)
	}
	if !errors.Is(err, store.ErrNotFound) {
		w.must(err)
	}
}

// regroup changes which hosts an environment has: it is written anew or deleted, or the labels of a
// host change, which its next worker tells.
func (w *World) regroup() {
	if w.environments == 0 {
		return
	}
	name := environmentNamed(w.rng.n("environment that changes", w.environments))
	switch one(w.rng, "operator regroups", "change", "delete", "label", "label") {
	case "change":
		w.withdraw(name)
		w.changeEnvironment(name)
	case "delete":
		w.withdraw(name)
		w.setEnvironment(name, nil)
		w.count("environments deleted")
	case "label":
		m := w.inOrder[w.rng.n("host that is labeled", len(w.inOrder))]
		w.mu.Lock()
		m.labels = map[string]string{"ring": one(w.rng, "label", "0", "1", "2")}
		w.oracle.Relabeled()
		w.mu.Unlock()
		w.count("labels changed")
	}
}

// labelsOf returns the labels of a machine.
func (w *World) labelsOf(m *machine) map[string]string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return m.labels
}

// underWay returns the deadline of that run under way that may last longest.
func (w *World) underWay() (last oracle.Deadline, of string, some bool) {
	for _, name := range w.oracle.Environments() {
		due, under := w.oracle.In(name).UnderWay()
		if under && (!some || due.Over.Add(due.Rest).After(last.Over.Add(last.Rest))) {
			last, of, some = due, name, true
		}
	}
	return last, of, some
}
