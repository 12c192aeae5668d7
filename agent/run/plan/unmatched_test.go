package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/rollout"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// threeHosts are what a site knows.
var threeHosts = plan.Known{
	Hosts: []plan.Host{
		{Name: "h01", Application: "appliance", Role: "gateway", Labels: map[string]string{"rack": "a", "example.com/zone": "north"}},
		{Name: "h02", Application: "appliance", Role: "edge", Labels: map[string]string{"rack": "b"}},
		{Name: "h03", Application: "database", Labels: map[string]string{"rack": ""}},
	},
	OnHosts: []string{"smoke"}, AtSite: []string{"fleet"},
}

// stages is a rollout with a stage for each match, and one for the rest.
func stages(all ...v1.Match) *v1.Rollout {
	r := &v1.Rollout{}
	for i, m := range all {
		r.Stages = append(r.Stages, v1.Stage{Name: fmt.Sprintf("s%d", i), Match: &m})
	}
	r.Stages = append(r.Stages, v1.Stage{Name: "rest"})
	return r
}

// TestUnmatched checks what is said of each part of an intent that matches no known host.
func TestUnmatched(t *testing.T) {
	t.Parallel()
	script := func(name string) []v1.Check { return []v1.Check{{Type: "exec", Script: name}} }
	for name, row := range map[string]struct {
		config  *v1.OSUpgrade
		rollout *v1.Rollout
		want    []string
	}{
		"nothing is declared": {},
		"applications": {
			config: &v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}, {Name: "applianse"}, {Name: "kiosk"}}},
			want: []string{
				`config.worker-applications[1].name: no known host has application "applianse"; did you mean appliance?`,
				`config.worker-applications[2].name: no known host has application "kiosk"; hosts have appliance, database`,
			},
		},
		"all match": {rollout: stages(v1.Match{Hosts: []string{"h01"}, Roles: []string{"gateway"}}, v1.Match{Labels: map[string]string{"rack": "b"}})},
		"entries of a stage": {
			rollout: stages(v1.Match{Hosts: []string{"h01", "h09"}, Roles: []string{"gatway"}, Applications: []string{"kiosk"}, Labels: map[string]string{"rack": "c", "room": "1", "example.com/zone": "south"}}),
			want: []string{
				`rollout.stages[0].match.hosts[1]: no known host is named "h09"`,
				`rollout.stages[0].match.labels["example.com/zone"]: no known host has "south" as label example.com/zone; hosts have north`,
				`rollout.stages[0].match.labels.rack: no known host has "c" as label rack; hosts have "", a, b`,
				`rollout.stages[0].match.labels.room: no known host has label room`,
				`rollout.stages[0].match.roles[0]: no known host has role "gatway"; did you mean gateway?`,
				`rollout.stages[0].match.applications[0]: no known host has application "kiosk"; hosts have appliance, database`,
			},
		},
		"no host has all of it": {
			rollout: stages(v1.Match{Hosts: []string{"h01"}, Roles: []string{"edge"}}),
			want:    []string{`rollout.stages[0].match: no known host matches all of it`},
		},
		"earlier stages have all": {
			rollout: stages(v1.Match{Applications: []string{"appliance"}}, v1.Match{Roles: []string{"edge", "gateway"}}),
			want:    []string{`rollout.stages[1].match: no host is left for it: each known host that it matches is exempt or in an earlier stage (h01, h02)`},
		},
		"exempt": {
			rollout: &v1.Rollout{
				Exempt: &v1.Match{Hosts: []string{"h02", "h07"}}, ExemptReboot: &v1.Match{Roles: []string{"Edge"}},
				Stages: []v1.Stage{{Name: "s", Match: &v1.Match{Hosts: []string{"h02"}}}},
			},
			want: []string{
				`rollout.exempt.hosts[1]: no known host is named "h07"`,
				`rollout.exempt-reboot.roles[0]: no known host has role "Edge"; did you mean edge?`,
				`rollout.stages[0].match: no host is left for it: each known host that it matches is exempt or in an earlier stage (h02)`,
			},
		},
		"scripts": {
			rollout: &v1.Rollout{
				Checks: &v1.RolloutChecks{BeforeHost: script("smoke"), AfterHost: append(script("smoke"), script("smoek")...), Fleet: append(script("smoke"), script("fleet")...)},
				Hooks:  &v1.RolloutHooks{Drain: &v1.Hook{Type: "exec", Script: "drain"}, Undrain: &v1.Hook{Type: "exec", Script: "undrain", On: "site"}},
			},
			want: []string{
				`rollout.checks.after-host[1].script: "smoek" is not in the --checks folder of any known host`,
				`rollout.hooks.drain.script: "drain" is not in the --checks folder of any known host`,
				`rollout.checks.fleet[0].script: "smoke" is not in the --checks folder of the site`,
				`rollout.hooks.undrain.script: "undrain" is not in the --checks folder of the site`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := plan.Intent{Config: row.config, Rollout: row.rollout}
			var got []string
			for _, w := range plan.Unmatched(intent, threeHosts) {
				got = append(got, w.String())
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("got\n%q\nwant\n%q", got, row.want)
			}
			if none := plan.Unmatched(intent, plan.Known{OnHosts: []string{}, AtSite: []string{}}); none != nil {
				t.Errorf("of a tenant without hosts it says %v", none)
			}
		})
	}
}

