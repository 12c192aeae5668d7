package run

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func TestChanges_readLikeAStory(t *testing.T) {
	t.Parallel()
	host := func(name, status, problem string) v1.RunHost {
		return v1.RunHost{Hostname: name, Status: status, Error: problem}
	}
	waiting := &v1.WaitingFor{What: "host", Detail: "h02 to answer upgrade"}
	story := []struct {
		run   v1.Run
		lines []string
	}{
		{v1.Run{ID: 41, Phase: "preparing", Hosts: []v1.RunHost{host("h01", "preparing", ""), host("h02", "preparing", "")}}, []string{
			"run 41 is preparing: 0 of 2 hosts upgraded", "host h01 is preparing", "host h02 is preparing",
		}},
		{v1.Run{ID: 41, Phase: "preparing", Hosts: []v1.RunHost{host("h01", "prepared", ""), host("h02", "preparing", "")}}, []string{"host h01 is prepared"}},
		{v1.Run{ID: 41, Phase: "upgrading", WaitingFor: waiting, Hosts: []v1.RunHost{host("h01", "upgraded", ""), host("h02", "upgrading", "")}}, []string{
			"run 41 is upgrading: 1 of 2 hosts upgraded", "run 41 waits for host: h02 to answer upgrade", "host h01 is upgraded", "host h02 is upgrading",
		}},
		{v1.Run{ID: 41, Phase: "upgrading", WaitingFor: waiting, Hosts: []v1.RunHost{host("h01", "upgraded", ""), host("h02", "upgrading", "")}}, nil},
		{v1.Run{ID: 41, Phase: "finished", Result: "failed", Reason: "h02 failed", Hosts: []v1.RunHost{host("h01", "upgraded", ""), host("h02", "failed", "no space")}}, []string{
			"run 41 is finished: 1 of 2 hosts upgraded", "host h02 is failed: no space", "run 41 ended: failed: h02 failed",
		}},
	}
	var prior v1.Run
	for _, row := range story {
		for _, brief := range []bool{false, true} {
			if got := changes(prior, row.run, brief); !slices.Equal(got, row.lines) {
				t.Errorf("got %q, want %q", got, row.lines)
			}
		}
		prior = row.run
	}
}

// TestChanges_brief: of a fleet a person is told the hosts that do not do well, and a line for
// each percent.
func TestChanges_brief(t *testing.T) {
	t.Parallel()
	run := v1.Run{ID: 41, Phase: "upgrading", WaitingFor: &v1.WaitingFor{What: "host", Detail: "h0001 to answer upgrade"}}
	for i := range 1000 {
		run.Hosts = append(run.Hosts, v1.RunHost{Hostname: fmt.Sprintf("h%04d", i), Status: "upgrading"})
	}
	told := changes(v1.Run{}, run, true)
	for i := range run.Hosts {
		next := run
		next.Hosts = slices.Clone(run.Hosts)
		next.Hosts[i].Status = "upgraded"
		next.WaitingFor = &v1.WaitingFor{What: "host", Detail: next.Hosts[i].Hostname + " to answer upgrade"}
		if i == 500 {
			next.Hosts[i].Status, next.Hosts[i].Error = "failed", "no space"
		}
		told = append(told, changes(run, next, true)...)
		run = next
	}
	// Two for the beginning, one for each percent below 100, one for the failure.
	if len(told) != 2+99+1 {
		t.Errorf("%d lines are told: %q", len(told), told)
	}
	if !slices.Contains(told, "host h0500 is failed: no space") || !slices.Contains(told, "run 41 is upgrading: 500 of 1000 hosts upgraded") {
		t.Errorf("the failure or a percent is missing: %q", told)
	}
}

// TestJudgeRollback: a rollback that has left hosts is gone on with. A retry of it would be refused.
func TestJudgeRollback(t *testing.T) {
	t.Parallel()
	for _, w := range []waiter{resourceWaiter, startWaiter, rollbackWaiter} {
		var diags diag.Diagnostics
		w.judge("acme", v1.Run{ID: 41, RollbackOf: 39, Result: "partial"}, false, &diags)
		if d := diags[0]; d.Summary() != "Not all hosts of "+w.typeName+" were rolled back" || !strings.Contains(d.Detail(), "start the rollback of run 39 again, which goes on with them") || strings.Contains(d.Detail(), "retry_of") {
			t.Errorf("got %s: %s", d.Summary(), d.Detail())
		}
		var warnings diag.Diagnostics
		w.judge("acme", v1.Run{ID: 41, RollbackOf: 39, Result: "partial"}, true, &warnings)
		if d := warnings[0]; d.Severity() != diag.SeverityWarning || d.Summary() != "Not all hosts of "+w.typeName+" were rolled back" {
			t.Errorf("if such a result is accepted: got %s: %s", d.Severity(), d.Summary())
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	hosts := []v1.RunHost{{Hostname: "h01", Status: "upgraded"}, {Hostname: "h02", Status: "failed", Error: "no space"}}
	for name, row := range map[string]struct {
		result           string
		accepted         bool
		errors, warnings int
		says             string
	}{
		"completed":     {"completed", true, 0, 0, ""},
		"partial":       {"partial", false, 1, 0, `retry_of = 41.*accept = \["completed", "partial"\]`},
		"partial is ok": {"partial", true, 0, 1, ""},
		"failed":        {"failed", false, 1, 0, "apply again"},
		"failed is ok":  {"failed", true, 0, 1, ""},
		"timed out":     {"timed-out", false, 1, 0, ""},
		"none":          {"", false, 1, 0, ""},
		"something new": {"something new", false, 1, 0, ""},
		"not even all":  {"completed", false, 1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var diags diag.Diagnostics
			resourceWaiter.judge("acme", v1.Run{ID: 41, Result: row.result, Reason: "because", Hosts: hosts}, row.accepted, &diags)
			if diags.ErrorsCount() != row.errors || diags.WarningsCount() != row.warnings {
				t.Fatalf("got %v, want %d errors and %d warnings", diags, row.errors, row.warnings)
			}
			for _, d := range diags {
				if !strings.Contains(d.Detail(), "because") || !strings.Contains(d.Detail(), "host h02 is failed: no space") || strings.Contains(d.Detail(), "h01") {
					t.Errorf("got %q, want the reason and the host that failed", d.Detail())
				}
				if !regexp.MustCompile(row.says).MatchString(d.Detail()) {
					t.Errorf("got %q, want %q", d.Detail(), row.says)
				}
			}
		})
	}
}
