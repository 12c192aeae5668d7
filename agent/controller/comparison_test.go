package controller

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/compare"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// plans keeps the plan of a host in a run: libssl3 goes to a version. The gate tells the controller.
func (m *memory) plans(c *Controller, host string, r v1.Run, to string) {
	m.plan(host, r, "libssl3="+to)
	c.Stored(host, report.ID{Kind: report.Plan, Run: r.ID})
}

// comparing starts a run to a release of packages, with the canary h01 and the others h02 and h03.
func comparing(t *testing.T, same bool, act func(t *testing.T, m *memory, c *Controller, r v1.Run)) {
	t.Helper()
	by := v1.Rollout{MinPrepared: "1", Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}}, {Name: "rest"}}}
	comparingBy(t, by, same, act)
}

// comparingBy starts a run by a rollout to a release of packages.
func comparingBy(t *testing.T, by v1.Rollout, same bool, act func(t *testing.T, m *memory, c *Controller, r v1.Run)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.rollout = &by
		c, _ := m.control(t)
		installs := v1.Release{Packages: &release.Packages{Same: same}}
		m.releases("spring", &installs)
		for _, name := range []string{"h01", "h02", "h03"} {
			m.Alive(name, message.Alive{Application: "app", Releases: []release.Kind{release.OfPackages}})
		}
		synctest.Wait()
		r, err := c.Start(t.Context(), "test", startSpring)
		if err != nil {
			t.Fatal(err)
		}
		act(t, m, c, r)
	})
}

// statuses are the statuses of the hosts of a run, with why.
func statuses(t *testing.T, c *Controller, id uint64) string {
	t.Helper()
	r, err := c.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, h := range r.Hosts {
		all = append(all, h.Hostname+" "+h.Status+" "+h.Class+" "+h.Error)
	}
	return strings.Join(all, "; ")
}

// TestDifferingPlansAreTold checks that a run whose hosts plan two versions of a package goes on, and
// tells of it once: in its story, in what is shown of it, and as news.
func TestDifferingPlansAreTold(t *testing.T) {
	t.Parallel()
	comparing(t, false, func(t *testing.T, m *memory, c *Controller, r v1.Run) {
		for host, to := range map[string]string{"h01": "3.0.15", "h02": "3.0.15", "h03": "3.0.16"} {
			m.plans(c, host, r, to)
			m.answer(host, r, message.Prepare, message.Done)
		}
		synctest.Wait()
		const line = "libssl3: 3.0.15 on 2 hosts, 3.0.16 on 1: h03"
		found, err := c.Find(t.Context(), r.ID)
		if err != nil || strings.Join(found.Release.Differing, "\n") != line {
			t.Fatalf("it shows %+v, %v", found.Release, err)
		}
		m.answer("h01", r, message.Upgrade, message.Done)
		m.answer("h02", r, message.Upgrade, message.Done)
		m.answer("h03", r, message.Upgrade, message.Done)
		if found, err = c.Find(t.Context(), r.ID); err != nil || found.Result != string(run.Completed) {
			t.Errorf("the run is %s %s, %v", found.Phase, found.Result, err)
		}
		told := 0
		for _, e := range found.Events {
			if e.Event == "differing" && e.Text == line {
				told++
			}
		}
		if told != 1 {
			t.Errorf("its story tells it %d times: %+v", told, found.Events)
		}
	})
}

// TestDifferingPlansAreRefused checks that no host is upgraded before the plans of all that have
// prepared are compared, also after a restart; that a host which plans another version than the canary
// fails; and that a host which prepares later is compared with what the others have got.
func TestDifferingPlansAreRefused(t *testing.T) {
	t.Parallel()
	comparing(t, true, func(t *testing.T, m *memory, c *Controller, r v1.Run) {
		m.answer("h01", r, message.Prepare, message.Done)
		m.answer("h02", r, message.Prepare, message.Done)
		m.plans(c, "h01", r, "3.0.15")
		time.Sleep(90 * time.Second) // h03 is late.
		synctest.Wait()
		c = m.restart(t)
		for _, name := range []string{"h01", "h02", "h03"} {
			m.Alive(name, message.Alive{Application: "app", Releases: []release.Kind{release.OfPackages}})
		}
		synctest.Wait()
		found, err := c.Find(t.Context(), r.ID)
		if err != nil || found.WaitingFor == nil || found.Phase != string(run.Preparing) {
			t.Fatalf("without the plan of h02 the run is %s and waits for %+v, %v", found.Phase, found.WaitingFor, err)
		}
		m.answer("h03", r, message.Prepare, message.Done)
		m.plans(c, "h02", r, "3.0.16")
		m.plans(c, "h03", r, "3.0.15")
		synctest.Wait()
		const want = "h01 upgrading  ; h02 failed repository it would get libssl3 3.0.16 and other hosts 3.0.15, and packages.same of the release is true; h03 prepared  "
		if got := statuses(t, c, r.ID); got != want {
			t.Errorf("the hosts are %q, not %q", got, want)
		}
	})
}

