package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	stored "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// TestAccept checks that a version which was given up, or is on trial, is accepted on the
// host, and what is said of another one, and of a wrong folder.
func TestAccept(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		state, want string
	}{
		"nothing is rejected": {t.TempDir(), `no version "2.0" is rejected or on trial on this host`},
		"no such folder":      {"/no/such/folder", "name the folder of osupgrade-agent worker --state"},
	} {
		var errs strings.Builder
		if got := Run(t.Context(), "1.0", []string{"worker", "accept", "2.0", "--state", row.state}, strings.NewReader(""), &strings.Builder{}, &errs); got != exitFailed || !strings.Contains(errs.String(), row.want) {
			t.Errorf("%s: exit status %d with %q", name, got, errs.String())
		}
	}
	for boots, want := range map[string]string{
		`{"judged":"b","rejected":[{"name":"system","version":"2.0","running":"1.0","at":"2026-11-22T01:10:00Z"}]}`: "Version 2.0 is offered again. This host fell back from it to 1.0 at Sun 2026-11-22 02:10:00 CET.\n",
		`{"judged":"b","trial":{"versions":["2.0"],"since":"2026-11-22T01:10:00Z"}}`:                                "Version 2.0 is kept: the worker marks it as good within a minute, or at its next start, whatever its checks say.\n",
	} {
		dir := t.TempDir()
		body, err := stored.Boots.EncodeSummed("boots", json.RawMessage(boots))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "boots.json"), body, 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs strings.Builder
		if got := Run(t.Context(), "1.0", []string{"worker", "accept", "2.0", "--state", dir}, strings.NewReader(""), &out, &errs); got != exitOK || out.String() != want {
			t.Errorf("exit status %d with %q and %q", got, out.String(), errs.String())
		}
	}
}
