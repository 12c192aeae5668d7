package cli

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
)

// TestDryRun checks how a rehearsal is shown: one that fits, one that does not, and
// one of a start that would be refused.
func TestDryRun(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	const stages = `"stages":[{"name":"canary","hosts":1,"max-unavailable":1},{"name":"rest","hosts":2,"max-unavailable":2}],`
	for _, c := range []struct {
		name, body string
		code       int
		want       string
	}{
		{
			"it fits", `{"run":{"phase":"open","opened-at":"2026-11-21T01:00:00Z","not-after":"2026-11-21T05:00:00Z","expected-end":"2026-11-21T01:31:00Z",` + stages +
				`"hosts":[{"hostname":"h01","stage":"canary","expected-end":"2026-11-21T01:11:00Z"},{"hostname":"h02","stage":"rest"},{"hostname":"h03","stage":"rest","slot-reason":"it is silent"},
				{"hostname":"h04","stage":"rest","status":"unreachable","error":"it was silent before the run was opened","slot-reason":"it is silent"},
				{"hostname":"h09","note":"no stage of the rollout matches it"}]},"usual":{"run":7,"prepare-seconds":60,"host-seconds":600},"fits":true,
				"offers":[{"hostname":"h01","at":"2100-01-01T00:00:00Z","changes":12,"held":2,"download-bytes":5242880,"reboot":"kernel 6.1.0-28"},
				{"hostname":"h02","at":"2100-01-01T00:00:00Z","changes":0},{"hostname":"h03","changes":0},{"hostname":"h04","at":"2100-01-01T00:00:00Z","changes":5}],"missing":[{"what":["script a"]},{"host":"h02","what":["b","c"]}],"unknown":["h03"]}`, exitOK,
			`Nothing is started, because of --dry-run.
starts:               now
not after:            Sat 2026-11-21 06:00:00 CET
hosts:                3, and 2 left out
expected:             fits: done at Sat 2026-11-21 02:31:00 CET, after 31m, with 1m to prepare and 10m for a host, as in run 7
changes:              12 changes on 1 host, 2 held, 5.0 MiB to fetch, 1 reboot; 1 host has reported nothing
reported:             less than 1m ago; to make hosts check now: osupgrade-agent hosts --refresh
stage canary:         1 host, at most 1 out of service
  1. h01:             12 changes, 2 held, 5.0 MiB to fetch, a reboot: kernel 6.1.0-28; done at Sat 2026-11-21 02:11:00 CET
stage rest:           2 hosts, at most 2 out of service
  1. h02:             0 changes
  2. h03:             changes unknown; out of service now: it is silent
left out h04:         it was silent before the run was opened; out of service now: it is silent
left out h09:         no stage of the rollout matches it
missing at the site:  script a
missing on h02:       b; c
unknown:              these hosts do not report their scripts, because their workers are too old or have too many: h03
`,
		},
		{
			"it does not fit", `{"run":{"phase":"open","opened-at":"2026-11-21T01:00:00Z","not-after":"2026-11-21T01:20:00Z","expected-end":"2026-11-21T01:31:00Z",
				"forecast":"1 host is not expected to be done by 2026-11-21T01:20:00Z","hosts":[]},"usual":{"run":7,"prepare-seconds":0,"host-seconds":600},"fits":false}`, exitOK,
			"expected:   does not fit: 1 host is not expected to be done by Sat 2026-11-21 02:20:00 CET; done at",
		},
		{
			"it would be refused", `{"refused":"no maintenance window is open; to start now, send \"override-window\": true with a \"reason\"",
				"run":{"phase":"open","opened-at":"2026-11-21T01:00:00Z","not-after":"2026-11-21T05:00:00Z","hosts":[]}}`, exitFailed,
			"changes:    unknown: no host has reported what would change\n",
		},
		{
			"it would be refused, and what would begin", `{"refused":"no maintenance window is open","run":{"phase":"open","opened-at":"2026-11-21T01:00:00Z","not-after":"2026-11-21T05:00:00Z","hosts":[]}}`, exitFailed,
			"starts:     not now; this is what would start at Sat 2026-11-21 02:00:00 CET\n",
		},
		{
			"the window is skipped", `{"skipped-window":{"start":"2026-11-21T01:00:00Z","end":"2026-11-21T05:00:00Z","by":"ann","reason":"sale"},"run":{"phase":"open","opened-at":"2026-11-21T01:00:00Z","not-after":"2026-11-21T05:00:00Z","hosts":[]}}`, exitOK,
			"skipped window:  Sat 2026-11-21 02:00:00 CET, by ann: sale; only a start by hand opens a run in it\n",
		},
		{"it would be refused at any time", `{"refused":"host h09 is not known"}`, exitFailed, "a start would be refused now: host h09 is not known\n"},
	} {
		s.Inject("POST", "/start", fakeapi.Raw(200, "application/json", c.body))
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "start", "--dry-run")...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit code %d:\n%s%s", c.name, code, stdout, stderr)
		}
	}
	s.Inject("POST", "/start", fakeapi.Raw(200, "application/json", `{"refused":"x"}`))
	if code, stdout, _ := call(t, as(t, s.URL, s.Token, "acme", "retry", "5", "--dry-run", "-o", "json")...); code != exitFailed || !strings.Contains(stdout, `"refused": "x"`) {
		t.Errorf("as JSON: exit code %d:\n%s", code, stdout)
	}
	if code, _, stderr := call(t, as(t, s.URL, s.Token, "acme", "start", "--dry-run", "--wait")...); code != exitUsage || !strings.Contains(stderr, "leave one of them out") {
		t.Errorf("with --wait: exit code %d: %s", code, stderr)
	}
}

// TestStartHost checks that a run of some hosts is asked for.
func TestStartHost(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "start", "--host", "a b")...)
	if code != exitUsage || !strings.Contains(stderr, `--host: "a b" is not the name of a host`) {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
}
