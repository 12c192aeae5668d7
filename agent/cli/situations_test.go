package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
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

// fails is a host whose upgrade fails and is rolled back.
func fails(action message.Action) answer {
	if action == message.Upgrade {
		return answer{90 * time.Second, message.RolledBack("cannot upgrade: no space left on device")}
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

// situation is what an operator may find, and how it came to that.
type situation struct {
	name string
	want intended
	act  func(s *scene)
	// from is when watch is typed; zero is at the beginning.
	from time.Duration
}

// situations are those of which the guide shows what the agent prints.
var situations = []situation{
	{"idle", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(*scene) {}, 0},
	{"open window", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) { s.until(1, 45, 0) }, 0},
	{"preparing", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", func(action message.Action) answer {
			if action == message.Prepare {
				return answer{5 * time.Minute, message.Done}
			}
			return usual(action)
		})
		s.until(1, 1, 0)
	}, 0},
	{"upgrading", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) { s.until(1, 14, 30) }, 0},
	{"paused", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.until(1, 8, 0)
		s.types("pause", "--reason", "the shop is busy")
		s.until(1, 20, 0)
	}, 0},
	{"waiting for approval", intended{windows: saturdays, rollout: canary(v1.Stage{Approval: true, ApprovalTimeout: "2h"})}, func(s *scene) { s.until(1, 30, 0) }, 0},
	{
		"frozen",
		intended{windows: saturdays, calendars: map[string]v1.Calendar{
			"shop": {Kind: "freeze", Events: []v1.Event{{Summary: "Black Friday", Start: "2026-11-21T01:05", Duration: "3d"}}},
		}},
		func(s *scene) { s.until(1, 30, 0) }, 34 * time.Minute,
	},
	{"host silent", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.until(1, 6, 0)
		s.silence("h02")
		s.silence("h03")
		s.until(1, 30, 0)
	}, 0},
	{"host failed", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", fails)
		s.until(1, 50, 0)
	}, 0},
	{"aborting", intended{windows: saturdays, rollout: canary(v1.Stage{})}, func(s *scene) {
		s.host("h02", hangs)
		s.until(1, 20, 0)
		s.types("abort", "--reason", "wrong release")
		s.until(1, 21, 0)
	}, 0},
	{"ended partial", intended{windows: saturdays, rollout: canary(v1.Stage{Approval: true, ApprovalTimeout: "1h"})}, func(s *scene) { s.until(6, 0, 0) }, 0},
}

// TestSituations compares what status, hosts, watch and runs print in each situation,
// byte for byte, with the transcripts, and these with the guide that shows them to
// operators. Each transcript was read by a person: whoever changes one reads it anew.
func TestSituations(t *testing.T) {
	t.Parallel()
	for n, c := range situations {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got string
			play(t, c.want, threeHosts, func(s *scene) {
				s.pass(c.from)
				watched := s.watches("watch")
				c.act(s)
				got = transcript("status", s.types("status")) + transcript("hosts", s.types("hosts")) +
					transcript("watch", watched()) + transcript("runs", s.types("runs"))
			})
			file := filepath.Join("testdata", "situations", fmt.Sprintf("%02d-%s.txt", n+1, strings.ReplaceAll(c.name, " ", "-")))
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
