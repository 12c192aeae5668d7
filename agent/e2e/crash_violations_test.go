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
			var lines []string
			for _, deed := range calm {
				if deed == c.before {
					lines = append(lines, recorded(c.insert))
				}
				if deed != c.without {
					lines = append(lines, recorded(deed))
				}
			}
			bad := violations(run, crashHosts, lines)
			if c.want == "" && len(bad) > 0 || c.want != "" && !slices.ContainsFunc(bad, func(b string) bool { return strings.Contains(b, c.want) }) {
				t.Errorf("the violations are %q, and not %q", bad, c.want)
			}
		})
	}
	if bad := violations(run, crashHosts, []string{"h01 prepares 6"}); !slices.Contains(bad, `"h01 prepares 6" was recorded during run 7`) {
		t.Error("what was done for another run goes unnoticed")
	}
}
