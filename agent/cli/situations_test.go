package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

var update = flag.Bool("update", false, "write the transcripts and the guide anew")

// threeHosts is the fleet of most situations.
var threeHosts = []string{"h01", "h02", "h03"}

// canary is a rollout that upgrades h01, and then the others one by one.
func canary(rest v1.Stage) *v1.Rollout {
	rest.Name = "rest"
	return &v1.Rollout{
		Stages:      []v1.Stage{{Name: "canary", Match: &v1.Match{Hosts: []string{"h01"}}, Soak: "10m"}, rest},
		MaxFailures: "2", Reserve: "15m",
	}
}

// stepped is a rollout that upgrades h01, moves the service over by a step, and then upgrades the others.
func stepped() *v1.Rollout {
	do := &v1.Hook{Type: "exec", Script: "switch-over", On: "site"}
	return &v1.Rollout{
		Stages: []v1.Stage{
			{Name: "standby", Match: &v1.Match{Hosts: []string{"h01"}}},
			{Name: "switch-over", Step: &v1.Step{Do: do}},
			{Name: "rest", PointOfNoReturn: true},
		},
		OnFailure: "pause", Reserve: "15m",
	}
}

// fails is a host whose upgrade fails and is rolled back.
func fails(action message.Action) answer {
	if action == message.Upgrade {
		return answer{90 * time.Second, message.NotDone(message.RolledBack, message.Space, "cannot upgrade: no space left on device")}
	}
	return usual(action)
}

// hangs is a host that never answers upgrade.
func hangs(action message.Action) answer {
	if action == message.Upgrade {
		return answer{}
	}
	return usual(action)
}

// neverPrepares is a host that never answers prepare.
func neverPrepares(action message.Action) answer {
	if action == message.Prepare {
		return answer{}
	}
	return usual(action)
}

// worksOn is a host that still carries out a command, and so answers no other.
func worksOn(message.Action) answer { return answer{} }

// upToDateNow is a host with nothing to change.
func upToDateNow(action message.Action) answer {
	return answer{time.Second, message.Result{Outcome: message.Done, UpToDate: action == message.Upgrade}}
}

// situation is what an operator may find, and how it came to that.
type situation struct {
	name string
	want intended
	act  func(s *scene)
	// from is when watch is typed; zero is at the beginning.
	from time.Duration
	// types is the one command that is shown; nil is status, hosts, watch and runs.
	types []string
}

// situations are those whose transcripts are kept; the guides show some of them.
var situations = []situation{
	{"idle", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(*scene) {}, 0, nil},
	{"open window", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) { s.until(1, 45, 0) }, 0, nil},
	{"preparing", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", func(action message.Action) answer {
			if action == message.Prepare {
				return answer{after: 5 * time.Minute, result: message.Result{Outcome: message.Done}}
			}
			return usual(action)
		})
		s.until(1, 1, 0)
	}, 0, nil},
	{"upgrading", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) { s.until(1, 14, 30) }, 0, nil},
	{"paused", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.until(1, 8, 0)
		s.types("pause", "--reason", "the shop is busy")
		s.until(1, 20, 0)
	}, 0, nil},
	{"waiting for approval", intended{windows: saturdays, rollout: canary(v1.Stage{Approval: true, ApprovalTimeout: "2h"})}, func(s *scene) { s.until(1, 30, 0) }, 0, nil},
	{
		"frozen",
		intended{windows: saturdays, calendars: map[string]v1.Calendar{
			"shop": {Kind: "freeze", Events: []v1.Event{{Summary: "Black Friday", Start: "2026-11-21T01:05", Duration: "3d"}}},
		}},
		func(s *scene) { s.until(1, 30, 0) }, 34 * time.Minute, nil,
	},
	{"host silent", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.until(1, 6, 0)
		s.silence("h02")
		s.silence("h03")
		s.until(1, 30, 0)
	}, 0, nil},
	{"host failed", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", fails)
		s.until(1, 50, 0)
	}, 0, nil},
	{"aborting", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", hangs)
		s.until(1, 20, 0)
		s.types("abort", "--reason", "wrong release", "--yes")
		s.until(1, 21, 0)
	}, 0, nil},
	{"ended partial", intended{windows: saturdays, rollout: canary(v1.Stage{Approval: true, ApprovalTimeout: "1h"})}, func(s *scene) { s.until(6, 0, 0) }, 0, nil},
	{"site restored", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.know(57, night.AddDate(0, 0, -7))
		s.until(1, 30, 0)
	}, 0, nil},
	{"dry run", intended{windows: saturdays, rollout: canary(v1.Stage{}), offers: map[string]v1.OfferSummary{
		"h01": {At: new(night.Add(-2 * time.Hour)), Changes: 12, Held: 2, DownloadBytes: 84 << 20, Reboot: "kernel 6.1.0-28"},
		"h02": {At: new(night.AddDate(0, 0, -3)), Changes: 1, DownloadBytes: 1 << 20},
	}}, func(*scene) {}, 0, []string{"start", "--dry-run"}},
	{"host late", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", neverPrepares)
		s.until(1, 26, 0)
	}, 0, nil},
	{"host left out", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", neverPrepares)
		s.until(1, 50, 0)
	}, 0, nil},
	{"host overdue", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", hangs)
		s.until(1, 30, 0)
	}, 0, nil},
	{"host silent at work", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", hangs)
		s.until(1, 14, 0)
		s.silence("h02")
		s.until(1, 18, 0)
	}, 0, nil},
	{"host of an earlier run", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", hangs)
		s.until(1, 14, 0)
		s.types("abort", "--now", "--reason", "wrong release", "--yes")
		s.host("h02", worksOn)
		s.until(1, 16, 0)
		s.types("retry", "2")
		s.until(1, 20, 0)
	}, 0, nil},
	{"up to date", intended{windows: saturdays}, func(s *scene) {
		for _, h := range threeHosts {
			s.host(h, upToDateNow)
		}
		s.until(1, 45, 0)
	}, 0, nil},
	{"step failed", intended{windows: saturdays, rollout: stepped()}, func(s *scene) {
		s.failsAtSite("h02 did not take over")
		s.until(1, 30, 0)
	}, 0, nil},
	{"health failed", intended{windows: saturdays, rollout: &v1.Rollout{
		Stages: []v1.Stage{{Name: "all"}}, Reserve: "15m",
		Checks: &v1.RolloutChecks{Start: []v1.StartCheck{{Check: v1.Check{Name: "alarms", Type: "prometheus", URL: "https://prometheus.example", Query: "ALERTS"}}}},
	}}, func(s *scene) {
		s.failsAtSite(`check alarms: the query returned 1 series, and should return nothing: ALERTS{alertname="DiskFull"} is 1`)
		s.until(1, 5, 0)
	}, 0, nil},
	{"goes on", intended{windows: saturdays, rollout: stepped()}, func(s *scene) {
		s.types("start", "--until", "switch-over", "--override-window", "--reason", "the first night")
		s.until(1, 2, 0)
	}, 0, nil},
	{"release", intended{windows: saturdays, rollout: canary(v1.Stage{PointOfNoReturn: true}), target: release.Target{Releases: map[string]string{release.OS: "spring"}}, releases: map[string]v1.Release{
		"winter": {Version: "1.0", Scheme: release.Semver, Data: []byte(`{}`)}, "spring": {Version: "2.0", Scheme: release.Semver, Data: []byte(`{}`)},
	}}, func(s *scene) {
		s.types("start", "--release", "winter", "--override-window", "--reason", "the first release")
		s.until(1, 14, 30)
	}, 0, nil},
}

