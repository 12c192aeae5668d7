//go:build linux

package e2e

import (
	"slices"
	"strings"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// recorded is the line of a deed of run 7. Before it is prepared it has no number.
func recorded(deed string) string {
	if strings.HasSuffix(deed, "is ready") {
		return deed + " "
	}
	return deed + " 7"
}

// TestViolations checks that whoever judges a run of the kill matrix sees each
// kind of violation.
func TestViolations(t *testing.T) {
	t.Parallel()
	calm := strings.Split("site is ready,h01 is ready,h02 is ready,h03 is ready,h01 prepares,h01 drains,h01 upgrade begins,h01 upgrade ends,h01 undrains,"+
		"h03 drains,h03 upgrade begins,h03 upgrade ends,h03 reboots,h03 undrains,h01 joins,"+
		"h02 drains,h02 upgrade begins,h02 upgrade ends,h02 rolls back,h02 undrains,site completes", ",")
	run := v1.Run{ID: 7, Result: "partial", Hosts: []v1.RunHost{
		{Hostname: "h01", Status: "upgraded"}, {Hostname: "h02", Status: "failed"}, {Hostname: "h03", Status: "upgraded"},
	}}
	for name, c := range map[string]struct {
		insert, before, without string
		want                    string
	}{
		"calm":                         {},
		"upgraded twice":               {"h01 upgrade begins", "h01 undrains", "", `"h01 upgrade begins 7" happened 2 times`},
		"rebooted twice":               {"h03 reboots", "h03 undrains", "", `"h03 reboots 7" happened 2 times`},
		"two out of service":           {"h03 drains", "h01 undrains", "", "2 hosts are out of service"},
		"drained for good":             {"", "", "h01 undrains", "h01 is left out of service"},
		"drained after it was over":    {"h01 drains", "h03 drains", "", "h01 is drained after it was undrained"},
		"upgraded in service":          {"", "", "h01 drains", `"h01 upgrade begins 7" happened in service`},
		"not upgraded":                 {"", "", "h03 upgrade ends", "h03 was upgraded 0 times"},
		"not rolled back":              {"", "", "h02 rolls back", "h02 was not rolled back"},
		"a host is not asked":          {"", "", "h02 is ready", `"h01 prepares 7" happened before h02 was ready`},
		"the site is asked too late":   {"site is ready", "h01 drains", "site is ready", `"h01 prepares 7" happened before site was ready`},
		"a step not done":              {"", "", "h01 joins", "its steps were done 0 and 1 times"},
		"a step before its turn":       {"h01 joins", "h03 undrains", "", "happened while a host before it is out of service"},
		"a step after its turn":        {"h02 upgrade begins", "h01 joins", "", "happened before the step before it"},
		"the last step too early":      {"site completes", "h02 undrains", "", "happened while hosts are out of service"},
		"a host after the last step":   {"site completes", "h03 upgrade begins", "h01 undrains", "happened after the step after it"},
		"something that no script did": {"nonsense", "h01 drains", "", "was recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expect(t, violations(run, crashHosts, changed(calm, c.insert, c.before, c.without)), c.want)
		})
	}
	if bad := violations(run, crashHosts, []string{"h01 prepares 6"}); !slices.Contains(bad, `"h01 prepares 6" was recorded during run 7`) {
		t.Error("what was done for another run goes unnoticed")
	}
}

