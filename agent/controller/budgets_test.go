package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// racked is a tenant whose four hosts are in two racks, with a rollout that upgrades all at once
// and leaves out the hosts of role aside, and a budget of one host in each rack.
func racked() *memory {
	m := newMemory("h01", "h02", "h03", "h04")
	m.rollout = &v1.Rollout{Stages: []v1.Stage{{Name: "all", MaxUnavailable: "100%"}}, Exempt: &v1.Match{Roles: []string{"aside"}}}
	m.budget("racks", &v1.Budget{Per: "rack", MaxUnavailable: "1"})
	return m
}

// budget writes a disruption budget; nil deletes it.
func (m *memory) budget(name string, b *v1.Budget) {
	_, base, err := m.Budget(context.Background(), "acme", name)
	if b != nil {
		_, err = m.PutBudget(context.Background(), "acme", name, v1.Kept[v1.Budget]{Value: *b}, base)
	} else if err == nil {
		_, err = m.DeleteBudget(context.Background(), "acme", name, base)
	}
	must(err)
}

// beatRacks has hosts tell their racks: h01 and h02 are in r1, the others in r2; h04 is aside.
func (m *memory) beatRacks(hosts ...string) {
	for _, name := range hosts {
		a := message.Alive{Application: "app", Labels: map[string]string{"rack": "r1"}}
		if name == "h03" || name == "h04" {
			a.Labels["rack"] = "r2"
		}
		if name == "h04" {
			a.Role = "aside"
		}
		m.Alive(name, a)
	}
	synctest.Wait()
}

func (m *memory) beginRacks(t *testing.T) (*Controller, v1.Run) {
	t.Helper()
	c, _ := m.control(t)
	m.beatRacks("h01", "h02", "h03", "h04")
	r, err := c.Start(t.Context(), "test", start)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"h01", "h02", "h03"} {
		m.reply(host, r.ID, message.Prepare)
	}
	return c, r
}

// TestBudget has a run keep a budget that is edited under it, also over a restart of the site.
func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := racked()
		c, r := m.beginRacks(t)
		if p, err := c.Preflight(t.Context(), "test", start); err != nil || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0].Text, "stage all lets 3 hosts leave service at once, and disruption budget racks lets 1 of 2 hosts with rack=r1") {
			t.Errorf("preflight warns of %+v, %v", p.Warnings, err)
		}
		upgrades := func(when string, want int) {
			t.Helper()
			if got := len(m.upgrades()); got != want {
				t.Fatalf("%s %d hosts are upgraded, want %d: the log ends with %s", when, got, want, m.last())
			}
		}
		opened := m.events(`"opened"`)[0]
		if want := `"cells":[{"budget":"racks","label":"rack","value":"r1","max-unavailable":1,"hosts":["h01","h02"]},{"budget":"racks","label":"rack","value":"r2","max-unavailable":1,"hosts":["h03"]}]`; !strings.Contains(opened, want) {
			t.Errorf("the run is opened with %s", opened)
		}
		upgrades("at first", 2)
		if w := m.waiting(t, c, r.ID); w.What != "budget" || !strings.Contains(w.Detail, "budget racks, rack r1 (1 of at most 1 out of service), and so for h01 to answer upgrade") {
			t.Errorf("the run waits for %+v", w)
		}
		state, err := c.State(t.Context())
		if got := fmt.Sprint(state.Budgets); err != nil || got != "[{racks rack r1 1 1 [h01]} {racks rack r2 1 1 [h03]}]" {
			t.Errorf("the state shows %s, %v", got, err)
		}
		if f, err := c.Figures(t.Context()); err != nil || len(f.Budgets) != 2 || f.Budgets[0].Out != 1 {
			t.Errorf("the figures have %+v, %v", f.Budgets, err)
		}
		c = m.restart(t)
		m.beatRacks("h01", "h02", "h03", "h04")
		time.Sleep(time.Minute)
		synctest.Wait()
		upgrades("after a restart", 2)
		m.budget("fleet", &v1.Budget{MaxUnavailable: "1"})
		m.budget("racks", nil)
		synctest.Wait()
		upgrades("while two hosts are out of service of a fleet that allows one", 2)
		if got := m.last(); !strings.Contains(got, `"budgeted"`) || strings.Contains(got, "racks") || !strings.Contains(got, `"max-unavailable":1,"hosts":["h01","h02","h03"]`) {
			t.Errorf("the log ends with %s", got)
		}
		m.reply("h03", r.ID, message.Upgrade)
		upgrades("while one host is out of service", 2)
		m.declare(store.Seen{Object: store.Object{Kind: store.Budget, Name: "fleet"}, Err: store.ErrDamaged})
		m.reply("h01", r.ID, message.Upgrade)
		upgrades("while the budget cannot be read", 2)
		if w := m.waiting(t, c, r.ID); !strings.Contains(w.Detail, "disruption budget fleet cannot be read") {
			t.Errorf("the run waits for %+v", w)
		}
		m.budget("fleet", &v1.Budget{MaxUnavailable: "1"})
		synctest.Wait()
		upgrades("after the repair", 3)
	})
}

// TestBudgetNeighbour has a host that the rollout leaves out fall silent during a run: it takes the
// place of its rack until a person releases it, also in the next run.
func TestBudgetNeighbour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := racked()
		m.rollout.Paused = true
		c, r := m.beginRacks(t)
		for range 12 {
			time.Sleep(message.Heartbeat)
			m.beatRacks("h01", "h02", "h03")
		}
		if want := `{"event":"silent","hosts":["h04"],"cells":[{"budget":"racks","label":"rack","value":"r2","max-unavailable":1,"hosts":["h04"]}]}`; m.last() != want {
			t.Fatalf("h04 is silent, and the log ends with %s", m.last())
		}
		m.rollout = &v1.Rollout{Stages: m.rollout.Stages, Exempt: m.rollout.Exempt}
		m.write()
		synctest.Wait()
		if got := m.upgrades(); len(got) != 1 || !strings.Contains(got[0], "h01") {
			t.Errorf("h04 has the place of rack r2, and the log has %s", got)
		}
		m.reply("h01", r.ID, message.Upgrade)
		m.reply("h02", r.ID, message.Upgrade)
		if w := m.waiting(t, c, r.ID); !strings.Contains(w.Detail, "rack r2 (1 of at most 1 out of service), and so for h04 (it is silent) to recover, be released or be deleted") || len(w.Hosts) != 1 {
			t.Errorf("the run waits for %+v", w)
		}
		m.beatRacks("h04")
		if !strings.Contains(m.last(), `"host":"h03"`) {
			t.Errorf("h04 is heard of, and the log ends with %s", m.last())
		}
	})
}
