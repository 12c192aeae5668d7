package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestRollbackIsShownAsOne checks that a host which a rollback has brought back is nowhere shown as
// upgraded, and that a rehearsal says nothing of what an upgrade would change.
func TestRollbackIsShownAsOne(t *testing.T) {
	t.Parallel()
	r := v1.Run{
		ID: 100, RollbackOf: 85, RollbackSince: 47, Stages: []v1.RunStage{{Name: "rest", Hosts: 2, Upgraded: 1}, {Name: "canary", Hosts: 1}},
		Hosts: []v1.RunHost{{Hostname: "h02", Stage: "rest", Status: "upgraded"}, {Hostname: "h03", Stage: "rest", Status: "upgrading"}, {Hostname: "h01", Stage: "canary", Status: "prepared"}},
	}
	shows := map[string]func(*terminal){
		"the table of hosts":  func(to *terminal) { hostTable(to, timeFormat{zone: time.UTC}, r, r.Hosts) },
		"the table of stages": func(to *terminal) { showStages(to, r) },
		"the progress":        func(to *terminal) { to.line(progressLine(r)) },
		"the rehearsal":       func(to *terminal) { showPreflight(to, timeFormat{zone: time.UTC}, v1.Preflight{Run: &r}) },
	}
	want := map[string][]string{
		"the table of hosts":  {"back", "going-back", "prepared"},
		"the table of stages": {"BACK"},
		"the progress":        {"1 of 3 hosts rolled back"},
		"the rehearsal":       {"rolls back:", "runs 47 to 85", "each host finds out in prepare"},
	}
	for name, show := range shows {
		never := []string{"upgraded", "UPGRADED"}
		if name == "the rehearsal" {
			never = []string{"changes unknown", "--refresh"}
		}
		var out strings.Builder
		show(&terminal{out: &out, width: 120})
		for _, part := range want[name] {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%s has no %q:\n%s", name, part, out.String())
			}
		}
		for _, part := range never {
			if strings.Contains(out.String(), part) {
				t.Errorf("%s has %q:\n%s", name, part, out.String())
			}
		}
	}
}

// TestRollbackOfNewest checks that the command finds out which run is meant before it says what is wrong with
// the request, and names the environment that has no such run.
func TestRollbackOfNewest(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	rollback := func(args ...string) (code int, stderr string) {
		code, _, stderr = callWith(t, "", as(t, s.URL, s.Token, "acme", append([]string{"rollback", "--reason", "it is slow"}, args...)...)...)
		return code, stderr
	}
	s.SetEnvironments("acme", v1.EnvironmentStatus{Name: "default"}, v1.EnvironmentStatus{Name: "basel"})
	if code, stderr := rollback("--environment", "basel"); code != exitFailed || !strings.Contains(stderr, "no run of environment basel has upgraded a host") {
		t.Errorf("of an environment without runs: exit code %d: %s", code, stderr)
	}
	s.AddRun("acme", v1.Run{ID: 7, Phase: "finished", Result: "completed", Stages: []v1.RunStage{{Name: "all", Hosts: 1, Upgraded: 1}}})
	if code, stderr := rollback("--duration", "1x"); code != exitUsage || !strings.Contains(stderr, `--duration: "1x"`) {
		t.Errorf("with a wrong duration: exit code %d: %s", code, stderr)
	}
	if code, stderr := rollback("--duration", "2h"); code != exitOK {
		t.Errorf("with a duration: exit code %d: %s", code, stderr)
	}
	if last := s.Runs("acme")[0]; last.RollbackOf != 7 {
		t.Errorf("it starts %+v", last)
	}
	all := []v1.RunStage{{Name: "all", Hosts: 1, Upgraded: 1}}
	s.EditRun("acme", s.Runs("acme")[0].ID, func(r *v1.Run) { r.Phase, r.Result, r.Stages = "finished", "completed", all })
	again := s.AddRun("acme", v1.Run{RollbackOf: s.Runs("acme")[0].ID, Phase: "finished", Result: "completed", Stages: all})
	if code, stderr := rollback(); code != exitOK || s.Runs("acme")[0].RollbackOf != again {
		t.Errorf("of a rollback of a rollback: exit code %d: %s; it starts %+v", code, stderr, s.Runs("acme")[0])
	}
}