// TestRollbackViolations checks that whoever judges a rollback of the kill matrix sees each kind of violation.
func TestRollbackViolations(t *testing.T) {
	t.Parallel()
	calm := strings.Split("site is ready,h01 is ready,h03 is ready,h03 can go back,h01 can go back,site reopens,h01 leaves,"+
		"h01 drains,h01 rolls back,h01 is changed,h01 undrains,"+
		"h03 drains,h03 rolls back,h03 is changed,h03 reboots,h03 rolls back,h03 undrains", ",")
	forwards := strings.Split("site is ready,h01 is ready,h03 is ready,h01 can go back,h03 can go back,"+
		"h01 drains,h01 rolls back,h01 is changed,h01 undrains,"+
		"h03 drains,h03 rolls back,h03 is changed,h03 reboots,h03 rolls back,h03 undrains,h01 joins,site completes", ",")
	half := func(status, why string) func(*v1.Run, *rollback) {
		return func(r *v1.Run, b *rollback) {
			b.half, b.has["h03"] = true, b.from["h03"]
			r.Result, r.Hosts[1].Status, r.Hosts[1].Error = "aborted", status, why
		}
	}
	begun := slices.Index(calm, "h03 drains")
	lost := v1.RunHost{Hostname: "h03", Status: "failed", Error: "the reboot was asked for before, and the machine did not reboot"}
	for name, c := range map[string]struct {
		deeds                   []string
		insert, before, without string
		change                  func(*v1.Run, *rollback)
		want                    string
	}{
		"calm":                        {deeds: calm},
		"forwards again":              {deeds: forwards},
		"a script is run again":       {deeds: calm, insert: "h01 leaves", before: "h01 drains"},
		"a reboot is lost, and named": {deeds: calm, without: "h03 reboots", change: func(r *v1.Run, _ *rollback) { r.Result, r.Hosts[1] = "partial", lost }},
		"false done": {
			deeds: calm, without: "h03 is changed", change: func(_ *v1.Run, b *rollback) { b.has["h03"] = "5" },
			want: "h03 is said to be back, and has 5 in place of 0",
		},
		"another version":              {deeds: calm, change: func(_ *v1.Run, b *rollback) { b.has["h01"] = "3" }, want: "h01 is said to be back, and has 3 in place of 0"},
		"failed without a kill":        {deeds: calm, change: func(r *v1.Run, _ *rollback) { r.Hosts[0].Status, r.Hosts[0].Error = "failed", "why" }, want: "h01 is failed: why"},
		"not named":                    {deeds: calm, change: func(r *v1.Run, _ *rollback) { r.Hosts = r.Hosts[:1] }, want: "h03 is not in the run"},
		"partial":                      {deeds: calm, change: func(r *v1.Run, _ *rollback) { r.Result = "partial" }, want: "the run ended as partial"},
		"of another run":               {deeds: calm, change: func(r *v1.Run, _ *rollback) { r.RollbackOf = 3 }, want: "the run rolls back run 3 in place of 5"},
		"changed twice":                {deeds: calm, insert: "h01 is changed", before: "h01 undrains", want: `"h01 is changed 7" happened 2 times`},
		"rebooted twice":               {deeds: calm, insert: "h03 reboots", before: "h03 undrains", want: `"h03 reboots 7" happened 2 times`},
		"not rebooted":                 {deeds: calm, without: "h03 reboots", want: "h03 is said to be back, and was not rebooted"},
		"changed in service":           {deeds: calm, without: "h01 drains", want: `"h01 is changed 7" happened in service`},
		"drained for good":             {deeds: calm, without: "h03 undrains", want: "h03 is left out of service"},
		"two out of service":           {deeds: calm, insert: "h03 drains", before: "h01 undrains", want: "2 hosts are out of service"},
		"a host found no way back yet": {deeds: calm, without: "h03 can go back", want: `"site reopens 7" happened before h03 could go back`},
		"a host is not asked":          {deeds: calm, without: "h03 is ready", want: `"h03 can go back 7" happened before h03 was ready`},
		"a step not undone":            {deeds: calm, without: "site reopens", want: `it did ["leaves" "hosts"]`},
		"steps in the order of before": {deeds: calm, insert: "h01 leaves", before: "site reopens", want: `it did ["leaves" "reopens" "hosts"]`},
		"a step after the hosts":       {deeds: calm, insert: "h01 drains", before: "site reopens", want: `"site reopens 7" happened while hosts are out of service`},
		"a step not done again":        {deeds: forwards, without: "h01 joins", want: `it did ["hosts" "completes"]`},
		"a step done too early":        {deeds: forwards, insert: "h01 joins", before: "h03 undrains", want: `"h01 joins 7" happened while hosts are out of service`},
		"a step between the hosts":     {deeds: forwards, insert: "h01 joins", before: "h03 drains", want: `"h03 drains 7" happened after "joins"`},
		"aborted half-way":             {deeds: calm[:begun], change: half("skipped", "the run was aborted")},
		"aborted in a reboot":          {deeds: calm, without: "h03 reboots", change: half("failed", "the run ended before it was rebooted")},
		"said not to be begun":         {deeds: calm, change: half("skipped", "the run was aborted"), want: "h03 is skipped"},
		"aborted, and half of it done": {deeds: calm[:begun], change: half("upgraded", ""), want: "h03 is said to be back, and has 5 in place of 0"},
		"aborted by nobody":            {deeds: calm, change: func(r *v1.Run, _ *rollback) { r.Result = "aborted" }, want: "the run ended as aborted"},
		"a host that was back":         {deeds: calm, change: func(_ *v1.Run, b *rollback) { delete(b.was, "h01") }, want: `"h01 is changed 7" happened on a host that was back before`},
		"upgraded":                     {deeds: calm, insert: "h01 upgrade begins", before: "h01 undrains", want: `"h01 upgrade begins 7" is no part of a rollback`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := v1.Run{ID: 7, RollbackOf: 5, Result: "completed", Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}, {Hostname: "h03", Status: "upgraded"}}}
			back := rollback{of: 5, from: map[string]string{"h01": "5", "h03": "5"}, was: map[string]string{"h01": "0", "h03": "0"}, has: map[string]string{"h01": "0", "h03": "0"}, parts: []string{"reopens", "leaves", ofHosts}}
			if slices.Contains(c.deeds, "h01 joins") {
				back.parts = []string{ofHosts, "joins", "completes"}
			}
			if c.change != nil {
				c.change(&run, &back)
			}
			expect(t, rollbackViolations(run, back, changed(c.deeds, c.insert, c.before, c.without)), c.want)
		})
	}
	if bad := rollbackViolations(v1.Run{ID: 7}, rollback{}, []string{"h01 leaves 6"}); !slices.Contains(bad, `"h01 leaves 6" was recorded during run 7`) {
		t.Error("what was done for another run goes unnoticed")
	}
}

// changed are the lines of some deeds, with one inserted before another, and without one.
func changed(deeds []string, insert, before, without string) (lines []string) {
	for _, deed := range deeds {
		if deed == before {
			lines = append(lines, recorded(insert))
		}
		if deed != without {
			lines = append(lines, recorded(deed))
		}
	}
	return lines
}

// expect checks that a violation is among those found, or that there is none.
func expect(t *testing.T, bad []string, want string) {
	t.Helper()
	if want == "" && len(bad) > 0 || want != "" && !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, want) }) {
		t.Errorf("the violations are %q, and not %q", bad, want)
	}
}
