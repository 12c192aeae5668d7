package guard

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/message"
)

// trimmed makes the guard of a log of 10 records that was trimmed up to its
// fourth, and kept when it knew so many of them.
func trimmed(t *testing.T, kept int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "guard.json")
	g, err := Open(path)
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
	g, err := Open(path)
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
	g, err := Open(path)
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
			g, err := Open(path)
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
		if _, err := Open(path); err == nil {
			t.Errorf("a guard that is %s is taken for one", name)
		}
	}
}

// TestAdopt checks that a log which was trimmed is taken as it is once its
// guard was removed, as the alarm says, and is guarded from then on.
func TestAdopt(t *testing.T) {
	t.Parallel()
	path, log := filepath.Join(t.TempDir(), "guard.json"), records(10)
	g, err := Open(path)
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
