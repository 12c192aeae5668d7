package plan_test

import (
	"slices"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/reached"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestMissing checks which scripts a run is found to lack, where.
func TestMissing(t *testing.T) {
	t.Parallel()
	script := func(name string) []v1.Check { return []v1.Check{{Name: name, Type: "exec", Script: name}} }
	p, err := plan.New(&v1.Rollout{
		Checks: &v1.RolloutChecks{BeforeHost: script("before"), AfterHost: []v1.Check{{Type: "tcp", Address: "localhost:22"}}, Fleet: script("fleet")},
		Hooks:  &v1.RolloutHooks{Drain: &v1.Hook{Type: "exec", Script: "drain"}, Undrain: &v1.Hook{Type: "exec", Script: "undrain", On: "site"}},
	}, []plan.Host{{Name: "h01"}}, reached.Course{})
	if err != nil {
		t.Fatal(err)
	}
	bare, err := plan.New(nil, []plan.Host{{Name: "h01"}}, reached.Course{})
	if err != nil {
		t.Fatal(err)
	}
	const missing = " is not in the folder of --checks, or cannot be run"
	for name, row := range map[string]struct {
		plan    plan.Plan
		host    message.SelfReport
		site    []string
		missing []string
		atSite  []string
		unknown bool
	}{
		"everything": {p, message.SelfReport{Scripts: []string{"before", "drain"}}, []string{"fleet", "undrain"}, nil, nil, false},
		"nothing": {
			p,
			message.SelfReport{Scripts: []string{}},
			[]string{},
			[]string{"script before of check before" + missing, "script drain of hook drain" + missing},
			[]string{"script fleet of check fleet" + missing, "script undrain of hook undrain" + missing},
			false,
		},
		"the strategy lacks something": {p, message.SelfReport{Scripts: []string{"before", "drain"}, Lacks: []string{"no dpkg"}}, []string{"fleet", "undrain"}, []string{"no dpkg"}, nil, false},
		"nobody says":                  {p, message.SelfReport{Lacks: []string{"no dpkg"}}, nil, []string{"no dpkg"}, nil, true},
		"nothing is needed":            {bare, message.SelfReport{}, nil, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			missing, unknown := row.plan.Missing("h01", row.host)
			atSite, unknownAtSite := row.plan.MissingAtSite(row.site)
			if !slices.Equal(missing, row.missing) || !slices.Equal(atSite, row.atSite) || unknown != row.unknown || unknownAtSite != row.unknown {
				t.Errorf("a host lacks %q, %t, the site %q, %t", missing, unknown, atSite, unknownAtSite)
			}
		})
	}
}

// TestUsualOf checks what is learnt of a run for the next one.
func TestUsualOf(t *testing.T) {
	t.Parallel()
	at := v1.RunEvent{}.At
	r := v1.Run{ID: 7, Events: []v1.RunEvent{
		{Event: "prepare", At: at.Add(1e9)}, {Event: "answered prepare", At: at.Add(21e9)}, {Event: "answered prepare", At: at.Add(31e9)}, {Event: "upgrade", At: at.Add(90e9)},
	}}
	if u, known := plan.UsualOf(r); known {
		t.Errorf("a run without hosts took %+v", u)
	}
	for i := range 10 {
		r.Hosts = append(r.Hosts, v1.RunHost{Status: "upgraded", Seconds: 100 - i})
	}
	r.Hosts = append(r.Hosts, v1.RunHost{Status: "failed", Seconds: 5000})
	if u, known := plan.UsualOf(r); !known || u != (v1.Usual{Run: 7, PrepareSeconds: 30, HostSeconds: 99}) {
		t.Errorf("it took %+v, %t", u, known)
	}
}
