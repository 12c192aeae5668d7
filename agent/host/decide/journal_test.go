package decide

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// TestJournalFlippedAnywhere checks that a journal with any one bit flipped is never
// read as another journal.
func TestJournalFlippedAnywhere(t *testing.T) {
	t.Parallel()
	whole := upgradedWith("no space left")
	whole.Log, whole.Epoch, whole.Away = "B", 7, true
	body, err := whole.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := DecodeJournal(body); err != nil || got != whole {
		t.Fatalf("it reads as %+v: %v", got, err)
	}
	refused := 0
	for i := range body {
		for bit := range 8 {
			body[i] ^= 1 << bit
			got, err := DecodeJournal(body)
			if err != nil {
				refused++
			} else if got != whole {
				t.Errorf("with bit %d of byte %d flipped it reads as %+v", bit, i, got)
			}
			body[i] ^= 1 << bit
		}
	}
	// The few that do not matter are the case of a member's name and the blank
	// at the end.
	if refused < 7*len(body) {
		t.Errorf("only %d of %d are refused", refused, 8*len(body))
	}
}

// sealOf returns the file of a journal that says so.
func sealOf(journal string) []byte {
	return fmt.Appendf(nil, `{"format":1,"journal":%s,"sum":%q}`, journal, sumOf(journal))
}

func sumOf(journal string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(journal))) }

// TestDamagedFile checks damage outside the journal in its file.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	idle := string(sealOf(`{"run":0,"not-after":"0001-01-01T00:00:00Z","seq":3,"action":"","phase":"","boot-id":""}`))
	if j, err := DecodeJournal([]byte(idle)); err != nil || j != (Journal{Seq: 3}) {
		t.Fatalf("%+v, %v", j, err)
	}
	for name, c := range map[string]struct{ body, want string }{
		"empty":          {"", "unexpected end"},
		"zeros":          {"\x00\x00\x00\x00", "invalid character"},
		"not JSON":       {"run 10", "invalid character"},
		"no number":      {strings.Replace(idle, `"format":1,`, "", 1), "no format number"},
		"no sum":         {`{"format":1,"journal":{"phase":""}}`, "its sum is wrong"},
		"no journal":     {`{"format":1,"sum":"` + sumOf("") + `"}`, "unexpected end"},
		"another sum":    {`{"format":1,"journal":{"phase":""},"sum":"` + sumOf("{}") + `"}`, "its sum is wrong"},
		"two objects":    {idle + "{}", "after top-level value"},
		"without a seal": {`{"format":1,"phase":""}`, "its sum is wrong"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := DecodeJournal([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, not %q", err, c.want)
			}
		})
	}
}

// TestJournalFormat compares the journals that are written with the fixtures of format
// 1, and reads the fixtures.
func TestJournalFormat(t *testing.T) {
	t.Parallel()
	away := upgradedWith("no space left")
	away.Log, away.Epoch, away.Away, away.Reboot = "B", 7, true, Accepted
	for name, want := range map[string]Journal{"idle": {Seq: 3}, "prepared": prepared(), "away": away} {
		body, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		kept := formattest.Golden(t, "testdata/format1/journal-"+name+".json", body)
		if got, err := DecodeJournal(kept); err != nil || got != want {
			t.Errorf("%s reads as %+v, %v", name, got, err)
		}
	}
}

// FuzzJournal checks that no file makes the reader panic, and that no file yields a
// journal that the worker acts on although no worker writes it.
func FuzzJournal(f *testing.F) {
	f.Add(sealOf(`{"run":10,"not-after":"2026-11-21T02:00:00Z","seq":11,"action":"upgrade","phase":"upgrading","boot-id":"b"}`))
	f.Add([]byte(`{"phase":"answering"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		j, err := DecodeJournal(body)
		if err != nil {
			// A journal alone, whose sum the fuzzer need not find.
			j, err = DecodeJournal(sealOf(string(body)))
		}
		if err == nil && j.Phase != Idle && (j.Run == 0 || !j.Action.Known()) {
			t.Errorf("%s reads as %+v", body, j)
		}
		if err == nil && j.next(false, "b", now) == DoUpgrade {
			t.Errorf("%s makes the worker upgrade without asking what happened", body)
		}
	})
}

// TestSimilarHostNames checks that a host ignores a command to a host whose name begins
// with its own.
func TestSimilarHostNames(t *testing.T) {
	t.Parallel()
	if _, err := prepared().receive(commandAt(11, 10, message.Upgrade, "h011"), "h01", "boot-1", now); err == nil {
		t.Error("h01 takes a command for h011")
	}
}