// file is the name of the transcript of the n-th situation.
func (s situation) file(n int) string {
	return fmt.Sprintf("%02d-%s.txt", n+1, strings.ReplaceAll(s.name, " ", "-"))
}

// TestSituations compares what status, hosts, watch and runs print in each situation,
// byte for byte, with the transcripts. Each transcript was read by a person: whoever changes one reads it anew.
func TestSituations(t *testing.T) {
	t.Parallel()
	for n, c := range situations {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got string
			play(t, c.want, threeHosts, func(s *scene) {
				s.pass(c.from)
				if c.types != nil {
					c.act(s)
					got = transcript(strings.Join(c.types, " "), s.types(c.types...))
					return
				}
				watched := s.watches("watch")
				c.act(s)
				got = transcript("status", s.types("status")) + transcript("hosts", s.types("hosts")) +
					transcript("watch", watched()) + transcript("runs", s.types("runs"))
			})
			file := filepath.Join("testdata", "situations", c.file(n))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil || got != string(want) {
				t.Errorf("%v; the transcript differs; got:\n%s", err, got)
			}
		})
	}
}

// transcript is a command and what it prints.
func transcript(command, output string) string {
	return "$ osupgrade-agent " + command + "\n" + output + "\n"
}

// guides are the pages that show transcripts to operators.
var guides = []string{"../../docs/guides/what-the-agent-shows.md", "../../docs/guides/saturday.md"}

// shown is a transcript in a guide, or what one of its commands prints.
var shown = regexp.MustCompile("(?s)<!-- situation: ([a-z0-9-]+)(?: ([a-z]+))? -->\n(?:```console\n(.*?)```\n)?")

// TestGuidesShowTheSituations checks that the guides have each transcript that they show as
// it is. With -update they are written anew.
func TestGuidesShowTheSituations(t *testing.T) {
	t.Parallel()
	for _, guide := range guides {
		page, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		want := shown.ReplaceAllStringFunc(string(page), func(found string) string {
			n++
			parts := shown.FindStringSubmatch(found)
			marker, _, _ := strings.Cut(found, "\n")
			return marker + "\n```console\n" + excerpt(t, parts[1], parts[2]) + "```\n"
		})
		if n == 0 {
			t.Errorf("%s shows no situation", guide)
		}
		if *update {
			if err := os.WriteFile(guide, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if want != string(page) {
			t.Errorf("%s differs from the transcripts; run go test ./agent/cli -run 'TestSituations|TestGuides' -update twice and read what has changed", guide)
		}
	}
}

// excerpt returns the transcript of a situation, or of one command in it.
func excerpt(t *testing.T, situation, command string) string {
	t.Helper()
	transcript, err := os.ReadFile(filepath.Join("testdata", "situations", situation+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(transcript)
	if command != "" {
		_, after, found := strings.Cut("\n"+text, "\n$ osupgrade-agent "+command+"\n")
		if !found {
			t.Fatalf("situation %s has no %s", situation, command)
		}
		text, _, _ = strings.Cut(after, "\n$ ")
		text = "$ osupgrade-agent " + command + "\n" + text
	}
	return strings.TrimSuffix(text, "\n") + "\n"
}
