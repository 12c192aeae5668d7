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
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestPreflight checks that what a start would do is told, with what hosts and the
// site lack, and that nothing is started.
func TestPreflight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.rollout = &v1.Rollout{
			Exempt: &v1.Match{Hosts: []string{"h04"}},
			Stages: []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h03"}}}, {Name: "rest", MaxUnavailable: "2"}},
			Checks: &v1.RolloutChecks{
				BeforeHost: []v1.Check{{Name: "well", Type: "exec", Script: "well"}}, Fleet: []v1.Check{{Name: "all", Type: "exec", Script: "all"}},
			},
		}
		o := m.options(t)
		o.SiteScripts = func() []string { return []string{} }
		c, _ := m.run(t, o)
		m.Alive("h01", message.Alive{Application: "app", SelfReport: message.SelfReport{Scripts: []string{"well"}}})
		m.Alive("h02", message.Alive{Application: "app", SelfReport: message.SelfReport{Scripts: []string{}, Lacks: []string{"no dpkg"}}})
		m.beat("h03", "h04")
		p, err := c.Preflight(t.Context(), "test", start)
		if err != nil || p.Refused != "" || p.Usual != nil || p.Fits != nil {
			t.Fatalf("%+v, %v", p, err)
		}
		var hosts []string
		for _, h := range p.Run.Hosts {
			hosts = append(hosts, strings.TrimSpace(h.Hostname+" "+h.Stage+h.Note))
		}
		if want := []string{"h03 canary", "h01 rest", "h02 rest", "h04 the rollout's exempt matches its name"}; !slices.Equal(hosts, want) {
			t.Errorf("the hosts are %q, not %q", hosts, want)
		}
		if !slices.Equal(p.Unknown, []string{"h03"}) || len(p.Missing) != 2 || p.Missing[0].Host != "" || !strings.Contains(p.Missing[0].What[0], "script all of check all") ||
			p.Missing[1].Host != "h02" || p.Missing[1].What[0] != "no dpkg" || !strings.Contains(p.Missing[1].What[1], "script well of check well") {
			t.Errorf("missing are %+v, unknown %q", p.Missing, p.Unknown)
		}
		if n := len(m.log.All()); n != 0 {
			t.Errorf("%d records were written", n)
		}
	})
}

// TestPreflightOffers checks that a preflight names each member of the run with what it
// offers to change, also one that has told nothing, and no other host; and that offers which
// cannot be read are no offers that say nothing.
func TestPreflightOffers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		m.rollout = &v1.Rollout{Exempt: &v1.Match{Hosts: []string{"h04"}}}
		twelve := message.ChangeSet{Download: 5 << 20, Reboot: "kernel 6.1.0-28", Held: []message.HeldPackage{{Name: "y", Reason: "held"}, {Name: "z", Reason: "held"}}}
		for n := range 12 {
			twelve.Changes = append(twelve.Changes, message.Change{Name: fmt.Sprintf("p%02d", n), To: "1"})
		}
		m.reports("h01", report.Offer, packed(t, twelve))
		m.reports(log.Token("h.3"), report.Offer, packed(t, message.ChangeSet{}))
		m.reports("stranger", report.Offer, packed(t, message.ChangeSet{}))
		c, _ := m.control(t)
		m.beat("h01", "h02", "h.3", "h04")
		p, err := c.Preflight(t.Context(), "test", start)
		if err != nil || len(p.Offers) != 3 {
			t.Fatalf("%+v, %v", p.Offers, err)
		}
		for _, o := range p.Offers {
			want := map[string]v1.OfferSummary{"h01": {At: o.At, Changes: 12, Held: 2, DownloadBytes: 5 << 20, Reboot: "kernel 6.1.0-28"}, "h.3": {At: o.At}, "h02": {}}[o.Hostname]
			if o.OfferSummary != want || (o.At == nil) != (o.Hostname == "h02") {
				t.Errorf("%s offers %+v", o.Hostname, o.OfferSummary)
			}
		}
		m.offersErr = errors.New("no space left on device")
		if _, err := c.Preflight(t.Context(), "test", start); !errors.Is(err, m.offersErr) {
			t.Errorf("offers that cannot be read: %v", err)
		}
	})
}

// packed is a plan as hosts report it.
func packed(t *testing.T, plan message.ChangeSet) []byte {
	t.Helper()
	body, err := message.PackPlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// TestOffer checks whose offer is told: that of a host that is known and has told one.
func TestOffer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory("h01", "h02")
		m.reports("h01", report.Offer, packed(t, message.ChangeSet{Changes: []message.Change{{Name: "of h01", To: "1"}}}))
		c, _ := m.control(t)
		if offer, err := c.Offer(t.Context(), "h01"); err != nil || offer.At.IsZero() || offer.Changes[0].Package != "of h01" {
			t.Errorf("%+v, %v", offer, err)
		}
		if _, err := c.Offer(t.Context(), "h02"); !errors.Is(err, run.ErrNoPlan) {
			t.Errorf("a host that has told nothing: %v", err)
		}
		if _, err := c.Offer(t.Context(), "h09"); !errors.Is(err, run.ErrNoHost) {
			t.Errorf("a host that is not known: %v", err)
		}
	})
}

