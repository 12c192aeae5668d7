package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// TestOutputOfScripts checks that --output without a value shows what the scripts of a
// host have printed in a run, and what is said of every wrong use of the flag.
func TestOutputOfScripts(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	at := time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC)
	s.SetOutput("acme", 41, "h03", v1.StepOutput{Step: "prepare", At: at, Output: "fetched\n"}, v1.StepOutput{Step: "upgrade", At: at, Cut: true, Output: "one\ntwo"})
	s.SetOutput("acme", 41, "h04")
	const printed = `==> prepare, 2026-11-21T01:30:00Z <==
fetched

==> upgrade, 2026-11-21T01:30:00Z <==
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
		"runs 41 --host h04 --output": {exitOK, "Host h04 has printed nothing in run 41 that is kept.\n"},
		"runs 41 --host h05 --output": {exitFailed, `host "h05" is not in run 41`},
		"runs --host h03 --output":    {exitUsage, "give the id of a run and --host"},
		"runs 41 --output":            {exitUsage, "give the id of a run and --host"},
		"runs 41 --host x/y --output": {exitUsage, "is not the name of a host"},
		"runs 41 --host h03":          {exitUsage, "add --output to see what the host has printed in run 41"},
		"hosts --output":              {exitUsage, "--output: the format is missing; use text or json"},
		"hosts --output yaml":         {exitUsage, `--output: "yaml" is no format; use text or json`},
		"hosts --output=":             {exitUsage, `--output: "" is no format; use text or json`},
		"hosts --output=json":         {exitOK, "[]\n"},
		"hosts -o json":               {exitOK, "[]\n"},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", strings.Fields(command)...)...)
		if code != want.code || code == exitOK && stdout != want.text || !strings.Contains(stdout+stderr, want.text) {
			t.Errorf("%s, with code %d:\n%s%s", command, code, stdout, stderr)
		}
	}
}
