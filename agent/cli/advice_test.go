package cli

import (
	"strings"
	"testing"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestAdvice checks what a person is told to do, and that each command that is advised
// can be typed as it is, with a reason in place of the dots.
func TestAdvice(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	until := at.Add(time.Hour)
	idle := v1.Situation{Status: "idle", Hosts: 3, NextUpgradeAt: &until}
	under := func(w v1.WaitingFor, paused string) *v1.Run {
		return &v1.Run{ID: 7, Phase: "upgrading", OpenedAt: at, WaitingFor: &w, Paused: paused}
	}
	ended := &v1.Run{ID: 7, Phase: "finished", OpenedAt: at, Hosts: []v1.RunHost{{Hostname: "h01", Status: "failed"}, {Hostname: "h02", Status: "upgraded"}}}
	unreached := &v1.Run{ID: 7, Phase: "finished", OpenedAt: at, Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}, {Hostname: "h02", Status: "unreachable"}}}
	for name, c := range map[string]struct {
		s    v1.Situation
		r    *v1.Run
		want string
	}{
		"idle":                  {idle, nil, ""},
		"nothing is declared":   {v1.Situation{Status: "idle"}, nil, "start a worker on each host (needs the right \"write\"): osupgrade-agent apply -f FILE"},
		"no window":             {v1.Situation{Status: "idle", Hosts: 3}, nil, "declare a window, because none ever opens (needs the right \"write\"): osupgrade-agent apply -f FILE"},
		"a window without run":  {v1.Situation{Hosts: 3, OpenWindow: &v1.OpenWindow{}, WaitingFor: &v1.WaitingFor{Detail: "a host to come back"}}, nil, "the open window waits for a host to come back"},
		"no window is open":     {v1.Situation{Hosts: 3, WaitingFor: &v1.WaitingFor{Detail: "somebody to repair a calendar"}}, nil, "no run starts: the site waits for somebody to repair a calendar"},
		"a missed window":       {v1.Situation{Hosts: 3, NextUpgradeAt: &until, LastMissed: &v1.MissedWindow{Start: at}}, nil, "to make up for the missed window of Sat 2026-11-21 01:00:00 UTC before the next one: osupgrade-agent start --override-window --reason …"},
		"missed before the run": {v1.Situation{Hosts: 3, NextUpgradeAt: &until, LastMissed: &v1.MissedWindow{Start: at.Add(-time.Hour)}}, &v1.Run{ID: 7, Phase: "finished", OpenedAt: at}, ""},
		"a silent host":         {v1.Situation{Hosts: 3, NextUpgradeAt: &until, Silent: 12, SilentHosts: []string{"h01", "h02", "h03", "h04", "h05"}}, nil, "12 silent hosts (h01, h02, h03, h04, h05 and 7 more): osupgrade-agent hosts\ndelete a host that no longer exists (needs the right \"write\"): osupgrade-agent forget h01 --reason …"},
		"a host failed":         {idle, ended, "look at 1 failed host (h01): osupgrade-agent runs 7\nthen retry before the next window: osupgrade-agent retry 7 --override-window --reason …"},
		"failed, still open":    {v1.Situation{Hosts: 3, OpenWindow: &v1.OpenWindow{}}, ended, "osupgrade-agent retry 7"},
		"one cause": {idle, &v1.Run{ID: 7, Phase: "finished", OpenedAt: at, Hosts: []v1.RunHost{
			{Hostname: "h01", Status: "failed", Error: "cannot reach deb.example"}, {Hostname: "h02", Status: "failed", Error: "no space left"}, {Hostname: "h03", Status: "failed", Error: "cannot reach deb.example"},
		}}, "look at 2 failed hosts (h01, h03): cannot reach deb.example: osupgrade-agent runs 7\nlook at 1 failed host (h02): osupgrade-agent runs 7\nthen retry"},
		"a host is back":    {idle, unreached, "retry 1 host that was unreachable and is back (h02): osupgrade-agent retry 7 --override-window --reason …"},
		"a host stays away": {v1.Situation{Hosts: 3, NextUpgradeAt: &until, Silent: 1, SilentHosts: []string{"h02"}}, unreached, "look at 1 silent host (h02): osupgrade-agent hosts"},
		"a host is overdue": {
			idle, &v1.Run{ID: 7, Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgrading", Since: &at, OverdueSince: &until}}},
			"look at h01, upgrading since Sat 2026-11-21 01:00:00 UTC, which is unusually long: osupgrade-agent runs 7 --host h01 --output\nor stop waiting for h01: osupgrade-agent release h01 --reason …",
		},
		"paused by failures": {idle, under(v1.WaitingFor{What: "resume"}, "by on-failure: 2 hosts failed"), "or resume it and reset its failure count: osupgrade-agent resume --reset-failures --reason …"},
		"paused by a step": {idle, &v1.Run{
			ID: 7, Phase: "upgrading", Paused: "by on-failure: the step of stage swact failed: exit status 1", WaitingFor: &v1.WaitingFor{What: "resume", Stage: "swact"},
			Stages: []v1.RunStage{{Name: "standby", Phase: "done"}, {Name: "swact", Phase: "failed", Step: &v1.RunStep{Tries: 1, Error: "exit status 1"}}},
		}, "repair what step swact needs, then resume the run: it does the step again: osupgrade-agent resume --reason …\nor end it: osupgrade-agent abort --reason …"},
		"a step failed while paused": {
			idle, under(v1.WaitingFor{What: "resume", Stage: "swact"}, "by ann: lunch"),
			"repair what step swact needs, then resume the run: it does the step again: osupgrade-agent resume --reason …\nor end it: osupgrade-agent abort --reason …",
		},
		"a step without a host": {
			idle, under(v1.WaitingFor{What: "host", Stage: "swact"}, ""),
			"bring up a host that step swact matches: osupgrade-agent hosts\nor end the run: osupgrade-agent abort --reason …",
		},
		"aborting during a step": {idle, &v1.Run{
			ID: 7, Phase: "upgrading", Aborted: "by ann: wrong release", Stages: []v1.RunStage{{Name: "swact", Phase: "running", Step: &v1.RunStep{Since: &at}}},
		}, "wait for step swact, or end the run at once: osupgrade-agent abort --now --reason …"},
		"ended by a step": {idle, &v1.Run{
			ID: 7, Phase: "finished", Result: "failed", Stages: []v1.RunStage{{Name: "swact", Phase: "failed", Step: &v1.RunStep{Tries: 1, Error: "exit status 1"}}},
		}, "repair what step swact needs: osupgrade-agent runs 7"},
		"a query": {
			idle, under(v1.WaitingFor{What: "budget", Budget: "q", Detail: "budget q to allow it: 9, which is not below 5 (query max(lag) at http://prometheus:9090)"}, ""),
			"wait until the query of the disruption budget allows it, or edit the budget (needs the right \"write\"): osupgrade-agent edit budgets",
		},
		"a host is still out":   {idle, &v1.Run{ID: 7, Phase: "finished", OpenedAt: at, Hosts: []v1.RunHost{{Hostname: "h01", Status: "failed", SlotReason: "nobody knows what it did"}}}, "look at 1 host that may be out of service (h01), and release each that is healthy: osupgrade-agent release h01 --reason …\nthen retry before the next window: osupgrade-agent retry 7"},
		"a host at work":        {idle, under(v1.WaitingFor{What: "host", Hosts: []string{"h01"}, Until: &until}, ""), ""},
		"a stage soaks":         {idle, under(v1.WaitingFor{What: "soak", Until: &until, Stage: "canary"}, ""), ""},
		"an approval":           {idle, under(v1.WaitingFor{What: "approval", Until: &until, Stage: "rest"}, ""), "let stage rest begin (needs the role \"approver\"): osupgrade-agent approve rest --reason …\nor end the run: osupgrade-agent abort --reason …"},
		"slots are held":        {idle, under(v1.WaitingFor{What: "slot", Hosts: []string{"h01"}}, ""), "release h01 --reason …\nor delete h01 if it no longer exists (needs the right \"write\"): osupgrade-agent forget h01 --reason …"},
		"a host is busy":        {idle, under(v1.WaitingFor{What: "idle", Hosts: []string{"h01"}}, ""), "wait, or see on h01 what keeps it busy: osupgrade-agent busy --list"},
		"paused by ann":         {idle, under(v1.WaitingFor{What: "resume"}, "by ann: lunch"), "resume the run: osupgrade-agent resume --reason …"},
		"paused by the rollout": {idle, under(v1.WaitingFor{What: "resume"}, "by rollout"), `set "paused" to false in the rollout (needs the right "write"): osupgrade-agent edit rollout`},
		"paused by the agent":   {idle, under(v1.WaitingFor{What: "resume", Detail: "somebody to repair a calendar"}, "by the agent itself: x"), "repair what cannot be read: somebody to repair a calendar"},
		"paused meanwhile":      {idle, under(v1.WaitingFor{What: "host", Hosts: []string{"h01"}, Until: &until}, "by ann: lunch"), "resume the run: osupgrade-agent resume --reason …"},
		"aborting":              {idle, &v1.Run{ID: 7, Phase: "upgrading", Aborted: "by ann: wrong release"}, "or end the run at once: osupgrade-agent abort --now --reason …"},
		"a fleet check":         {idle, under(v1.WaitingFor{What: "check", Detail: "the checks of the fleet, which failed: 503"}, ""), "look at the checks of the fleet, which failed: 503"},
		"an older copy":         {v1.Situation{WaitingFor: &v1.WaitingFor{What: "log", Detail: "x; run osupgrade-agent recover"}, Hosts: 3}, nil, "or let it continue with this log: osupgrade-agent recover --data DIR"},
		"a full disk":           {idle, &v1.Run{ID: 7, Phase: "upgrading", Reason: "the log takes no record: no space left"}, "repair the site, because the log takes no record: no space left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := advised(t, at, c.s, c.r); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("the advice is\n%s\nnot\n%s", got, c.want)
			}
		})
	}
}

