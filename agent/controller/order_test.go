package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestAfter plays a canary with a window each night and shops that come after it, with a soak of
// 12 hours: the window of the first night is missed with the reason, that of the second has its run,
// also after a restart. A start by hand is refused until somebody overrides that with a reason.
func TestAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"c1": "canary", "c2": "canary", "s1": "basel"})
		m.obedient = true
		c, _ := m.control(t)
		m.beat()
		canary, shops := inShop("canary", "UTC"), inShop("basel", "UTC")
		shops.After = &v1.After{Environments: []string{"canary"}, Soak: "12h"}
		m.declareShop("canary", &canary)
		m.declareShop("shops", &shops)
		waits := func(want string) {
			t.Helper()
			idle, err := ask(t.Context(), c, func(s *state) v1.WaitingFor { return s.environment("shops").idle })
			if err != nil || idle.What != "after" || !strings.Contains(idle.Detail, want) {
				t.Errorf("the shops wait for %+v, %v; want %q", idle, err, want)
			}
		}
		m.pass(2*time.Hour + 10*time.Minute) // A bubble begins at midnight UTC.
		first := m.only(c, "canary")
		if first.Result != "completed" || len(m.runs(c)["shops"]) != 0 {
			t.Fatalf("the run of the canary is %+v, the shops have %d", first, len(m.runs(c)["shops"]))
		}
		waits(fmt.Sprintf("environment canary, which soaks until %s: run %d completed", first.EndedAt.Add(12*time.Hour).Format(time.RFC3339), first.ID))
		m.pass(4 * time.Hour)
		if missed := m.events(`"missed"`); len(missed) != 1 || !strings.Contains(missed[0], `"reason":"it was waiting for environment canary, which soaks until`) {
			t.Errorf("these windows were missed: %q", missed)
		}
		c = m.restart(t)
		m.pass(20 * time.Hour) // Until 02:10 on the second day.
		r := m.only(c, "shops")
		if len(r.Follows) != 1 || r.Follows[0] != (v1.FollowedRun{Environment: "canary", Run: first.ID}) || r.Result != "completed" || r.OverrideAfter != "" {
			t.Errorf("the run of the shops is %+v", r)
		}

		request := start
		request.Environment = "shops"
		_, err := c.Start(t.Context(), "test", request)
		second := m.runs(c)["canary"][0]
		if refused, is := errors.AsType[*run.Refused](err); !is || !strings.Contains(refused.Message, fmt.Sprintf("run %d completed at", second.ID)) || !strings.Contains(refused.Message, "--override-window --override-after …") {
			t.Errorf("a start by hand is answered %v", err)
		}
		request.OverrideAfter = "security fix"
		r, err = c.Start(t.Context(), "test", request)
		if err != nil || r.OverrideAfter != "security fix" || r.Follows != nil {
			t.Errorf("a start that overrides it is answered %+v, %v", r, err)
		}
		m.pass(time.Hour)

		m.declareShop("canary", nil)
		m.pass(23 * time.Hour) // Until 02:10 on the third day.
		waits("somebody to declare environment canary, or to remove it from after: osupgrade-agent edit environment/shops")
		shops.After = nil
		m.declareShop("shops", &shops)
		m.pass(10 * time.Minute)
		if all := m.runs(c)["shops"]; len(all) != 3 || all[0].Trigger != "window" {
			t.Errorf("without an order the shops have %d runs", len(all))
		}
	})
}

// TestChosenRunOfCanary checks that a run of chosen hosts does not count for those that follow, and
// that the run of a follower opens as soon as the canary has completed within the same window.
func TestChosenRunOfCanary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newShops(t, map[string]string{"c1": "canary", "c2": "canary", "s1": "basel"})
		m.obedient = true
		c, _ := m.control(t)
		m.beat()
		canary, shops := inShop("canary", "UTC"), inShop("basel", "UTC")
		canary.MaintenanceWindows = []v1.MaintenanceWindow{}
		shops.After = &v1.After{Environments: []string{"canary"}}
		m.declareShop("canary", &canary)
		m.declareShop("shops", &shops)
		m.pass(2*time.Hour + 10*time.Minute)
		request := start
		request.Environment, request.Hosts = "canary", []string{"c1"}
		for _, whole := range []bool{false, true} {
			if whole {
				request.Hosts = nil
			}
			if _, err := c.Start(t.Context(), "test", request); err != nil {
				t.Fatal(err)
			}
			m.pass(10 * time.Minute)
			if n := len(m.runs(c)["shops"]); (n == 1) != whole {
				t.Errorf("after a run of the canary, whole %t, the shops have had %d runs", whole, n)
			}
		}
	})
}
