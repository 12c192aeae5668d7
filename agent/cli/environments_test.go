package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// shopsAtNight are environments with two hosts each: the upgrade of a host of basel fails, the run of
// bern is paused by its rollout, that of chur goes on, and the others have their windows later.
func shopsAtNight(count int) (want intended, hosts []string) {
	want = intended{windows: saturdays, rollout: canary(v1.Stage{}), environments: map[string]v1.Environment{}}
	want.rollout.Stages = nil
	for n := range count {
		name := fmt.Sprintf("shop%02d", n)
		e := v1.Environment{MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Sunday", StartTime: fmt.Sprintf("%02d:00", n%20), Timezone: "site-local", Duration: "4h"}}}
		if n < 3 {
			name, e.MaintenanceWindows = []string{"basel", "bern", "chur"}[n], nil
		}
		if name == "bern" {
			e.Rollout = &v1.Rollout{Paused: true}
		}
		e.Match = v1.Match{Hosts: []string{name + "-1", name + "-2"}}
		want.environments[name] = e
		hosts = append(hosts, e.Match.Hosts...)
	}
	return want, hosts
}

// TestSituationsOfEnvironments compares what status, watch and runs print of 3 and of 60 environments
// with the transcripts, as TestSituations does.
func TestSituationsOfEnvironments(t *testing.T) {
	t.Parallel()
	for file, count := range map[string]int{"20-three-environments.txt": 3, "21-sixty-environments.txt": 60} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			want, hosts := shopsAtNight(count)
			var got string
			play(t, want, hosts, func(s *scene) {
				s.host("basel-1", fails)
				s.host("basel-2", fails)
				watched := s.watches("watch")
				s.until(1, 2, 0)
				got = transcript("status", s.types("status")) + transcript("status --environment chur", s.types("status", "--environment", "chur")) +
					transcript("watch", watched()) + transcript("runs", s.types("runs"))
			})
			path := filepath.Join("testdata", "situations", file)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			kept, err := os.ReadFile(path)
			if err != nil || got != string(kept) {
				t.Errorf("%v; the transcript differs; got:\n%s", err, got)
			}
			shown := strings.Split(transcriptOf(got, "status"), "\n")
			if most := 18; len(shown) > most {
				t.Errorf("the status has %d lines, want at most %d", len(shown), most)
			}
			for _, line := range shown {
				if utf8.RuneCountInString(line) > statusWidth && !strings.Contains(line, ":") {
					t.Errorf("it is wider than %d columns: %s", statusWidth, line)
				}
			}
		})
	}
}

// transcriptOf is what a command prints in a transcript.
func transcriptOf(text, command string) string {
	_, after, _ := strings.Cut(text, "$ osupgrade-agent "+command+"\n")
	output, _, _ := strings.Cut(after, "\n$ ")
	return output
}

// TestNeedsAsAdvised checks in all situations that an environment needs a person if, and only if, status
// says what to do.
func TestNeedsAsAdvised(t *testing.T) {
	t.Parallel()
	for _, c := range situations {
		if c.types != nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			play(t, c.want, threeHosts, func(s *scene) {
				s.pass(c.from)
				c.act(s)
				text, inJSON := s.types("status", "--environment", "default"), s.types("status", "--environment", "default", "--output", "json")
				if calm, needs := strings.Contains(text, "Nothing to do now."), strings.Contains(inJSON, `"needs": [`); calm == needs {
					t.Errorf("it needs a person: %t, and:\n%s", needs, text)
				}
			})
		})
	}
}

// TestTableOfManyEnvironments checks which environments get a row, and that the table is no wider than
// a terminal.
func TestTableOfManyEnvironments(t *testing.T) {
	t.Parallel()
	at := timeFormat{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), zone: time.UTC}
	next := at.now.Add(time.Hour)
	for name, row := range map[string]struct {
		idle, running, need int
		each                bool
		rows                int
		last                string
	}{
		"few":                  {fewEnvironments, 0, 0, false, fewEnvironments, "e007"},
		"all are idle":         {60, 0, 0, false, 0, "60 environments are idle, next window Fri 2026-11-20 13:00:00 UTC (e000); --all shows them"},
		"some are idle":        {50, 7, 3, false, 10, "and 50 idle, next window Fri 2026-11-20 13:00:00 UTC (e000); --all shows them"},
		"all of them":          {50, 7, 3, true, 60, "e049"},
		"none is idle":         {0, 30, 30, false, 60, "e029"},
		"one that needs a lot": {0, 0, 1, false, 1, "e000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []v1.EnvironmentStatus
			for n := range row.idle + row.running + row.need {
				s := v1.Situation{Status: "idle", Hosts: 2, NextUpgradeAt: &next}
				var r *v1.Run
				switch {
				case n >= row.idle+row.running:
					s.Silent, s.SilentHosts = 2, []string{"a-host-with-a-long-name.shop.example.com", "another-host-with-a-long-name.shop.example.com"}
				case n >= row.idle:
					s.Status, r = "upgrading", &v1.Run{ID: 4, Phase: "upgrading"}
				}
				all = append(all, v1.EnvironmentStatusOf(fmt.Sprintf("e%03d", n), s, r))
			}
			slices.SortFunc(all, v1.EnvironmentStatus.Compare)
			var out strings.Builder
			c := statusCommand{hostFlags: hostFlags{All: row.each}}
			c.showTable(newTerminal(&out), at, v1.State{}, all)
			_, table, _ := strings.Cut(out.String(), "\n\n")
			lines := strings.Split(strings.TrimSuffix(table, "\n"), "\n")
			if rows := strings.Count("\n"+table, "\ne0"); rows != row.rows || !strings.HasPrefix(lines[len(lines)-1], row.last) {
				t.Errorf("%d rows, want %d that end with %s:\n%s", rows, row.rows, row.last, out.String())
			}
			for _, line := range lines {
				if utf8.RuneCountInString(line) > 100 {
					t.Errorf("it is wider than 100 columns: %s", line)
				}
			}
		})
	}
}