// TestUnmatchedIsBounded checks that of many entries the first are told, and how many follow.
func TestUnmatchedIsBounded(t *testing.T) {
	t.Parallel()
	var c v1.OSUpgrade
	for i := range 30 {
		c.WorkerApplications = append(c.WorkerApplications, v1.WorkerApplication{Name: fmt.Sprint("kiosk", i)})
	}
	got := plan.Unmatched(plan.Intent{Config: &c}, plan.Known{Hosts: []plan.Host{{Name: "h01", Application: "db"}}})
	if len(got) != 21 || got[20].String() != "config: 10 further parts match no known host" {
		t.Errorf("it says %v", got)
	}
}

// TestUnmatchedAgreesWithThePlan checks with random fleets that a stage of which nothing is
// said gets a host, and that one of which it is said that it gets none has none.
func TestUnmatchedAgreesWithThePlan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := func(of ...string) *rapid.Generator[[]string] {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, 2, rapid.ID[string])
		}
		match := func(label string) *v1.Match {
			m := &v1.Match{Hosts: some("h0", "h1", "h2", "h8", "h9").Draw(t, label+" hosts"), Roles: some("a", "b", "c").Draw(t, label+" roles")}
			if len(m.Hosts)+len(m.Roles) == 0 {
				return nil
			}
			return m
		}
		var fleet []plan.Host
		for i := range rapid.IntRange(1, 5).Draw(t, "hosts") {
			fleet = append(fleet, plan.Host{Name: fmt.Sprint("h", i), Role: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "role")})
		}
		r := &v1.Rollout{Exempt: match("exempt")}
		for i := range rapid.IntRange(1, 3).Draw(t, "stages") {
			if m := match("stage"); m != nil {
				r.Stages = append(r.Stages, v1.Stage{Name: fmt.Sprint("s", i), Match: m})
			}
		}
		planned, err := plan.New(r, fleet, reached.Course{})
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]bool{}
		for _, w := range plan.Unmatched(plan.Intent{Rollout: r}, plan.Known{Hosts: fleet}) {
			said[w.Field] = true
		}
		for i, s := range r.Stages {
			has := slices.ContainsFunc(planned.Rollout.Stages, func(p rollout.ResolvedStage) bool { return p.Name == s.Name })
			field, some := fmt.Sprintf("stages[%d].match", i), false
			for at := range said {
				some = some || strings.HasPrefix(at, field)
			}
			if said[field] && has || !some && !has {
				t.Fatalf("of %s it says %v, and it has hosts: %t", field, said, has)
			}
		}
	})
}

// TestDrifting checks which releases let hosts of one run get different versions of a package.
func TestDrifting(t *testing.T) {
	t.Parallel()
	packages := func(p release.Packages) v1.Release { return v1.Release{Packages: &p} }
	found := plan.Unmatched(plan.Intent{Releases: map[string]v1.Release{
		"all":      packages(release.Packages{}),
		"dated":    packages(release.Packages{Select: release.Security, AsOf: time.Now()}),
		"same":     packages(release.Packages{Same: true}),
		"exact":    packages(release.Packages{Select: release.Listed, Only: []string{"a=1", "b=2"}}),
		"by name":  packages(release.Packages{Select: release.Listed, Only: []string{"a=1", "b"}}),
		"security": packages(release.Packages{Select: release.Security, Only: []string{"a"}}),
		"scripts":  {Data: []byte(`1`)},
	}}, plan.Known{})
	var fields []string
	for _, w := range found {
		fields = append(fields, w.Object+" "+w.Field)
	}
	if want := []string{"releases.all packages.as-of", "releases.by name packages.as-of", "releases.security packages.as-of"}; !slices.Equal(fields, want) {
		t.Errorf("it warns of %q, not of %q", fields, want)
	}
}
