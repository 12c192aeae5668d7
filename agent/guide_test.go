package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy/simulated"
)

// TestGuidesNameEverything checks that what somebody writes scripts and faults
// by is told, each result of a run among it.
func TestGuidesNameEverything(t *testing.T) {
	t.Parallel()
	script := []string{
		"OSUPGRADE_TENANT", "OSUPGRADE_HOST", "OSUPGRADE_KIND", "OSUPGRADE_RUN",
		string(message.BeforeHost), string(message.AfterHost), string(message.Fleet), string(message.Drain), string(message.Undrain),
	}
	faults := []string{
		simulated.FaultFail, simulated.FaultHang, simulated.FaultCrash, simulated.FaultCrashBefore, simulated.FaultCrashAfter, simulated.FaultNoReboot,
		"prepare", "upgrade", "reboot", "verify", "resume", "rollback",
	}
	for file, words := range map[string][]string{
		"../templates/guides/rollout.md": slices.Concat(script, v1.Results()),
		"../README.md":                   faults,
	} {
		text := read(t, file)
		for _, word := range words {
			if !strings.Contains(text, "`"+word+"`") {
				t.Errorf("%s does not name %s", file, word)
			}
		}
	}
}

// TestGuideJSON checks that the API takes the rollout that the guide shows.
func TestGuideJSON(t *testing.T) {
	t.Parallel()
	shown := regexp.MustCompile("(?s)```json\n(\\{\n.*?)```").FindStringSubmatch(read(t, "../templates/guides/rollout.md"))
	if shown == nil {
		t.Fatal("the guide shows no rollout in JSON")
	}
	if r, err := v1.DecodeRollout("application/json", []byte(shown[1])); err != nil || r.Timeouts == nil {
		t.Errorf("the guide's rollout is %+v, %v", r, err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
