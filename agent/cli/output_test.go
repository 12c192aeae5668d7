package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestOutputOfScripts checks that --output without a value shows what the scripts of a
// host have printed in a run, and what is said of every wrong use of the flag.
func TestOutputOfScripts(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	at := time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC)
	s.SetOutput("acme", 41, "h03", v1.ActionOutput{Action: "prepare", At: at, Output: "fetched\n"}, v1.ActionOutput{Action: "upgrade", At: at, Cut: true, Output: "one\ntwo"})
	s.SetOutput("acme", 41, "h04")
	const printed = `==> prepare, Sat 2026-11-21 02:30:00 CET <==
fetched

==> upgrade, Sat 2026-11-21 02:30:00 CET <==
(the last 64 KiB)
one
two
`
	for command, want := range map[string]struct {
		code int
		text string
	}{
		"runs 41 --host h03 --output": {exitOK, printed},
		"runs 41 --output --host h03": {exitOK, printed},
		"runs 41 --host h03 -o":       {exitOK, printed},
		"runs 41 --host h04 --output": {exitOK, "Nothing that host h04 printed in run 41 is kept.\n"},
		"runs 41 --host h05 --output": {exitFailed, `host "h05" is not in run 41`},
		"runs --host h03 --output":    {exitUsage, "give the id of a run and --host"},
		"runs 41 --output":            {exitUsage, "give the id of a run and --host"},
		"runs 41 --host x/y --output": {exitUsage, "is not the name of a host"},
		"hosts --output":              {exitUsage, "--output: the format is missing; use text or json"},
		"hosts --output yaml":         {exitUsage, `--output: "yaml" is not a format; use text or json`},
		"hosts --output=":             {exitUsage, `--output: "" is not a format; use text or json`},
		"hosts --output=json":         {exitOK, "[]\n"},
		"hosts -o json":               {exitOK, "[]\n"},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", strings.Fields(command)...)...)
		if code != want.code || code == exitOK && stdout != want.text || !strings.Contains(stdout+stderr, want.text) {
			t.Errorf("%s, with code %d:\n%s%s", command, code, stdout, stderr)
		}
	}
}

// TestPlanOfAHost checks how the plan of a host in a run is shown, and what is said when
// there is none.
func TestPlanOfAHost(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	at := time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC)
	s.SetPlan("acme", 41, "h03", v1.HostPlan{
		At: at, Changes: []v1.VersionChange{{Package: "kernel", From: "6.1.0", To: "6.1.1"}, {Package: "nginx", To: "1.24"}, {Package: "old", From: "1"}},
		Held: []v1.HeldPackage{{Package: "libc6", Version: "2.36", Offered: "2.37", Reason: "held by apt-mark"}}, DownloadBytes: 3 << 20, Reboot: "the kernel changes",
	})
	s.SetPlan("acme", 41, "h04", v1.HostPlan{At: at, Changes: []v1.VersionChange{}})
	s.SetOffer("acme", "h04", v1.HostPlan{At: at, Changes: []v1.VersionChange{{Package: "nginx", To: "1.24"}}})
	const shown = `3 changes, 1 held, 3.0 MiB to fetch, a reboot: the kernel changes

PACKAGE  FROM   TO
kernel   6.1.0  6.1.1
nginx    -      1.24
old      1      -

HELD   VERSION  OFFERED  REASON
libc6  2.36     2.37     held by apt-mark
`
	for command, want := range map[string]struct {
		code int
		text string
	}{
		"runs 41 --host h03":               {exitOK, shown},
		"runs 41 --host h04":               {exitOK, "0 changes\n"},
		"runs 41 --host h04 --output json": {exitOK, "{\n  \"at\": \"2026-11-21T01:30:00Z\",\n  \"changes\": []\n}\n"},
		"runs 41 --host h05":               {exitFailed, `host "h05" has told no plan in run 41`},
		"runs 41 --host x/y":               {exitUsage, "is not the name of a host"},
		"hosts h04 --offer":                {exitOK, "1 change (reported at Sat 2026-11-21 02:30:00 CET)\n\nPACKAGE  FROM  TO\nnginx    -     1.24\n"},
		"hosts h04 --offer -o json":        {exitOK, "{\n  \"at\": \"2026-11-21T01:30:00Z\",\n  \"changes\": [\n    {\n      \"package\": \"nginx\",\n      \"to\": \"1.24\"\n    }\n  ]\n}\n"},
		"hosts h05 --offer":                {exitFailed, `host "h05" has not told what an upgrade would change`},
		"hosts --offer":                    {exitUsage, "--offer: name the HOST whose offer is shown; start --dry-run shows a line for each host"},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", strings.Fields(command)...)...)
		if code != want.code || code == exitOK && stdout != want.text || !strings.Contains(stdout+stderr, want.text) {
			t.Errorf("%s, with code %d:\n%s%s", command, code, stdout, stderr)
		}
	}
}