// advised is the advice in lines, each command of which can be typed.
func advised(t *testing.T, at time.Time, s v1.Situation, r *v1.Run) string {
	t.Helper()
	var lines []string
	for _, a := range advise(s, r) {
		lines = append(lines, a.line(timeFormat{zone: time.UTC, now: at}, 0))
		if a.command != "" {
			canBeTyped(t, a.command)
		}
	}
	return strings.Join(lines, "\n")
}

// TestAdviceAfterRollback checks that a rollback which has left hosts is gone on with, and not retried.
func TestAdviceAfterRollback(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	idle := v1.Situation{Status: "idle", Hosts: 3, NextUpgradeAt: new(at.Add(time.Hour))}
	for want, host := range map[string]v1.RunHost{
		"look at 1 failed host (h01): osupgrade-agent runs 7\nthen go on with the rollback: osupgrade-agent rollback 4 --reason …": {Hostname: "h01", Status: "failed"},
		"roll back 1 host that was left out (h01): osupgrade-agent rollback 4 --reason …":                                          {Hostname: "h01", Stage: "rest", Status: "skipped"},
	} {
		if got := advised(t, at, idle, &v1.Run{ID: 7, RollbackOf: 4, Phase: "finished", OpenedAt: at, Hosts: []v1.RunHost{host}}); !strings.Contains(got, want) {
			t.Errorf("a host is %s: the advice is\n%s\nnot\n%s", host.Status, got, want)
		}
	}
}

