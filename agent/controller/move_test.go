package controller

import (
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
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestAssigned checks that a host which somebody has moved is in the runs of that environment, also
// after a restart, and that it goes back after the run under way.
func TestAssigned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "b2": "berlin", "l1": "lisbon"})
		c, _ := m.control(t)
		m.beat()
		berlin, lisbon := inShop("berlin", "Europe/Berlin"), inShop("lisbon", "Europe/Lisbon")
		m.declareShop("berlin", &berlin)
		m.declareShop("lisbon", &lisbon)
		m.pass(time.Minute)
		if _, err := c.Move(t.Context(), "b9", "lisbon"); !errors.Is(err, run.ErrNoHost) {
			t.Errorf("an unknown host is moved: %v", err)
		}
		if _, err := c.Move(t.Context(), "b2", "porto"); err == nil || err.Error() != "there is no environment porto; there are: berlin, default, lisbon" {
			t.Errorf("a host is moved to an unknown environment: %v", err)
		}
		moved, err := c.Move(t.Context(), "b2", "lisbon")
		if want := (v1.HostEnvironment{Hostname: "b2", Environment: "lisbon", Assigned: true}); err != nil || moved != want {
			t.Errorf("it is moved to %+v, %v", moved, err)
		}
		if h, _ := m.kept("b2"); h.Assigned != "lisbon" || h.Environment != "lisbon" {
			t.Errorf("at once the store has %+v", h)
		}
		c = m.restart(t)
		m.pass(2*time.Hour + time.Minute)
		if hosts := hostsOf(m.only(c, "berlin")); !slices.Equal(hosts, []string{"b1"}) {
			t.Errorf("the run of berlin has %q", hosts)
		}
		second := m.only(c, "lisbon")
		if hosts := hostsOf(second); !slices.Equal(hosts, []string{"b2", "l1"}) {
			t.Errorf("the run of lisbon has %q", hosts)
		}
		moved, err = c.Move(t.Context(), "b2", "")
		if want := (v1.HostEnvironment{Hostname: "b2", Environment: "berlin", Run: second.ID, RunEnvironment: "lisbon"}); err != nil || moved != want {
			t.Errorf("in mid-run it is moved to %+v, %v", moved, err)
		}
		m.obedient = true
		c = m.restart(t)
		m.pass(24 * time.Hour)
		for city, hosts := range map[string][]string{"berlin": {"b1", "b2"}, "lisbon": {"l1"}} {
			if all := m.runs(c)[city]; len(all) < 2 || !slices.Equal(hostsOf(all[0]), hosts) {
				t.Errorf("%s has %d runs, the last of %q", city, len(all), hostsOf(all[0]))
			}
		}
	})
}

// TestAssignedToNone checks that an environment takes what was assigned to it along when it is deleted,
// and that default can be assigned, too.
func TestAssignedToNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "d1": ""})
		c, _ := m.control(t)
		m.beat()
		berlin := inShop("berlin", "")
		m.declareShop("berlin", &berlin)
		m.pass(time.Minute)
		move := func(host, environment string) {
			t.Helper()
			if _, err := c.Move(t.Context(), host, environment); err != nil {
				t.Fatal(err)
			}
		}
		at := func(host string) string {
			t.Helper()
			h, err := c.Host(t.Context(), host)
			if err != nil {
				t.Fatal(err)
			}
			return fmt.Sprintf("%s %t", h.Environment, h.Assigned)
		}
		move("d1", "berlin")
		move("b1", v1.DefaultEnvironment)
		if got := at("d1") + ", " + at("b1"); got != "berlin true, default true" {
			t.Errorf("they are in %s", got)
		}
		m.declareShop("berlin", nil)
		m.pass(time.Minute)
		if got := at("d1") + ", " + at("b1"); got != " false,  false" {
			t.Errorf("while nothing is declared they are in %s", got)
		}
		if h, _ := m.kept("d1"); h.Assigned != "" {
			t.Errorf("the store has %+v", h)
		}
		m.declareShop("berlin", &berlin)
		m.pass(time.Minute)
		if got := at("d1") + ", " + at("b1"); got != "default false, default true" {
			t.Errorf("after all they are in %s", got)
		}
	})
}

