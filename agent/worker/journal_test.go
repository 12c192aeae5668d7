package worker

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// TestJournalCutAnywhere checks that a journal cut at any byte is never read as another
// journal: it is refused, or it reads the same.
func TestJournalCutAnywhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.json")
	whole := prepared()
	if err := whole.write(path, durable.WriteFile); err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range body {
		if err := os.WriteFile(path, body[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadJournal(path); err == nil && got != whole {
			t.Errorf("cut after %d bytes it reads as %+v", cut, got)
		}
	}
}

// TestJournalFlippedAnywhere checks that a journal with any one bit flipped is never
// read as another journal.
func TestJournalFlippedAnywhere(t *testing.T) {
	t.Parallel()
	whole := upgradedWith("no space left")
	whole.Log, whole.Epoch, whole.Away = "B", 7, true
	body, err := whole.encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeJournal(body); err != nil || got != whole {
		t.Fatalf("it reads as %+v: %v", got, err)
	}
	refused := 0
	for i := range body {
		for bit := range 8 {
			body[i] ^= 1 << bit
			got, err := decodeJournal(body)
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

// TestDamagedJournal checks that a worker with a damaged journal does not guess.
func TestDamagedJournal(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"unknown phase":   `{"run":1,"seq":1,"action":"prepare","phase":"dreaming"}`,
		"unknown action":  `{"run":1,"seq":1,"action":"format","phase":"preparing"}`,
		"unknown reboot":  `{"run":1,"seq":1,"action":"reboot","phase":"rebooting","reboot":"maybe"}`,
		"command of none": `{"run":0,"seq":1,"action":"prepare","phase":"preparing"}`,
		"before its run":  `{"run":5,"seq":1,"action":"prepare","phase":"preparing"}`,
		"no result":       `{"run":1,"seq":1,"action":"prepare","phase":"answered"}`,
		"run of no phase": `{"run":1,"seq":1,"action":"prepare","phase":""}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "journal.json")
			if err := os.WriteFile(path, sealOf(body), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadJournal(path)
			if err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("the error is %v and does not name %s", err, path)
			}
		})
	}
}

// TestDamagedFile checks damage outside the journal in its file.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	idle := string(sealOf(`{"run":0,"not-after":"0001-01-01T00:00:00Z","seq":3,"action":"","phase":"","boot-id":""}`))
	if j, err := decodeJournal([]byte(idle)); err != nil || j != (Journal{Seq: 3}) {
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
			if _, err := decodeJournal([]byte(c.body)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, not %q", err, c.want)
			}
		})
	}
}

// TestJournalOfAnotherVersion checks that a worker goes on with the journal of a newer
// version of the same format, and that the error names another format: an operator who
// reads "damaged" would remove the file.
func TestJournalOfAnotherVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.json")
	read := func(file []byte) (Journal, error) {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadJournal(path)
	}
	const more = `{"run":10,"not-after":"2026-11-21T02:00:00Z","seq":10,"action":"prepare","phase":"preparing","boot-id":"b","more":{"of":1}}`
	if j, err := read(bytes.Replace(sealOf(more), []byte(`"sum"`), []byte(`"besides":[],"sum"`), 1)); err != nil || j.Run != 10 || j.BootID != "b" {
		t.Errorf("with a member more it reads as %+v, %v", j, err)
	}
	_, err := read([]byte(`{"format":2,"entries":[]}`))
	if want := "cannot read journal " + path + ": written by format 2, this version reads 1; start a version that reads it"; err == nil || err.Error() != want {
		t.Errorf("the error is %v\nwant %s", err, want)
	}
	if !format.IsUnsupported(err) {
		t.Error("the error does not tell another version from damage")
	}
}

// TestJournalFormat compares the journals that are written with the fixtures of format
// 1, and reads the fixtures.
func TestJournalFormat(t *testing.T) {
	t.Parallel()
	away := upgradedWith("no space left")
	away.Log, away.Epoch, away.Away, away.Reboot = "B", 7, true, Accepted
	for name, want := range map[string]Journal{"idle": {Seq: 3}, "prepared": prepared(), "away": away} {
		body, err := want.encode()
		if err != nil {
			t.Fatal(err)
		}
		kept := formattest.Golden(t, "testdata/format1/journal-"+name+".json", body)
		if got, err := decodeJournal(kept); err != nil || got != want {
			t.Errorf("%s reads as %+v, %v", name, got, err)
		}
	}
}

// TestOneWorkerPerStateDirectory checks that the error of a second worker names the
// first.
func TestOneWorkerPerStateDirectory(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, err := Open(t.Context(), r.options())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	if _, err := Open(t.Context(), r.options()); err == nil || !strings.Contains(err.Error(), "worker of host h01") {
		t.Errorf("the second worker got the error %v", err)
	}
}

// FuzzJournal checks that no file makes the reader panic, and that no file yields a
// journal that the worker acts on although no worker writes it.
func FuzzJournal(f *testing.F) {
	f.Add(sealOf(`{"run":10,"not-after":"2026-11-21T02:00:00Z","seq":11,"action":"upgrade","phase":"upgrading","boot-id":"b"}`))
	f.Add([]byte(`{"phase":"answering"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		j, err := decodeJournal(body)
		if err != nil {
			// A journal alone, whose sum the fuzzer need not find.
			j, err = decodeJournal(sealOf(string(body)))
		}
		if err == nil && j.Phase != Idle && (j.Run == 0 || !j.Action.Known()) {
			t.Errorf("%s reads as %+v", body, j)
		}
		if err == nil && j.Next(false, "b", now) == DoUpgrade {
			t.Errorf("%s makes the worker upgrade without asking what happened", body)
		}
	})
}

// TestSimilarHostNames checks that a host ignores a command to a host whose name begins
// with its own.
func TestSimilarHostNames(t *testing.T) {
	t.Parallel()
	if _, err := prepared().Receive(commandAt(11, 10, message.Upgrade, "h011"), "h01", "boot-1", now); err == nil {
		t.Error("h01 takes a command for h011")
	}
}