// TestPlanOfARun checks whose plan of a run is told: that of a member which has told one.
func TestPlanOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		const noPlans = 6
		for _, id := range []uint64{noPlans, 7} {
			must(m.PutRun(t.Context(), "acme", v1.Run{ID: id, Phase: "finished", Hosts: []v1.RunHost{{Hostname: "h01"}}}, id))
		}
		planned := report.Report{ID: report.ID{Kind: report.Plan, Run: 7}, Body: packed(t, message.ChangeSet{Changes: []message.Change{{Name: "of h01", To: "1"}}})}
		must(m.PutReport(t.Context(), "acme", "h01", planned))
		c, _ := m.control(t)
		if plan, err := c.Plan(t.Context(), 7, "h01"); err != nil || plan.Changes[0].Package != "of h01" {
			t.Errorf("%+v, %v", plan, err)
		}
		for _, wrong := range []struct {
			run  uint64
			host string
			want error
		}{{7, "h02", run.ErrNoHost}, {8, "h01", run.ErrNoRun}, {noPlans, "h01", run.ErrNoPlan}} {
			if _, err := c.Plan(t.Context(), wrong.run, wrong.host); !errors.Is(err, wrong.want) {
				t.Errorf("host %s in run %d: %v, not %v", wrong.host, wrong.run, err, wrong.want)
			}
		}
	})
}

// TestPreflightRefused checks that of a start that would be refused the reason is
// told, and what the next window would do; and that the history tells how long it
// would take.
func TestPreflightRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		now := m.clock().UTC()
		opens := now.Add(24 * time.Hour).Truncate(time.Hour)
		m.config = &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "app"}}, MaintenanceWindows: []v1.MaintenanceWindow{
			{DaysOfWeek: opens.Weekday().String(), StartTime: opens.Format("15:04"), Timezone: "UTC", Duration: "1h"},
		}}
		must(m.PutRun(t.Context(), "acme", v1.Run{ID: 7, Phase: "finished", Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded", Seconds: 600}}}, 7))
		c, _ := m.control(t)
		m.beat("h01", "h02")
		p, err := c.Preflight(t.Context(), "test", v1.Start{})
		if err != nil || !strings.Contains(p.Refused, "no maintenance window is open") {
			t.Fatalf("%+v, %v", p, err)
		}
		if p.Run == nil || !p.Run.OpenedAt.Equal(opens) || p.Usual == nil || p.Usual.Run != 7 || p.Usual.HostSeconds != 600 || p.Fits == nil || !*p.Fits {
			t.Fatalf("the run is %+v, of %+v", p.Run, p.Usual)
		}
		if end := p.Run.ExpectedEnd; end == nil || !end.Equal(opens.Add(20*time.Minute)) {
			t.Errorf("it is expected to end at %v", end)
		}
		// Of what cannot be in any window nothing is told but why.
		p, err = c.Preflight(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "x", Hosts: []string{"h09"}})
		if err != nil || !strings.Contains(p.Refused, "host h09 is not known") || p.Run != nil {
			t.Errorf("%+v, %v", p, err)
		}
	})
}

// TestPreflightInAFreeze checks that a start which a freeze refuses is shown as it could
// begin when the freeze ends.
func TestPreflightInAFreeze(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c, _ := m.control(t)
		m.beat("h01")
		freeze := v1.Calendar{Kind: "freeze", Events: []v1.Event{{Start: "2000-01-01T00:00", Duration: "2h", Timezone: "UTC"}}}
		m.declare(store.Seen{Object: calendarNamed("stop"), Calendar: &freeze})
		ends := time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC)
		p, err := c.Preflight(t.Context(), "test", v1.Start{OverrideWindow: true, Reason: "x"})
		if err != nil || !strings.Contains(p.Refused, "every start: stop; to start now") || p.Run == nil || !p.Run.OpenedAt.Equal(ends) || !p.Run.NotAfter.Equal(ends.Add(4*time.Hour)) {
			t.Errorf("%+v of %+v, %v", p, p.Run, err)
		}
	})
}

// TestStartOfSomeHosts checks that a run of some hosts has these and no others.
func TestStartOfSomeHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c, _ := m.control(t)
		m.beat("h01", "h02", "h03")
		request := start
		request.Hosts = []string{"h03", "h01", "h03"}
		r, err := c.Start(t.Context(), "test", request)
		if err != nil || len(r.Hosts) != 2 || r.Hosts[0].Hostname != "h01" || r.Hosts[1].Hostname != "h03" {
			t.Errorf("the run is %+v, %v", r, err)
		}
		request.Hosts = []string{"h03", "h04"}
		var refused *run.Refused
		if _, err := c.Preflight(t.Context(), "test", request); err != nil {
			t.Error(err)
		}
		if _, err := c.Start(t.Context(), "test", request); !errors.As(err, &refused) || refused.Run != r.ID {
			t.Errorf("a second start is refused with %v", err)
		}
	})
}
