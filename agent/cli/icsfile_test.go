package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
)

const icsText = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:a\r\nDTSTART;VALUE=DATE:20261224\r\nRRULE:FREQ=YEARLY\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"

// TestApplyICS writes calendars from .ics files: given alone, on standard input, and named in
// documents.
func TestApplyICS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	file := writeIn(t, dir)
	ics := file("Holidays.ICS", icsText)
	file("broken.ics", strings.Replace(icsText, "DAILY", "HOURLY", 1)[:120])
	document := file("sub/a.yaml", "calendars:\n  shop: {kind: freeze, ics-file: ../Holidays.ICS, description: Shop}\n")
	wrong := file("b.yaml", "calendars:\n  shop:\n    kind: freeze\n    ics-file: broken.ics\n")
	for name, row := range map[string]struct {
		stdin string
		args  []string
		code  int
		want  string
	}{
		"a file":                       {"", []string{"-f", ics, "--name", "shop"}, exitOK, "Written, in this order: calendar shop."},
		"standard input":               {"\ufeff" + icsText, []string{"-f", "-", "--name", "shop", "--kind", "allow"}, exitOK, "  + kind: allow\n"},
		"a document":                   {"", []string{"-f", document}, exitOK, "Written, in this order: calendar shop."},
		"a document on standard input": {"calendars: {shop: {kind: freeze, ics-file: " + ics + "}}", []string{"-f", "-"}, exitOK, "Written"},
		"a file and a document":        {"", []string{"-f", ics, "--name", "shop", "-f", document}, exitUsage, document + ":2: calendars.shop: it is declared twice, here and at " + ics + "; declare it once"},
		"no name":                      {"", []string{"-f", ics}, exitUsage, ics + " is a calendar; name it with --name"},
		"two of one name":              {"", []string{"-f", ics, "-f", ics, "--name", "shop"}, exitUsage, "are both calendars, and --name is for one"},
		"a name for no calendar":       {"", []string{"-f", document, "--name", "shop"}, exitUsage, "--name is for an .ics file, and " + document + " is not one"},
		"a wrong name":                 {"", []string{"-f", ics, "--name", "Shop"}, exitUsage, ics + `: "Shop" is not the name of a calendar`},
		"a wrong text":                 {"", []string{"-f", dir + "/broken.ics", "--name", "shop"}, exitUsage, dir + "/broken.ics: ics: "},
		"a wrong text in a document":   {"", []string{"-f", wrong}, exitUsage, wrong + ":4: calendars.shop.ics-file: broken.ics: ics: "},
		"no file":                      {"", []string{"-f", file("c.yaml", "calendars:\n  shop: {kind: freeze, ics-file: none.ics}\n")}, exitUsage, "c.yaml:2: calendars.shop.ics-file: file: open " + dir + "/none.ics: no such file"},
		"a file and a text":            {"", []string{"-f", file("d.yaml", "calendars:\n  shop: {kind: freeze, ics: x, ics-file: none.ics}\n")}, exitUsage, `d.yaml:2: calendars.shop.ics-file: "none.ics" is given besides ics`},
		"a list":                       {"", []string{"-f", file("e.yaml", "calendars:\n  shop: {kind: freeze, ics-file: []}\n")}, exitUsage, "e.yaml:2: calendars.shop.ics-file: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakeapi.New(t)
			if code, stdout, stderr := callWith(t, row.stdin, as(t, s.URL, s.Token, "acme", append([]string{"apply"}, row.args...)...)...); code != row.code || !strings.Contains(stdout+stderr, row.want) {
				t.Errorf("exit code %d, and no %q:\n%s%s", code, row.want, stdout, stderr)
			}
			stored, _, there := s.Calendar("acme", "shop")
			if want := row.code == exitOK; there != want || there && strings.TrimPrefix(*stored.ICS, "\ufeff") != icsText {
				t.Errorf("the site has %+v, %t", stored, there)
			}
		})
	}
	if code, stdout, stderr := call(t, "validate", "-f", ics, "--name", "shop"); code != exitOK || stdout != "Valid: calendar shop.\n" {
		t.Errorf("validate ends with %d:\n%s%s", code, stdout, stderr)
	}
}