// TestVacant checks when an environment can be deleted without force, and what else is told.
func TestVacant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "b2": "berlin"})
		c, _ := m.control(t)
		m.beat()
		berlin, porto := inShop("berlin", "Europe/Berlin"), inShop("porto", "")
		m.declareShop("berlin", &berlin)
		m.declareShop("porto", &porto)
		m.pass(time.Minute)
		if err := c.Vacant(t.Context(), "porto"); err != nil {
			t.Errorf("one without hosts: %v", err)
		}
		refused := func(want string) {
			t.Helper()
			if _, is := errors.AsType[*run.Refused](c.Vacant(t.Context(), "berlin")); !is || !strings.Contains(c.Vacant(t.Context(), "berlin").Error(), want) {
				t.Errorf("it can be deleted, or not for: %s\n%v", want, c.Vacant(t.Context(), "berlin"))
			}
		}
		refused("environment berlin is in use: it has 2 hosts (b1, b2); move its hosts with osupgrade-agent move HOST --environment NAME; or add force=true")
		m.pass(time.Hour)
		r := m.only(c, "berlin")
		refused(fmt.Sprintf("environment berlin is in use: run %d is in progress and it has 2 hosts (b1, b2); wait until the run ends, or end it with osupgrade-agent abort --environment berlin --reason …; move its hosts", r.ID))
		m.declareShop("berlin", nil)
		m.pass(time.Minute)
		refused(fmt.Sprintf("environment berlin is in use: run %d is in progress; wait", r.ID))
	})
}

// moving returns a state that knows h01, and its store, which has it.
func moving(t *testing.T) (*memory, *state) {
	t.Helper()
	m := newMemory()
	s := stateOf(m.options(t))
	h := store.Host{Tenant: "acme", Name: "h01"}
	must(m.PutHost(t.Context(), log.Token("h01"), h))
	s.hosts.known["h01"] = &host{Host: h, seen: time.Now().Add(-time.Hour)}
	s.intent.complete = true
	return m, s
}

// TestMovedWhileForgotten checks that a host which somebody moves while it is being deleted is not
// kept again.
func TestMovedWhileForgotten(t *testing.T) {
	t.Parallel()
	m, s := moving(t)
	if err := s.writer.delete(t.Context(), "acme", "h01"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.move("h01", ""), s.writer.keep(t.Context(), "h01")); err != nil {
		t.Fatal(err)
	}
	s.writer.write(t.Context())
	if err := s.forget("h01", run.Deletion{By: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.writer.write(t.Context())
	if err := s.writer.keep(t.Context(), "h01"); err != nil {
		t.Fatal(err)
	}
	if h, _ := m.kept("h01"); h.Name != "" {
		t.Errorf("h01 is kept as %+v after its deletion", h)
	}
}

// TestMovedTwice checks that of two moves the later one is kept, whichever of them is written last.
func TestMovedTwice(t *testing.T) {
	t.Parallel()
	m, s := moving(t)
	s.intent.environments["berlin"] = &declared{}
	for _, to := range []string{"", v1.DefaultEnvironment} {
		if err := s.move("h01", to); err != nil {
			t.Fatal(err)
		}
	}
	s.writer.write(t.Context())
	// The first move comes to its write only now.
	if err := s.writer.keep(t.Context(), "h01"); err != nil {
		t.Fatal(err)
	}
	if h, puts := m.kept("h01"); h.Assigned != v1.DefaultEnvironment || puts != 2 {
		t.Errorf("after %d writes h01 is kept as %+v", puts, h)
	}
}

// TestMovedToDeleted checks that an environment which was deleted while its run is in progress is not
// listed as one that there is.
func TestMovedToDeleted(t *testing.T) {
	t.Parallel()
	_, s := moving(t)
	s.environment("berlin")
	s.environment("lisbon")
	if _, err := s.declared("berlin"); err == nil || err.Error() != "there is no environment berlin; there are: default, lisbon" {
		t.Errorf("the error is %v", err)
	}
}