// TestAdviceOnHosts checks what a person is told of hosts that fail and try again, that hang
// though they were released, or that a run has left out.
func TestAdviceOnHosts(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	until := at.Add(time.Hour)
	idle := v1.Situation{Status: "idle", Hosts: 3, NextUpgradeAt: &until}
	for name, c := range map[string]struct {
		s    v1.Situation
		r    *v1.Run
		want string
	}{
		"a host was left out": {
			v1.Situation{Hosts: 3},
			&v1.Run{ID: 7, Phase: "finished", Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}, {Hostname: "h02", Status: "skipped", Stage: "all"}}},
			"retry 1 host that was left out (h02): osupgrade-agent retry 7 --override-window --reason …",
		},
		"the next run takes it": {idle, &v1.Run{ID: 7, Phase: "finished", Hosts: []v1.RunHost{{Hostname: "h02", Status: "skipped", Stage: "all"}}}, ""},
		"a released host hangs": {
			v1.Situation{Hosts: 3},
			&v1.Run{ID: 7, Phase: "finished", Hosts: []v1.RunHost{{Hostname: "h02", Status: "skipped", Stage: "all", Unanswered: "upgrade", UnansweredOf: 4}}},
			"look at h02, which may still be at work on the upgrade of run 4: runs skip it until it answers: osupgrade-agent runs 4 --host h02 --output",
		},
		"it hangs while others are upgraded": {
			idle, &v1.Run{ID: 7, Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h02", Status: "skipped", Stage: "all", Unanswered: "upgrade", UnansweredOf: 7}}},
			"look at h02, which may still be at work on the upgrade of run 7: ",
		},
		"one mirror is down": {
			idle, &v1.Run{ID: 7, Phase: "preparing", Hosts: []v1.RunHost{
				{Hostname: "h01", Status: "preparing", Since: &at, Failing: "cannot reach deb.example"},
				{Hostname: "h02", Status: "preparing", Since: &at, Failing: "the lists are locked", OverdueSince: &until},
				{Hostname: "h03", Status: "preparing", Since: &at, Failing: "cannot reach deb.example"},
				{Hostname: "h04", Status: "preparing", Since: &at, Failing: "cannot reach deb.example", OverdueSince: &until, SilentSince: &until},
			}},
			"look at 2 hosts that fail and try again (h01, h03): cannot reach deb.example: osupgrade-agent runs 7 --host h01 --output\nor stop waiting for h01: osupgrade-agent release h01 --reason …\n" +
				"look at 1 host that fails and tries again (h02): the lists are locked: osupgrade-agent runs 7 --host h02 --output\nor stop waiting for h02: osupgrade-agent release h02 --reason …\n" +
				"look at h04, preparing and silent since Sat 2026-11-21 02:00:00 UTC: ",
		},
		"one cause too many": {
			idle, &v1.Run{ID: 7, Phase: "preparing", Hosts: []v1.RunHost{
				{Hostname: "h01", Status: "preparing", Since: &at, Failing: "cause 1"},
				{Hostname: "h02", Status: "preparing", Since: &at, Failing: "cause 2"},
				{Hostname: "h03", Status: "preparing", Since: &at, Failing: "cause 3"},
				{Hostname: "h04", Status: "preparing", Since: &at, Failing: "cause 4"},
			}},
			"look also at the hosts that fail for 1 other reason: osupgrade-agent status --unhealthy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := advised(t, at, c.s, c.r); !strings.Contains(got, c.want) || c.want == "" && got != "" {
				t.Errorf("the advice is\n%s\nnot\n%s", got, c.want)
			}
		})
	}
}

