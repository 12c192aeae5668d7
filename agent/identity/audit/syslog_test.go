package audit

import (
	"regexp"
	"strings"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// message is the grammar of RFC 5424 6, of a message that has structured data of one element.
var message = regexp.MustCompile(`^<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z) ([!-~]{1,255}) ([!-~]{1,48}) ([!-~]{1,128}) ([!-~]{1,32}) ` +
	`\[([!#-<>-\\^-~]{1,32})((?: [!#-<>-\\^-~]{1,32}="(?:[^"\\\]]|\\["\\\]])*")*)\] \x{feff}([^\n]*)$`)

// TestSyslog checks that each message is one of RFC 5424, whatever is in the record.
func TestSyslog(t *testing.T) {
	t.Parallel()
	r := record("ann")
	r.Seq, r.Hash = 7, "abc"
	want := `<109>1 2026-11-22T01:02:03Z north osupgrade - write [osupgrade@32473 seq="7" tenant="acme" by="ann" as="user" token="4f2a91c07b13" from="192.0.2.1:4711"` +
		` action="write" object="config" result="done" status="204" request="PUT /v1/config/tenants/acme/os-upgrade" request-id="r1" before="1-2" after="1-3" hash="abc"]` +
		" \ufeffuser ann from 192.0.2.1:4711: write config, done"
	if got := Syslog("north", r); got != want {
		t.Errorf("it is\n%s\nnot\n%s", got, want)
	}
	hostile := r
	hostile.By, hostile.Action, hostile.Reason, hostile.Error, hostile.Result = `a"b\c]d`, "wri te\n", "one\ntwo\x00", "ö]\"", v1.AuditFailed
	for site, r := range map[string]v1.AuditRecord{
		"north": r, "": {}, "ö north\n": hostile, strings.Repeat("n", 300): {Action: strings.Repeat("a", 40), Result: v1.AuditRefused},
	} {
		got := Syslog(site, r)
		if !message.MatchString(got) {
			t.Errorf("this is no message of RFC 5424:\n%q", got)
		}
	}
	if got := Syslog("north", hostile); !strings.HasPrefix(got, "<107>1 ") || !strings.Contains(got, `by="a\"b\\c\]d"`) || !strings.Contains(got, `reason="one two "`) {
		t.Errorf("it is %q", got)
	}
}
