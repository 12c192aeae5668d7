package main

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// TestAsk checks what an operator may ask of the run under way, what is said
// then, and the words for what cannot be.
func TestAsk(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.AddRun("acme", v1.Run{
		ID: 5, Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h01", Status: "prepared"}},
		Stages: []v1.RunStage{{Name: "rest", Phase: "waiting-for-approval"}},
	})
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"pause", []string{"pause", "--reason", "lunch"}, exitOK, "Run 5 is paused: hosts under way are finished"},
		{"pause again", []string{"pause", "--reason", "lunch"}, exitFailed, "412 Precondition Failed"},
		{"no reason", []string{"resume"}, exitUsage, "missing flags: --reason"},
		{"an empty reason", []string{"resume", "--reason", " "}, exitFailed, "--reason is empty; say why"},
		{"resume", []string{"resume", "--reason", "lunch is over"}, exitOK, "Run 5 goes on"},
		{"no stage", []string{"approve", "--reason", "looks well"}, exitUsage, `expected "<stage>"`},
		{"approve", []string{"approve", "rest", "--reason", "looks well"}, exitOK, "Run 5 may begin stage rest"},
		{"as JSON", []string{"abort", "--reason", "fire drill", "--output", "json"}, exitOK, `"id": 5`},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit code %d:\n%s%s", c.name, code, stdout, stderr)
		}
	}
}

// TestRuns checks the list of runs, its filters, and one run with its story.
func TestRuns(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.AddRun("acme", v1.Run{
		ID: 5, Phase: "upgrading", Trigger: "manual", RequestedBy: "ann", RequestReason: "a try",
		Hosts:  []v1.RunHost{{Hostname: "h01", Status: "upgraded"}},
		Events: []v1.RunEvent{{Event: "paused", By: "ann", Text: "lunch"}},
	})
	s.FinishRun("acme", 5, "failed", "host h01 failed: no space left")
	s.AddRun("acme", v1.Run{ID: 9, Phase: "upgrading", Hosts: []v1.RunHost{{Hostname: "h02", Status: "prepared"}}})
	for _, c := range []struct {
		name  string
		args  []string
		code  int
		want  string
		wants bool
	}{
		{"all", []string{"runs"}, exitOK, "hand (ann): a try", true},
		{"by result", []string{"runs", "--result", "completed"}, exitOK, "There is no such run.", true},
		{"by host", []string{"runs", "--host", "h01"}, exitOK, "9 ", false},
		{"an unknown result", []string{"runs", "--result", "nope"}, exitFailed, "use completed, partial, failed, aborted or timed-out", true},
		{"a wrong time", []string{"runs", "--since", "yesterday"}, exitUsage, "since", true},
		{"one with its story", []string{"runs", "5"}, exitOK, "paused by ann lunch", true},
		{"as JSON", []string{"runs", "--output", "json"}, exitOK, `"result": "failed"`, true},
		{"one that is not there", []string{"runs", "77"}, exitFailed, "404 Not Found", true},
		{"retry", []string{"retry", "5", "--override-window", "--reason", "again"}, exitFailed, "under way", true},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", c.args...)...)
		if code != c.code || strings.Contains(stdout+stderr, c.want) != c.wants {
			t.Errorf("%s: exit code %d:\n%s%s", c.name, code, stdout, stderr)
		}
	}
}
