package controller

import (
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestFaceOf checks which environment is shown where only one can be.
func TestFaceOf(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		hasOwn bool
		all    []candidate
		want   string
	}{
		"default alone":          {false, []candidate{{"", fromIdle}}, ""},
		"default has hosts":      {true, []candidate{{"", fromIdle}, {"basel", fromPerson}}, ""},
		"all are idle":           {false, []candidate{{"", fromIdle}, {"bern", fromIdle}, {"basel", fromIdle}}, "basel"},
		"an open window waits":   {false, []candidate{{"", fromIdle}, {"basel", fromIdle}, {"bern", fromWaiting}}, "bern"},
		"one prepares":           {false, []candidate{{"", fromIdle}, {"basel", fromWaiting}, {"bern", fromPreparing}}, "bern"},
		"one upgrades":           {false, []candidate{{"", fromIdle}, {"basel", fromPreparing}, {"bern", fromUpgrading}}, "bern"},
		"one waits for a person": {false, []candidate{{"", fromIdle}, {"basel", fromUpgrading}, {"chur", fromPerson}}, "chur"},
		"two upgrade":            {false, []candidate{{"", fromIdle}, {"chur", fromUpgrading}, {"bern", fromUpgrading}}, "bern"},
		"default is not chosen for being furthest": {false, []candidate{{"", fromPerson}, {"bern", fromIdle}}, "bern"},
	} {
		if got := faceOf(row.hasOwn, row.all); got != row.want {
			t.Errorf("%s: it is %q, want %q", name, got, row.want)
		}
	}
}

// statusesOf returns what each environment is doing, by name. They come in the order of their names, and
// each is the same when it is asked for alone.
func statusesOf(t *testing.T, c *Controller) map[string]v1.EnvironmentStatus {
	t.Helper()
	all, err := c.EnvironmentStatuses(t.Context())
	if err != nil || !slices.IsSortedFunc(all, func(a, b v1.EnvironmentStatus) int { return slices.Compare([]byte(a.Name), []byte(b.Name)) }) {
		t.Fatalf("the environments are %+v, %v", all, err)
	}
	by := map[string]v1.EnvironmentStatus{}
	for _, e := range all {
		by[e.Name] = e
		if one, err := c.EnvironmentStatus(t.Context(), e.Name); err != nil || !reflect.DeepEqual(one, e) {
			t.Errorf("alone %s is %+v, %v", e.Name, one, err)
		}
	}
	return by
}