// TestStatusOfEnvironments checks the JSON of environments, that an absent one is refused, and the row of
// their tenant.
func TestStatusOfEnvironments(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	next := time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC)
	waits := v1.Run{ID: 7, Phase: "upgrading", Environment: "bern", WaitingFor: &v1.WaitingFor{What: "approval", Stage: "rest"}, Hosts: []v1.RunHost{{Hostname: "h02", Stage: "all", Status: "upgraded"}, {Hostname: "h03", Stage: "all", Status: "prepared"}}}
	s.AddRun("acme", waits)
	s.SetEnvironments("acme",
		v1.EnvironmentStatusOf("basel", v1.Situation{Status: "idle", Hosts: 2, NextUpgradeAt: &next}, nil),
		v1.EnvironmentStatusOf("bern", v1.Situation{Status: "waiting", Hosts: 2}, &waits),
		v1.EnvironmentStatusOf("default", v1.Situation{Status: "idle"}, nil))
	_, text, _ := call(t, as(t, s.URL, s.Token, "*", "status")...)
	if !strings.Contains(text, "1 of 3 in a run  1 of 2 ") || !strings.Contains(text, "bern: let stage rest begin") {
		t.Errorf("the row of the tenant is\n%s", text)
	}
	code, inJSON, stderr := call(t, as(t, s.URL, s.Token, "acme", "status", "--output", "json")...)
	first, second := strings.Index(inJSON, `"name": "bern"`), strings.Index(inJSON, `"name": "basel"`)
	if code != exitOK || first < 0 || second < first || !strings.Contains(inJSON, `"runs": [`) {
		t.Errorf("exit code %d: %s\n%s", code, stderr, inJSON)
	}
	if code, _, stderr := call(t, as(t, s.URL, s.Token, "acme", "status", "--environment", "chur")...); code == exitOK || !strings.Contains(stderr, `there is no environment chur`) {
		t.Errorf("an absent one: exit code %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, as(t, s.URL, s.Token, "*", "status", "--environment", "bern")...); code != exitUsage || !strings.Contains(stderr, "leave out --environment") {
		t.Errorf("with all tenants: exit code %d: %s", code, stderr)
	}
}

// TestEnvironmentsWithoutConfiguration checks that status names the configuration when no host of the tenant
// can take part, and does not advise to correct the match of an environment.
func TestEnvironmentsWithoutConfiguration(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetState("acme", v1.State{Situation: v1.Situation{Status: "idle", Environments: 1}})
	s.SetEnvironments("acme", v1.EnvironmentStatusOf("basel", v1.Situation{Status: "idle"}, nil))
	for _, line := range []string{"status", "status --environment basel"} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", strings.Fields(line)...)...)
		if code != exitOK || !strings.Contains(stdout, "To do now:\n  no host belongs to this configuration: set config.worker-applications") || strings.Contains(stdout, "correct its match") {
			t.Errorf("%s: exit code %d:\n%s%s", line, code, stdout, stderr)
		}
	}
}

// TestWatchOfEnvironments checks what watch prints of runs side by side: each line names the
// environment, watch ends with the last of them, and --environment follows one.
func TestWatchOfEnvironments(t *testing.T) {
	t.Parallel()
	want, hosts := shopsAtNight(3)
	bern := want.environments["bern"]
	bern.Rollout = nil
	want.environments["bern"] = bern
	play(t, want, hosts, func(s *scene) {
		s.until(1, 0, 30)
		all, one := s.watches("watch"), s.watches("watch", "--environment", "chur")
		s.until(1, 30, 0)
		for name, text := range map[string]string{"all": all(), "one": one()} {
			named := strings.Contains(text, "chur  run 6: completed") && strings.Contains(text, "basel  run 4: ") && strings.Contains(text, "chur  chur-2  upgraded")
			alone := strings.Contains(text, "CET  run 6: completed") && !strings.Contains(text, "basel")
			if strings.Contains(text, "stopped watching") || (name == "all") != named || (name == "one") != alone {
				t.Errorf("of %s it prints:\n%s", name, text)
			}
		}
	})
}
