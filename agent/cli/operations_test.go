package cli

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
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
		{"pause", []string{"pause", "--reason", "lunch"}, exitOK, "Run 5 is paused: hosts that have started are finished"},
		{"pause again", []string{"pause", "--reason", "lunch"}, exitFailed, "412 Precondition Failed"},
		{"no reason", []string{"resume"}, exitUsage, "missing flags: --reason"},
		{"an empty reason", []string{"resume", "--reason", " "}, exitUsage, "--reason is empty; say why"},
		{"a reason of two lines", []string{"resume", "--reason", "a\nb"}, exitUsage, "reason: "},
		{"no name of a stage", []string{"approve", "A b", "--reason", "x"}, exitUsage, `"A b" is not the name of a stage`},
		{"no name of a host", []string{"release", "a/b", "--reason", "x"}, exitUsage, `"a/b" is not the name of a host`},
		{"resume and forget", []string{"resume", "--reset-failures", "--reason", "the mirror is back"}, exitOK, "Run 5 continues; its failure count is reset.\n"},
		{"pause once more", []string{"pause", "--reason", "lunch"}, exitOK, "Run 5 is paused"},
		{"resume", []string{"resume", "--reason", "lunch is over"}, exitOK, "Run 5 continues; the hosts that have failed still count against max-failures.\n"},
		{"no stage", []string{"approve", "--reason", "looks well"}, exitUsage, `expected "<stage>"`},
		{"approve", []string{"approve", "rest", "--reason", "looks well"}, exitOK, "Stage rest of run 5 is approved.\n"},
		{"pause now", []string{"pause", "--now", "--reason", "lunch"}, exitUsage, "unknown flag --now"},
		{"as JSON", []string{"abort", "--reason", "fire drill", "--yes", "--output", "json"}, exitOK, `"id": 5`},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit code %d:\n%s%s", c.name, code, stdout, stderr)
		}
	}
}

// TestAskDuringAStep checks that the answers to an operator speak of the step in progress.
func TestAskDuringAStep(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	const body = `{"id": 46, "phase": "upgrading", "ends-by": "2026-11-21T02:15:00Z", "stages": [{"name": "copy", "phase": "running", "step": {"since": "2026-11-21T01:15:00Z"}}]}`
	for words, want := range map[string]string{
		"pause":        "Run 46 is paused: step copy is finished, and no host and no other step starts until you resume it.\n",
		"approve rest": "Stage rest of run 46 is approved. It does not begin before step copy is done.\n",
		"approve copy": "Stage copy of run 46 is approved.\n",
		"abort --yes":  "It ends once step copy is finished or has timed out, by ",
	} {
		args := strings.Fields(words)
		s.Inject("POST", "/"+args[0], fakeapi.Raw(200, "application/json", body))
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", append(args, "--reason", "lunch")...)...)
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("%s: exit code %d:\n%s%s\nwant\n%s", words, code, stdout, stderr, want)
		}
	}
}

// TestRelease checks what is said of a slot that is freed while a run is under
// way, and between two.
func TestRelease(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	for body, want := range map[string]string{
		`{"id": 46, "phase": "upgrading"}`:                                                 "Host h02 is released: run 46 neither waits for it nor touches it.\n",
		`{"id": 46, "phase": "finished", "result": "failed", "reason": "host h02 failed"}`: "The slot of host h02 is free, and the host is left as it is. No run is in progress.\n",
	} {
		s.Inject("POST", "/release", fakeapi.Raw(200, "application/json", body))
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "release", "h02", "--reason", "scrapped")...)
		if code != exitOK || stdout != want {
			t.Errorf("exit code %d:\n%s%s\nwant\n%s", code, stdout, stderr, want)
		}
	}
}

// TestAbort checks what is said of a run that is aborted: until when it lasts and how to
// end it now, or how it has ended.
func TestAbort(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	for body, want := range map[string]string{
		`{"id": 46, "phase": "upgrading", "ends-by": "2026-11-21T02:15:00Z"}`: "Run 46 is aborting: no further host is touched. It ends once the hosts that have started have answered or timed out, " +
			"by Sat 2026-11-21 03:15:00 CET at the latest. To end it now: osupgrade-agent abort --now --reason …\n",
		`{"id": 46, "phase": "upgrading"}`: "Run 46 is aborting: no further host is touched.\n",
		`{"id": 46, "phase": "finished", "result": "aborted", "reason": "aborted by ann: h03 hangs; still out of service: h03 (it has not answered reboot)",
			"hosts": [{"hostname": "h02", "status": "upgraded"}, {"hostname": "h03", "status": "failed", "slot": "2026-11-21T01:00:00Z"}]}`: "Run 46 has ended as aborted by ann: h03 hangs; " +
			"still out of service: h03 (it has not answered reboot). To stop waiting for a host that will not answer: osupgrade-agent release h03 --reason …\n",
	} {
		s.Inject("POST", "/abort", fakeapi.Raw(200, "application/json", body))
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "abort", "--now", "--reason", "h03 hangs")...)
		if code != exitOK || stdout != want {
			t.Errorf("exit code %d:\n%s%s\nwant\n%s", code, stdout, stderr, want)
		}
	}
}

