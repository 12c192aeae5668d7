package cli

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestTableOfTenants checks the order and the text of the table of all tenants.
func TestTableOfTenants(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *time.Time {
		at := now.Add(d)
		return &at
	}
	open := &v1.OpenWindow{Start: *in(-time.Hour), End: *in(3 * time.Hour)}
	statuses := []v1.TenantStatus{
		{Tenant: "aarau", Situation: &v1.Situation{Status: "idle", Hosts: 6, NextUpgradeAt: in(61 * time.Hour)}},
		{Tenant: "basel", Situation: &v1.Situation{Status: "upgrading", Hosts: 6, OpenWindow: open}, Run: &v1.Run{ID: 12, Phase: "upgrading"}, Counts: map[string]int{"upgraded": 3, "upgrading": 1, "prepared": 2}},
		{Tenant: "bern", Situation: &v1.Situation{Status: "waiting", Hosts: 6, OpenWindow: open}, Counts: map[string]int{"upgraded": 1, "failed": 1, "prepared": 4}, Run: &v1.Run{
			ID: 13, Phase: "upgrading", WaitingFor: &v1.WaitingFor{What: "approval", Stage: "rest"},
		}},
		{Tenant: "chur", Situation: &v1.Situation{Status: "idle"}},
		{Tenant: "davos", Trouble: "the agent is not ready"},
		{Tenant: "erlen", Situation: &v1.Situation{Status: "idle", Hosts: 6, NextUpgradeAt: in(20 * time.Minute)}},
		{Tenant: strings.Repeat("f", 60), Situation: &v1.Situation{Status: "idle", Hosts: 2, NextUpgradeAt: in(time.Hour), Frozen: &v1.WindowCut{Calendar: "xmas"}}},
	}
	var out strings.Builder
	at := timeFormat{now: now, zone: time.UTC}
	printGlances(newTerminal(&out), at, glances(at, statuses), false)
	const want = `TENANT                    NOW                PROGRESS          NEXT WINDOW    NEEDS YOU
davos                     unknown            -                 unknown        the agent is not ready
bern                      waiting, run 13    1 of 6, 1 failed  open, 3h left  let stage rest begin
chur                      idle               -                 none           no host belongs to th…
basel                     upgrading, run 12  3 of 6            open, 3h left  -
erlen                     idle               -                 in 20m         -
fffffffffffffffffffffff…  frozen             -                 in 1h          -
aarau                     idle               -                 in 2d13h       -
`
	if out.String() != want {
		t.Errorf("it is\n%swant\n%s", out.String(), want)
	}
}

// TestTableOfManyTenants checks that 60 tenants fit a screen of 60 lines and 100 columns, and that
// no tenant is left out in which something happens.
func TestTableOfManyTenants(t *testing.T) {
	t.Parallel()
	at := timeFormat{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), zone: time.UTC}
	next := at.now.Add(time.Hour)
	for name, row := range map[string]struct {
		idle, troubled, lines int
		each                  bool
		last                  string
	}{
		"one more than a screen": {59, 0, 60, false, "1 more tenant is idle and needs nothing; --all shows them."},
		"a screen":               {60, 0, 60, false, "2 more tenants are idle and need nothing; --all shows them."},
		"all of them":            {60, 0, 61, true, "t059"},
		"all need somebody":      {0, 70, 71, false, "t069"},
		"most need somebody":     {20, 50, 60, false, "12 more tenants are idle and need nothing; --all shows them."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var statuses []v1.TenantStatus
			for n := range row.idle + row.troubled {
				s := v1.TenantStatus{Tenant: fmt.Sprintf("t%03d", n), Situation: &v1.Situation{Status: "idle", Hosts: 2, NextUpgradeAt: &next}}
				if n >= row.idle {
					s.Situation.Silent, s.Situation.SilentHosts = 2, []string{"a-host-with-a-long-name.shop.example.com", "another-host-with-a-long-name.shop.example.com"}
				}
				statuses = append(statuses, s)
			}
			var out strings.Builder
			printGlances(newTerminal(&out), at, glances(at, statuses), row.each)
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != row.lines || !strings.HasPrefix(lines[len(lines)-1], row.last) {
				t.Errorf("%d lines, want %d that end with %s:\n%s", len(lines), row.lines, row.last, out.String())
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > 100 {
					t.Errorf("it is wider than 100 columns: %s", line)
				}
			}
		})
	}
}

// TestStatusOfAllTenants checks that one request shows all tenants, as text and as JSON.
func TestStatusOfAllTenants(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetHosts("acme", v1.Host{Hostname: "h01"})
	s.SetHosts("beta", v1.Host{Hostname: "h02"})
	s.AddRun("beta", v1.Run{ID: 7, Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h02", Stage: "all", Status: "upgrading"}, {Hostname: "h03", Stage: "all", Status: "failed", Error: "no space"}}})
	s.ForgetRequests()
	_, text, _ := call(t, as(t, s.URL, s.Token, "*", "status")...)
	code, inJSON, stderr := call(t, as(t, s.URL, s.Token, "*", "status", "--output", "json")...)
	if code != exitOK || !strings.Contains(text, "\nbeta    idle, run 7  0 of 2, 1 failed  ") || !strings.Contains(text, "\nacme ") {
		t.Errorf("exit code %d:\n%s%s", code, text, stderr)
	}
	if !strings.Contains(inJSON, `"tenant": "beta"`) || !strings.Contains(inJSON, `"h03"`) || strings.Contains(inJSON, `"h02"`) {
		t.Errorf("the JSON is\n%s", inJSON)
	}
	for _, r := range s.Requests() {
		if r.Path != "/v1/state/status" {
			t.Errorf("it asks for %s", r.Path)
		}
	}
	if code, _, stderr := call(t, as(t, s.URL, s.Token, "*", "status", "--label", "shop=basel")...); code != exitUsage || !strings.Contains(stderr, "--tenant '*' shows tenants and no hosts") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestNextWindowSkipped checks that the tables of status tell of a skipped window.
func TestNextWindowSkipped(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)
	at, next, skipped := timeFormat{now: now}, now.Add(24*time.Hour), &v1.SkippedWindow{}
	for want, s := range map[string]v1.Situation{
		"skipped, 3h left":           {OpenWindow: &v1.OpenWindow{Start: now, End: now.Add(3 * time.Hour)}, NextUpgradeAt: &next, SkippedWindow: skipped},
		"open, 3h left":              {OpenWindow: &v1.OpenWindow{Start: now, End: now.Add(3 * time.Hour)}, NextUpgradeAt: &next},
		"in 1d, after a skipped one": {NextUpgradeAt: &next, SkippedWindow: skipped},
		"in 1d":                      {NextUpgradeAt: &next},
	} {
		if got := (glance{TenantStatus: v1.TenantStatus{Situation: &s}}).nextWindow(at); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
