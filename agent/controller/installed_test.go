package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestInstalledByRun checks the release that is made of what a run has installed on the hosts that it
// has upgraded, and why there is none.
func TestInstalledByRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		// plans are the changes of each host, name=version; fails are hosts that are not upgraded.
		plans map[string]string
		fails string
		want  string
	}{
		"all the same":       {plans: map[string]string{"h01": "a=1 b=2", "h02": "a=1 b=2", "h03": "a=1 b=2"}, want: "a=1 b=2"},
		"one is up to date":  {plans: map[string]string{"h01": "a=1", "h02": "", "h03": "a=1"}, want: "a=1"},
		"one has failed":     {plans: map[string]string{"h01": "a=1", "h02": "a=2", "h03": "a=1"}, fails: "h02", want: "a=1"},
		"some have more":     {plans: map[string]string{"h01": "a=1 b=2", "h02": "a=1", "h03": "a=1"}, want: "a=1; left out b on 1 of 3 hosts"},
		"two versions":       {plans: map[string]string{"h01": "a=1", "h02": "a=2", "h03": "a=1"}, want: "run 2 installed different versions, and a release has one of each package: a: 1 on 2 hosts, 2 on 1: h02"},
		"nothing in common":  {plans: map[string]string{"h01": "a=1", "h02": "b=1", "h03": ""}, want: "the hosts of run 2 have changed no package in common: a on 1 of 2 hosts; b on 1 of 2 hosts"},
		"nothing at all":     {plans: map[string]string{"h01": "", "h02": "", "h03": ""}, want: "run 2 has changed nothing on any host"},
		"a plan is not kept": {plans: map[string]string{"h01": "a=1", "h02": "a=1"}, want: "the plans of h03 of run 2 are not kept; use a newer run"},
		"too large":          {plans: map[string]string{"h01": large(), "h02": large(), "h03": large()}, want: "what run 2 installed is no release: the release has "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				m.rollout = &v1.Rollout{MinPrepared: "1"}
				at, _ := m.control(t)
				m.beat("h01", "h02", "h03")
				synctest.Wait()
				r, err := at.Start(t.Context(), "test", start)
				if err != nil {
					t.Fatal(err)
				}
				for host, changes := range c.plans {
					m.plan(host, r, changes)
				}
				for _, host := range []string{"h01", "h02", "h03"} {
					result := message.Done
					if strings.Contains(c.fails, host) {
						result = message.Failed
					}
					m.answer(host, r, message.Prepare, result)
				}
				for _, host := range []string{"h01", "h02", "h03"} {
					m.answer(host, r, message.Upgrade, message.Done)
				}
				found, err := at.Installed(t.Context(), r.ID)
				got := ""
				if err != nil {
					got = err.Error()
				} else if got = strings.Join(found.Release.Packages.Only, " "); len(found.LeftOut) > 0 {
					got += "; left out " + strings.Join(found.LeftOut, ", ")
				}
				if got != c.want && (!strings.HasSuffix(c.want, " ") || !strings.HasPrefix(got, c.want)) {
					t.Errorf("it is %q, not %q", got, c.want)
				}
			})
		})
	}
}

// large is a plan that no release has room for.
func large() string {
	var all []string
	for n := range 900 {
		all = append(all, fmt.Sprintf("%s%03d=%s", strings.Repeat("lib", 20), n, strings.Repeat("1.", 20)))
	}
	return strings.Join(all, " ")
}

// plan keeps the plan of a host in a run, with changes as name=version.
func (m *memory) plan(host string, r v1.Run, changes string) {
	var plan message.ChangeSet
	for change := range strings.FieldsSeq(changes) {
		name, to, _ := strings.Cut(change, "=")
		plan.Changes = append(plan.Changes, message.Change{Name: name, To: to})
	}
	packed, err := message.PackPlan(plan)
	must(err)
	must(m.PutReport(context.Background(), "acme", host, report.Report{ID: report.ID{Kind: report.Plan, Run: r.ID}, Body: packed}))
}