// TestStoryLine checks that what a person said stands apart from our words.
func TestStoryLine(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]v1.RunEvent{
		"opened by dev, manual: trying it":          {Event: "opened", By: "dev", Text: "manual: trying it"},
		"opened window":                             {Event: "opened", Text: "window"},
		"paused by dev: lunch":                      {Event: "paused", By: "dev", Text: "lunch"},
		"approved by dev, rest: looks well":         {Event: "approved", By: "dev", Text: "rest: looks well"},
		"released h02 by dev: scrapped":             {Event: "released", Host: "h02", By: "dev", Text: "scrapped"},
		"aborted by me: h01 stuck":                  {Event: "aborted", By: "me", Text: "h01 stuck"},
		"finished aborted":                          {Event: "finished", Text: "aborted: aborted by me: h01 stuck"},
		"finished completed: 3 of 3 hosts upgraded": {Event: "finished", Text: "completed: 3 of 3 hosts upgraded"},
		"ran drain h01 failed (2 tries failed)":     {Event: "ran drain", Host: "h01", Text: "failed (2 tries failed)"},
		"upgrade h01":                               {Event: "upgrade", Host: "h01"},
	} {
		if got := storyLine(timeFlags{}.format(), e); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
	for want, r := range map[string]v1.Run{
		"aborted by me: h01 stuck":        {Result: "aborted", Reason: "aborted by me: h01 stuck"},
		"failed: host h01 failed":         {Result: "failed", Reason: "host h01 failed"},
		"timed-out: not-after has passed": {Result: "timed-out", Reason: "not-after has passed"},
		"upgrading":                       {Phase: "upgrading"},
	} {
		if got := headline(timeFlags{}.format(), r); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// TestNoRunsYet checks what a tenant's first visitor reads.
func TestNoRunsYet(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	for want, args := range map[string][]string{
		"Tenant acme has no runs yet.\n": {"runs"}, "No run matches.\n": {"runs", "--result", "failed"}, "[]\n": {"runs", "--output", "json"},
	} {
		if code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", args...)...); code != exitOK || stdout != want {
			t.Errorf("%s: exit code %d:\n%s%s", args, code, stdout, stderr)
		}
	}
}

// TestRuns checks the list of runs, its filters, and one run with its events.
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
		{"by result", []string{"runs", "--result", "completed"}, exitOK, "No run matches.", true},
		{"by host", []string{"runs", "--host", "h01"}, exitOK, "9 ", false},
		{"an unknown result", []string{"runs", "--result", "nope"}, exitUsage, "--result: \"nope\" is invalid; use completed, partial, failed, aborted or timed-out", true},
		{"a wrong time", []string{"runs", "--since", "yesterday"}, exitUsage, `--since: "yesterday" is not a time`, true},
		{"since a date", []string{"runs", "--since", "2026-11-21"}, exitOK, "No run matches.", true},
		{"until a date", []string{"runs", "--until", "2026-11-21"}, exitOK, "hand (ann)", true},
		{"until before since", []string{"runs", "--since", "2026-11-21", "--until", "2026-11-20"}, exitUsage, "--until: ", true},
		{"no run at most", []string{"runs", "--limit", "0"}, exitUsage, "--limit: 0 is out of range; use 1 to 1000", true},
		{"fewer than none", []string{"runs", "--limit", "-1"}, exitUsage, "--limit: -1 is invalid", true},
		{"fewer than none, as one word", []string{"runs", "--limit=-1"}, exitUsage, "--limit: -1 is out of range; use 1 to 1000", true},
		{"one with its events", []string{"runs", "5"}, exitOK, "paused by ann: lunch", true},
		{"the title of the events", []string{"runs", "5"}, exitOK, "\nAT                           EVENT\n", true},
		{"as JSON", []string{"runs", "--output", "json"}, exitOK, `"result": "failed"`, true},
		{"one that is not there", []string{"runs", "77"}, exitFailed, "404 Not Found", true},
		{"run 0", []string{"runs", "0"}, exitUsage, `"0" is not the id of a run; osupgrade-agent runs lists them`, true},
		{"no id", []string{"runs", "last"}, exitUsage, `"last" is not the id of a run`, true},
		{"watch run 0", []string{"watch", "0"}, exitUsage, `"0" is not the id of a run`, true},
		{"retry run 0", []string{"retry", "0", "--override-window", "--reason", "again"}, exitUsage, `"0" is not the id of a run`, true},
		{"retry", []string{"retry", "5", "--override-window", "--reason", "again"}, exitFailed, "in progress", true},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", c.args...)...)
		if code != c.code || strings.Contains(stdout+stderr, c.want) != c.wants {
			t.Errorf("%s: exit code %d:\n%s%s", c.name, code, stdout, stderr)
		}
	}
}
