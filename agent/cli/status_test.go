package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestNextRunInTheWindow checks that status and watch tell a run that is opened again in
// an open window from the next window.
func TestNextRunInTheWindow(t *testing.T) {
	t.Parallel()
	opened := time.Date(2126, 11, 21, 2, 0, 0, 0, time.UTC)
	for want, next := range map[string]time.Time{"next run": opened.Add(15 * time.Minute), "next window": opened.AddDate(0, 0, 7)} {
		s := v1.Situation{Status: "idle", Hosts: 1, NextUpgradeAt: &next, OpenWindow: &v1.OpenWindow{Start: opened, End: opened.Add(time.Hour), Run: 2}}
		at := timeFlags{UTC: true}.format()
		found := ""
		for _, fact := range situationFacts(at, s, nil) {
			if strings.HasPrefix(fact[0], "next") {
				found = fact[0]
			}
		}
		var out bytes.Buffer
		newProgress(&out, &operator{ofTenant: ofTenant{Output: "text"}}, 0).showSituation(s)
		if found != want || !strings.Contains(out.String(), "the "+want) {
			t.Errorf("status tells of the %q, and watch says:\n%s", found, out.String())
		}
	}
}

// TestClockJump checks that status and watch tell of a jump of the site's clock, and
// watch of none that was before it began.
func TestClockJump(t *testing.T) {
	t.Parallel()
	to := time.Date(2026, 11, 21, 2, 0, 0, 0, time.UTC)
	for want, from := range map[string]time.Time{
		"was set back by 3d, to Sat 2026-11-21 02:00:00 UTC":                                  to.AddDate(0, 0, 3),
		"was set forward by 1h, to Sat 2026-11-21 02:00:00 UTC, or the machine was suspended": to.Add(-time.Hour),
	} {
		jumped := v1.Situation{Status: "idle", LastClockJump: &v1.ClockJump{From: from, To: to}}
		facts := situationFacts(timeFlags{UTC: true}.format(), jumped, nil)
		if last := facts[len(facts)-1]; last != [2]string{"clock", want} {
			t.Errorf("status tells %q, want %q", last, want)
		}
		var out bytes.Buffer
		p := newProgress(&out, &operator{ofTenant: ofTenant{Output: "text"}}, 0)
		p.showSituation(jumped)
		if strings.Contains(out.String(), "clock") {
			t.Errorf("watch tells of a jump before it began:\n%s", out.String())
		}
		jumped.LastClockJump = &v1.ClockJump{From: from.Add(time.Minute), To: to.Add(time.Minute)}
		p.showSituation(jumped)
		if !strings.Contains(out.String(), "the clock of the site was set") {
			t.Errorf("watch says:\n%s", out.String())
		}
	}
}

// TestRefusalFact checks how status tells of a disruption budget whose query keeps hosts in service.
func TestRefusalFact(t *testing.T) {
	t.Parallel()
	refusal := v1.BudgetRefusal{Budget: "databases", Since: time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC), Reason: "9, which is not below 5"}
	facts := situationFacts(timeFlags{UTC: true}.format(), v1.Situation{BudgetRefusals: []v1.BudgetRefusal{refusal}}, nil)
	want := [2]string{"budget", "databases: its query has kept hosts in service since Sat 2026-11-28 01:00:00 UTC: 9, which is not below 5"}
	if last := facts[len(facts)-1]; last != want {
		t.Errorf("status says %q, not %q", last, want)
	}
}

// TestBudgetFact checks how status tells of disruption budgets that have hosts out of service.
func TestBudgetFact(t *testing.T) {
	t.Parallel()
	for want, b := range map[string]v1.BudgetState{
		"racks, rack r1: 1 of at most 1 out of service: h07":      {Budget: "racks", Label: "rack", Value: "r1", MaxUnavailable: 1, OutOfService: 1, Hosts: []string{"h07"}},
		"racks, no rack: 2 of at most 1 out of service: h08, h09": {Budget: "racks", Label: "rack", MaxUnavailable: 1, OutOfService: 2, Hosts: []string{"h08", "h09"}},
		"fleet: 1 of at most 3 out of service: h07":               {Budget: "fleet", MaxUnavailable: 3, OutOfService: 1, Hosts: []string{"h07"}},
	} {
		facts := situationFacts(timeFlags{UTC: true}.format(), v1.Situation{Budgets: []v1.BudgetState{b}}, nil)
		if last := facts[len(facts)-1]; last != [2]string{"budget", want} {
			t.Errorf("status says %q, not %q", last, want)
		}
	}
}