// canBeTyped checks that the program knows a command and all its flags.
func canBeTyped(t *testing.T, command string) {
	t.Helper()
	var c commands
	parser, err := newParser(&c, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(strings.ReplaceAll(command, "…", "why"))
	if words[1] != "recover" && words[1] != "restore" && words[1] != "busy" { // These are about a folder.
		words = append(words, "--tenant", "acme")
	}
	if _, err := parser.Parse(words[1:]); err != nil {
		t.Errorf("%s: %v", command, err)
	}
}

// TestStartsAnother checks the command that starts another run in a window that is open: one of an
// environment that comes after others would wait for them.
func TestStartsAnother(t *testing.T) {
	t.Parallel()
	w := v1.OpenWindow{End: time.Unix(3600, 0), Run: 7}
	for name, row := range map[string]struct {
		newest v1.Run
		want   string
	}{
		"alone":        {v1.Run{ID: 7, Phase: "finished"}, "to start another: osupgrade-agent start"},
		"after others": {v1.Run{ID: 7, Phase: "finished", Environment: "porto", Follows: []v1.FollowedRun{{Environment: "lisbon", Run: 3}}}, "to start another: osupgrade-agent start --override-after … --environment porto"},
		"overridden":   {v1.Run{ID: 7, Phase: "finished", Environment: "porto", OverrideAfter: "urgent"}, "to start another: osupgrade-agent start --override-after … --environment porto"},
	} {
		if got := openWindow(timeFormat{zone: time.UTC}, v1.Situation{}, w, &row.newest); !strings.HasSuffix(got, row.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	w.UpToDate = "all 3 hosts have release nov"
	if got := openWindow(timeFormat{zone: time.UTC}, v1.Situation{}, w, nil); !strings.HasSuffix(got, "; it needs no run: all 3 hosts have release nov") {
		t.Errorf("of a window that needs no run: %s", got)
	}
}
