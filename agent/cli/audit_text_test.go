package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// hostile is a text that, printed as it is, puts a second record on the screen and hides the
// first: line breaks, escape sequences (also with one byte, as C1), and letters that turn the
// order of the others round.
const hostile = "config\x1b[1A\x1b[2K\r\n2  2026-11-22T01:02:03Z  user root\u009b2J\u202e\u2028\x7f\x00"

func hostileRecord() v1.AuditRecord {
	return v1.AuditRecord{
		Seq: 1, At: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), By: hostile, As: v1.AuditUser, From: hostile, Action: hostile, Object: hostile, Result: hostile,
		Error: hostile, Detail: hostile, Reason: hostile, Before: hostile, After: hostile, Diff: "+ " + strings.ReplaceAll(hostile, "\n", "") + "\n- was\n",
	}
}

// TestAuditIsPlain checks that no field of a record moves the cursor of whoever reads it, or
// begins a line.
func TestAuditIsPlain(t *testing.T) {
	t.Parallel()
	read := v1.AuditLog{Site: "dev", Records: []v1.AuditRecord{hostileRecord()}, Damage: []v1.AuditDamage{{Seq: 1, Message: hostile}}}
	for output, lines := range map[string]int{"text": 2, "syslog": 1, "history": 3, "damage": 1} {
		var out bytes.Buffer
		var err error
		switch output {
		case "history":
			to := newTerminal(&out)
			showChange(to, timeFormat{zone: time.UTC}, read.Records[0])
			err = to.err
		case "damage":
			out.WriteString(damaged(read.Damage).Error() + "\n")
		default:
			err = (&auditCommand{Output: output, Tenant: "acme"}).printer(&out)(read)
		}
		if err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if got := strings.Count(text, "\n"); got != lines {
			t.Errorf("%s has %d lines, not %d:\n%q", output, got, lines, text)
		}
		for _, c := range strings.ReplaceAll(text, "\n", "") {
			if !unicode.IsPrint(c) && c != '\ufeff' { // The mark of UTF-8 in a message of syslog.
				t.Errorf("%s has %q in\n%q", output, c, text)
			}
		}
		if !strings.Contains(text, "user root") {
			t.Errorf("%s lacks a part of the text:\n%q", output, text)
		}
	}
	var out bytes.Buffer
	if err := (&auditCommand{Output: "json", Tenant: "acme"}).printer(&out)(read); err != nil {
		t.Fatal(err)
	}
	var again []v1.AuditRecord
	if err := json.Unmarshal(out.Bytes(), &again); err != nil || again[0].Object != hostile {
		t.Errorf("the list is read as %+v: %v", again, err)
	}
}
