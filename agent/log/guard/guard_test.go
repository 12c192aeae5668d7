package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/format/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

func records(n int) []message.Record {
	var all []message.Record
	for i := range n {
		all = append(all, message.Record{Seq: uint64(i + 1), Time: time.Unix(int64(i), 0), Kind: message.EventRecord, Body: fmt.Appendf(nil, "record %d", i)})
	}
	return all
}

// reread shows a log to a new guard with the file of an earlier one.
func reread(t *testing.T, path string, log []message.Record) error {
	t.Helper()
	g, err := Open(path)
	if err != nil {
		return err
	}
	if err := g.End(uint64(len(log))); err != nil {
		return err
	}
	for _, r := range log {
		if err := g.See(r); err != nil {
			return err
		}
	}
	return nil
}

// TestGuard checks that a log which is not the one of before is noticed.
func TestGuard(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "guard.json")
	log := records(10)
	g, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range log {
		if err := g.See(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Keep(); err != nil {
		t.Fatal(err)
	}
	if err := reread(t, path, log); err != nil {
		t.Errorf("the same log is refused: %v", err)
	}
	if err := reread(t, path, append(records(10), message.Record{Seq: 11, Body: []byte("new")})); err != nil {
		t.Errorf("a longer log is refused: %v", err)
	}
	if err := reread(t, path, log[:9]); err == nil {
		t.Error("a log that was cut is not noticed")
	}
	if err := reread(t, path, nil); err == nil {
		t.Error("a log that is gone is not noticed")
	}
	for i := range log {
		changed := records(10)
		changed[i].Body = append(changed[i].Body, ' ')
		if err := reread(t, path, changed); err == nil {
			t.Errorf("a change of record %d is not noticed", i+1)
		}
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := reread(t, path, log); err == nil {
		t.Error("a damaged guard is taken for none")
	}
}

// TestGuardFormat holds the file against the fixture of format 1, and reads it. A
// file of another format is refused by name.
func TestGuardFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "guard.json")
	g, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	log := records(10)
	for i, r := range log {
		if err := g.See(r); err != nil {
			t.Fatal(err)
		}
		if i == 4 {
			g.Note()
		}
	}
	if err := errors.Join(g.Keep(), g.Trim(5)); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := formattest.Golden(t, "testdata/format1/guard.json", written)
	read := func(file []byte) (*Guard, error) {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		return Open(path)
	}
	for _, file := range [][]byte{kept, bytes.Replace(kept, []byte("{"), []byte(`{"more":1,`), 1)} {
		if again, err := read(file); err != nil || again.kept.Seq != 10 || again.Trimmed() != 5 {
			t.Errorf("%s is read as %+v, %v", file, again, err)
		}
	}
	_, err = read([]byte(`{"format":2,"logs":{}}`))
	if want := "the guard " + path + " of the log was written by format 2, this version reads 1; start a version that reads it"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, not %s", err, want)
	}
}

// TestGap checks that a record that is missing in the middle is noticed.
func TestGap(t *testing.T) {
	t.Parallel()
	g, err := Open(filepath.Join(t.TempDir(), "guard.json"))
	if err != nil {
		t.Fatal(err)
	}
	log := records(3)
	if err := g.See(log[0]); err != nil {
		t.Fatal(err)
	}
	if err := g.See(log[2]); err == nil {
		t.Error("a gap is not noticed")
	}
}
