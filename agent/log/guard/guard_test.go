package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

func records(n int) []message.Record {
	var all []message.Record
	for i := range n {
		all = append(all, message.Record{Seq: uint64(i + 1), Time: time.Unix(int64(i), 0), Kind: message.EventRecord, Body: fmt.Appendf(nil, "record %d", i)})
	}
	return all
}

// open opens the guard of a log in a file.
func open(path string) (*Guard, error) {
	f, err := OpenFile(path)
	if err != nil {
		return nil, err
	}
	return f.Guard("acme"), nil
}

// reread shows a log to a new guard with the file of an earlier one.
func reread(t *testing.T, path string, log []message.Record) error {
	t.Helper()
	g, err := open(path)
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
	g, err := open(path)
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
	g, err := open(path)
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
		return open(path)
	}
	for _, file := range [][]byte{kept, bytes.Replace(kept, []byte("{"), []byte(`{"more":1,`), 1)} {
		if again, err := read(file); err != nil || again.kept.Seq != 10 || again.Trimmed() != 5 {
			t.Errorf("%s is read as %+v, %v", file, again, err)
		}
	}
	_, err = read([]byte(`{"format":2,"logs":{}}`))
	if want := "the guard " + path + " of the logs was written by format 2, this version reads 1; start a version that reads it"; err == nil || err.Error() != want {
		t.Errorf("the error is %v, not %s", err, want)
	}
}

// TestGap checks that a record that is missing in the middle is noticed.
func TestGap(t *testing.T) {
	t.Parallel()
	g, err := open(filepath.Join(t.TempDir(), "guard.json"))
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

// trimmed makes the guard of a log of 10 records that was trimmed up to its
// fourth, and kept when it knew so many of them.
func trimmed(t *testing.T, kept int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "guard.json")
	g, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records(kept) {
		if err := g.See(r); err != nil {
			t.Fatal(err)
		}
		if r.Seq == 4 {
			g.Note()
		}
	}
	if err := g.Trim(4); err != nil {
		t.Fatal(err)
	}
	if g.Trimmed() != 4 {
		t.Errorf("it was trimmed up to record %d", g.Trimmed())
	}
	return path
}

// show shows a log to a new guard with the file of an earlier one.
func show(path string, log []message.Record) error {
	g, err := open(path)
	if err != nil {
		return err
	}
	for _, r := range log {
		if err := g.See(r); err != nil {
			return err
		}
	}
	return g.End(log[len(log)-1].Seq)
}

// TestTrim checks that a log is known again after its beginning was removed on
// purpose, be the removal done, begun or not begun, and that any other
// beginning is noticed.
func TestTrim(t *testing.T) {
	t.Parallel()
	log := records(10)
	for _, kept := range []int{4, 5, 10} {
		path := trimmed(t, kept)
		for _, first := range []int{0, 2, 4} {
			if err := show(path, log[first:]); err != nil {
				t.Errorf("kept at %d, a log from record %d on is refused: %v", kept, first+1, err)
			}
		}
		if err := show(path, log[5:]); err == nil {
			t.Errorf("kept at %d, a log that was cut further is not noticed", kept)
		}
		if err := show(path, log[4:8]); (err == nil) != (kept < 9) {
			t.Errorf("kept at %d, a log that ends at 8: %v", kept, err)
		}
	}
	path := trimmed(t, 10)
	for i := 4; i < 10; i++ {
		changed := records(10)
		changed[i].Body = append(changed[i].Body, ' ')
		if err := show(path, changed[4:]); err == nil {
			t.Errorf("a change of record %d is not noticed", i+1)
		}
	}
}

// TestTrimAgain checks that a trimmed log can be trimmed further, and only at
// a place that was noted.
func TestTrimAgain(t *testing.T) {
	t.Parallel()
	path := trimmed(t, 10)
	g, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	log := records(10)
	for _, r := range log[4:] {
		if err := g.See(r); err != nil {
			t.Fatal(err)
		}
		if r.Seq == 7 {
			g.Note()
		}
	}
	if err := g.Trim(6); err == nil {
		t.Error("it can be trimmed at a place that was not noted")
	}
	if err := g.Trim(3); err != nil || g.Trimmed() != 4 {
		t.Errorf("what is gone already: %v, up to %d", err, g.Trimmed())
	}
	if err := g.Trim(7); err != nil {
		t.Fatal(err)
	}
	if err := show(path, log[7:]); err != nil {
		t.Errorf("the log is refused: %v", err)
	}
	if err := g.Trim(7); err != nil {
		t.Errorf("the same once more: %v", err)
	}
}

// TestDamagedGuard checks that no change of a byte of the file goes unnoticed.
func TestDamagedGuard(t *testing.T) {
	t.Parallel()
	path := trimmed(t, 10)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log := records(10)
	for i := range whole {
		for bit := range 8 {
			damaged := append([]byte(nil), whole...)
			damaged[i] ^= 1 << bit
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			g, err := open(path)
			if err != nil || show(path, log[4:]) != nil {
				continue
			}
			// Upper and lower case are the same hash, and some blanks are the same.
			if g.kept.Seq != 10 || g.Trimmed() != 4 {
				t.Errorf("bit %d of byte %d: %s", bit, i, damaged)
			}
		}
	}
	for name, body := range map[string][]byte{"empty": {}, "zeroed": make([]byte, len(whole)), "cut": whole[:len(whole)/2]} {
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := open(path); err == nil {
			t.Errorf("a guard that is %s is taken for one", name)
		}
	}
}

// TestAdopt checks that a log which was trimmed is taken as it is once its
// guard was removed, as the alarm says, and is guarded from then on.
func TestAdopt(t *testing.T) {
	t.Parallel()
	path, log := filepath.Join(t.TempDir(), "guard.json"), records(10)
	g, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range log[4:] {
		if err := g.See(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Keep(); err != nil {
		t.Fatal(err)
	}
	if err := show(path, log[4:]); err != nil {
		t.Errorf("the log is not known again: %v", err)
	}
	if err := show(path, log[5:]); err == nil {
		t.Error("a beginning that is gone is not noticed")
	}
	log[6].Body = []byte("{}")
	if err := show(path, log[4:]); err == nil {
		t.Error("a record that was changed is not noticed")
	}
}
