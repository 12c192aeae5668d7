package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/decide"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// TestJournalCutAnywhere checks that a journal cut at any byte is never read as another
// journal: it is refused, or it reads the same.
func TestJournalCutAnywhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.json")
	whole := prepared()
	if err := writeJournal(path, whole, durable.WriteFile); err != nil {
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
		"unknown outcome": `{"run":1,"seq":1,"action":"prepare","phase":"answered","result":{"outcome":"perhaps"}}`,
		"result as text":  `{"run":1,"seq":1,"action":"prepare","phase":"answered","result":"done"}`,
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

// TestJournalOfAnotherVersion checks that a worker goes on with the journal of a newer
// version of the same format, and that the error names another format: an operator who
// reads "damaged" would remove the file.
func TestJournalOfAnotherVersion(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.json")
	read := func(file []byte) (decide.Journal, error) {
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

// TestDamagedBoots checks that the error of a damaged file names the file.
func TestDamagedBoots(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), bootsFile)
	if err := os.WriteFile(path, []byte(`{"format":1,"boots":{`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readBoots(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), path+" is damaged") || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a damaged file: %v", err)
	}
}

// TestIdentity checks that a state directory is named once, that each has
// another name, and that a damaged name is none.
func TestIdentity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "identity.json")
	first, err := readIdentity(path, durable.WriteFile)
	if err != nil || len(first) != identityLength {
		t.Fatalf("%q, %v", first, err)
	}
	if again, err := readIdentity(path, durable.WriteFile); err != nil || again != first {
		t.Errorf("%q after %q: %v", again, first, err)
	}
	if other, err := readIdentity(path+"2", durable.WriteFile); err != nil || other == first {
		t.Errorf("two directories are named %q: %v", other, err)
	}
	for _, name := range []string{"", first[1:], first + "A", strings.ToLower(first), strings.Repeat("\x00", identityLength)} {
		for _, damaged := range []string{name, fmt.Sprintf(`{"format":1,"worker":%q}`, name)} {
			if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
				t.Fatal(err)
			}
			if name, err := readIdentity(path, durable.WriteFile); err == nil || !strings.Contains(err.Error(), path+" is damaged") {
				t.Errorf("%q reads as %q: %v", damaged, name, err)
			}
		}
	}
	if err := os.WriteFile(path, []byte(`{"format":2,"name":"`+first+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := readIdentity(path, durable.WriteFile); err == nil || !strings.Contains(err.Error(), "written by format 2, this version reads 1") {
		t.Errorf("a name of another format reads as %q: %v", name, err)
	}
	written, err := format.Identity.Encode(identityContent{Worker: "ABCDEFGHIJKLMNOPQRSTUVWXYZ"})
	if err != nil {
		t.Fatal(err)
	}
	kept := formattest.Golden(t, "testdata/format1/identity.json", append(written, '\n'))
	if err := os.WriteFile(path, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := readIdentity(path, durable.WriteFile); err != nil || name != "ABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		t.Errorf("the name of format 1 reads as %q: %v", name, err)
	}
	full := errors.New("no space")
	if _, err := readIdentity(path+"3", func(string, []byte, os.FileMode) error { return full }); !errors.Is(err, full) {
		t.Errorf("the error is %v", err)
	}
}