// TestEnvironmentStatuses checks what is shown of environments side by side: each has its own
// hosts, run and window, one that is removed while its run is under way is shown until that ends,
// and hosts that are in none are counted at the tenant.
func TestEnvironmentStatuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "b2": "berlin", "l1": "lisbon", "d1": ""})
		c, _ := m.control(t)
		m.beat()
		state, err := c.State(t.Context())
		if err != nil || state.Environments != 0 || state.Environment != "" {
			t.Errorf("without environments the state is %+v, %v", state.Situation, err)
		}
		berlin, lisbon := inShop("berlin", "Europe/Berlin"), inShop("lisbon", "Europe/Lisbon")
		m.declareShop("berlin", &berlin)
		m.declareShop("lisbon", &lisbon)
		both := v1.Environment{Match: v1.Match{Labels: map[string]string{"shop": "berlin"}}}
		shown := func() map[string]v1.EnvironmentStatus { return statusesOf(t, c) }
		m.pass(time.Hour + time.Minute)
		first := m.only(c, "berlin")
		got := shown()
		if len(got) != 3 || got["berlin"].Hosts != 2 || got["lisbon"].Hosts != 1 || got["default"].Hosts != 1 {
			t.Errorf("the hosts are %d, %d and %d", got["berlin"].Hosts, got["lisbon"].Hosts, got["default"].Hosts)
		}
		if b := got["berlin"]; b.Run == nil || b.Run.ID != first.ID || b.Status != "preparing" || b.OpenWindow == nil || b.Counts["preparing"] != 2 || len(b.Needs) != 0 {
			t.Errorf("berlin is %+v", b)
		}
		if l := got["lisbon"]; l.Run != nil || l.Status != "idle" || l.OpenWindow != nil || l.NextUpgradeAt == nil || !l.NextUpgradeAt.Equal(time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)) {
			t.Errorf("lisbon is %+v", l)
		}
		if d := got["default"]; !slices.Equal(d.Needs, []string{"no-window"}) {
			t.Errorf("default is %+v", d)
		}
		ofAll, err := c.AllWindows(t.Context(), time.Now(), time.Now().AddDate(0, 0, 2), 3)
		if err != nil || len(ofAll) != 3 || ofAll[0].Environment != "berlin" || ofAll[1].Environment != "lisbon" || ofAll[2].Environment != "berlin" {
			t.Errorf("the windows of all are %+v, %v", ofAll, err)
		}
		ofOne, err := c.WindowsOf(t.Context(), "lisbon", time.Now(), time.Now().AddDate(0, 0, 2), 0)
		if err != nil || len(ofOne) != 2 || ofOne[0].Environment != "lisbon" {
			t.Errorf("the windows of lisbon are %+v, %v", ofOne, err)
		}
		if none, err := c.WindowsOf(t.Context(), "default", time.Now(), time.Now().AddDate(0, 0, 2), 0); err != nil || len(none) != 0 {
			t.Errorf("the windows of default are %+v, %v", none, err)
		}
		if _, err := c.WindowsOf(t.Context(), "madrid", time.Now(), time.Now().AddDate(0, 0, 2), 0); err == nil {
			t.Error("madrid has windows")
		}
		if s, err := c.SnapshotOf(t.Context(), "lisbon"); err != nil || s.Run != nil || s.Situation.Environment != "lisbon" || s.Situation.Hosts != 1 {
			t.Errorf("lisbon alone is %+v, %v", s, err)
		}
		m.declareShop("berlin", nil)
		m.declareShop("again", &both)
		m.declareShop("twice", &both)
		m.Alive("b3", message.Alive{Application: "app", Labels: m.labels("berlin")})
		synctest.Wait()
		if b := shown()["berlin"]; !b.Removed || b.Run == nil || b.Run.ID != first.ID {
			t.Errorf("removed during its run berlin is %+v", b)
		}
		if state, err := c.State(t.Context()); err != nil || state.Environments != 5 || !slices.Contains(state.UnplacedHosts, "b3") || state.Unplaced != len(state.UnplacedHosts) {
			t.Errorf("the state is %+v, %v", state.Situation, err)
		}
		for _, action := range []message.Action{message.Prepare, message.Upgrade} {
			for _, host := range []string{"b1", "b2"} {
				m.reply(host, first.ID, action)
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, is := shown()["berlin"]; is {
			t.Error("berlin is shown after its end")
		}
	})
}

// TestFaceWithoutDefault checks that the state of a tenant is that of the environment in which
// something happens, if default has neither hosts nor windows.
func TestFaceWithoutDefault(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"b1": "berlin", "l1": "lisbon"})
		c, _ := m.control(t)
		m.beat()
		berlin, lisbon := inShop("berlin", ""), inShop("lisbon", "Europe/Lisbon")
		m.declareShop("berlin", &berlin)
		m.declareShop("lisbon", &lisbon)
		faces := func() string {
			state, err := c.State(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return state.Environment + " " + state.Status
		}
		m.pass(time.Minute)
		if got := faces(); got != "berlin idle" {
			t.Errorf("while all are idle it is %s", got)
		}
		m.pass(2*time.Hour + time.Minute)
		if got := faces(); got != "lisbon preparing" {
			t.Errorf("while lisbon prepares it is %s", got)
		}
		if s, err := c.Snapshot(t.Context()); err != nil || s.Run == nil || s.Run.Environment != "lisbon" {
			t.Errorf("the snapshot is %+v, %v", s, err)
		}
	})
}
