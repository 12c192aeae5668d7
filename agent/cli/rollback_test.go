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
		"the last run": func(to *terminal) {
			to.line(lastRun(timeFormat{zone: time.UTC}, v1.Host{LastRun: &v1.HostRun{ID: 100, RollbackOf: 85, Status: "upgraded"}}))
		},
		"the advice": func(to *terminal) {
			ended := r
			ended.Hosts = append(ended.Hosts, v1.RunHost{Hostname: "h04", Stage: "rest", Status: "failed"})
			for _, a := range adviseEnded(v1.Situation{}, ended) {
				to.line(a.what + ": " + a.command)
			}
		},
		"the rehearsal": func(to *terminal) { showPreflight(to, timeFormat{zone: time.UTC}, v1.Preflight{Run: &r}) },
	}
	want := map[string][]string{
		"the table of hosts":  {"back", "going-back", "prepared"},
		"the table of stages": {"BACK"},
		"the last run":        {"100 back"},
		"the advice":          {"then go on with the rollback: osupgrade-agent rollback 85"},
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

// TestRollbackOfNewest checks that a rollback that names no run may say how long it takes.
func TestRollbackOfNewest(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.AddRun("acme", v1.Run{ID: 7, Phase: "finished", Result: "completed", Stages: []v1.RunStage{{Name: "all", Hosts: 1, Upgraded: 1}}})
	for _, c := range []struct {
		duration, want string
		code           int
	}{
		{"1x", `--duration: "1x"`, exitUsage},
		{"2h", "", exitOK},
	} {
		code, _, stderr := callWith(t, "", as(t, s.URL, s.Token, "acme", "rollback", "--reason", "it is slow", "--duration", c.duration)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d: %s", c.duration, code, stderr)
		}
	}
	if last := s.Runs("acme")[0]; last.RollbackOf != 7 {
		t.Errorf("it starts %+v", last)
	}
}