// TestAdmittedHostCounts checks that what a host plans counts for all others from when it is admitted, also
// if these are compared only then.
func TestAdmittedHostCounts(t *testing.T) {
	t.Parallel()
	by := v1.Rollout{MinPrepared: "1", PreparePatience: "1m", Stages: []v1.Stage{{Name: "all", MaxUnavailable: "3"}}, Checks: &v1.RolloutChecks{BeforeHost: []v1.Check{{Type: "exec", Script: "ready"}}}}
	comparingBy(t, by, true, func(t *testing.T, m *memory, c *Controller, r v1.Run) {
		m.plans(c, "h02", r, "3.0.16")
		m.answer("h02", r, message.Prepare, message.Done)
		time.Sleep(90 * time.Second) // The others are late.
		m.Alive("h02", message.Alive{Application: "app", Releases: []release.Kind{release.OfPackages}})
		synctest.Wait()
		if got := statuses(t, c, r.ID); !strings.Contains(got, "h02 checking") {
			t.Fatalf("the hosts are %q", got)
		}
		for _, name := range []string{"h01", "h03"} {
			m.Alive(name, message.Alive{Application: "app", Releases: []release.Kind{release.OfPackages}})
			m.plans(c, name, r, "3.0.15")
			m.answer(name, r, message.Prepare, message.Done)
		}
		synctest.Wait()
		got := statuses(t, c, r.ID)
		for _, name := range []string{"h01", "h03"} {
			if want := name + " failed repository it would get libssl3 3.0.15 and other hosts 3.0.16, and packages.same of the release is true"; !strings.Contains(got, want) {
				t.Errorf("the hosts are %q, without %q", got, want)
			}
		}
	})
}

// TestBegunWithoutPlan checks that a host is refused no longer for its plan that did not come, once the run
// has begun with it.
func TestBegunWithoutPlan(t *testing.T) {
	t.Parallel()
	r := halfDone(t, time.Now()).ledger.Newest()
	c := &comparison{plans: compare.New(), lost: []string{"h01"}}
	c.judge(message.Differing{})
	if differing, waits := c.known(r); differing != nil || waits || !r.BegunHosts()["h01"] {
		t.Errorf("h01 has begun, and is refused by %+v; the run waits: %t", differing, waits)
	}
}

// TestPlanThatNeverComes checks that a host whose plan does not come is refused after a while if all
// are to get the same, and that the run waits for it until then and says so.
func TestPlanThatNeverComes(t *testing.T) {
	t.Parallel()
	comparing(t, true, func(t *testing.T, m *memory, c *Controller, r v1.Run) {
		for _, host := range []string{"h01", "h02", "h03"} {
			m.answer(host, r, message.Prepare, message.Done)
		}
		m.plans(c, "h01", r, "3.0.15")
		m.plans(c, "h02", r, "3.0.15")
		time.Sleep(planLimit - 10*time.Second)
		synctest.Wait()
		found, err := c.Find(t.Context(), r.ID)
		if err != nil || found.WaitingFor == nil || found.WaitingFor.Detail != "the plans of h03 to be compared" {
			t.Fatalf("it waits for %+v, %v", found.WaitingFor, err)
		}
		if got, all := statuses(t, c, r.ID), "h01 prepared  ; h02 prepared  ; h03 prepared  "; got != all {
			t.Errorf("before the plans are compared the hosts are %q, not %q", got, all)
		}
		time.Sleep(15 * time.Second)
		synctest.Wait()
		const want = "h01 upgrading  ; h02 prepared  ; h03 failed repository its plan did not come within 2m, so it was compared with no other, and packages.same of the release is true"
		if got := statuses(t, c, r.ID); got != want {
			t.Errorf("the hosts are %q, not %q", got, want)
		}
	})
}

// TestPlanStoredWhileRead checks that a plan which is stored after it was looked for, but before that is
// taken up, is looked for again, and one that is not stored is not.
func TestPlanStoredWhileRead(t *testing.T) {
	t.Parallel()
	now, readied := time.Now(), 0
	c := &comparison{
		Options: Options{Now: func() time.Time { return now }, Logger: slog.New(slog.DiscardHandler)}, ready: func() { readied++ },
		run: 7, wanted: map[string]time.Time{"h01": now, "h02": now}, absent: map[string]bool{}, stored: map[string]bool{}, reading: true,
	}
	both := []compare.Host{{Name: "h01"}, {Name: "h02"}}
	if c.isStored("h01", 7) || c.isStored("h02", 8) {
		t.Error("plans are read twice at once")
	}
	c.take(both, map[string]bool{"h01": true, "h02": true}, message.Differing{}, nil)
	if c.absent["h01"] || !c.absent["h02"] || readied != 1 {
		t.Errorf("not there are %v", c.absent)
	}
	if !c.isStored("h02", 7) || c.absent["h02"] {
		t.Error("a plan that is stored is not read")
	}
	if (*comparison)(nil).isStored("h01", 7) {
		t.Error("a run whose plans are not compared reads one")
	}
}
