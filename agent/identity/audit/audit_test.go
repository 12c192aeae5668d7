package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/measure"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func openLogs(t *testing.T, dir string, size Size) *Logs {
	t.Helper()
	l := OpenSized(dir, size)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func record(by string) v1.AuditRecord {
	return v1.AuditRecord{
		At: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), Tenant: "acme", By: by, As: v1.AuditUser, Token: "4f2a91c07b13", From: "192.0.2.1:4711",
		Action: "write", Object: "config", Result: v1.AuditDone, Status: 204, Request: "PUT /v1/config/tenants/acme/os-upgrade", RequestID: "r1",
		Before: "1-2", After: "1-3", Diff: "- a: <1>\n+ a: 2\n",
	}
}

func add(t *testing.T, l *Logs, records ...v1.AuditRecord) {
	t.Helper()
	for _, r := range records {
		if err := l.Keep(r); err != nil {
			t.Fatal(err)
		}
	}
}

func after(seq uint64) v1.AuditFilter { return v1.AuditFilter{After: &seq, Limit: v1.MaxAudit} }

// by returns who the records are of, and what is damaged.
func by(t *testing.T, l *Logs, tenant string, filter v1.AuditFilter) string {
	t.Helper()
	read, err := l.Read(tenant, filter)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range read.Records {
		names = append(names, r.By)
	}
	for _, d := range read.Damage {
		names = append(names, fmt.Sprintf("%d: %s", d.Seq, d.Message))
	}
	return strings.Join(names, " ")
}

// file returns the first file of a tenant's log and what it has.
func file(t *testing.T, dir string) (name, text string) {
	t.Helper()
	name = filepath.Join(dir, "acme", fileName(1))
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return name, string(body)
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestRead checks that records come back, also after a restart, to their tenant alone, and
// those that a filter chooses.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLogs(t, dir, DefaultSize)
	other := record("eve")
	other.Tenant = AllTenants
	add(t, l, record("ann"), other, record("bob"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openLogs(t, dir, DefaultSize)
	holidays := record("cid")
	holidays.Object, holidays.At = "calendar/holidays", holidays.At.Add(time.Hour)
	add(t, l, holidays)
	for _, row := range []struct {
		tenant, want string
		filter       v1.AuditFilter
	}{
		{"acme", "ann bob cid", after(0)},
		{"acme", "bob cid", after(1)},
		{"acme", "", after(3)},
		{"acme", "", after(1 << 63)},
		{AllTenants, "eve", after(0)},
		{"nobody", "", after(0)},
		{"acme", "bob cid", v1.AuditFilter{Limit: 2}},
		{"acme", "ann bob cid", v1.AuditFilter{}},
		{"acme", "bob", v1.AuditFilter{By: "bob"}},
		{"acme", "cid", v1.AuditFilter{Object: "calendar"}},
		{"acme", "cid", v1.AuditFilter{Object: "calendar/holidays"}},
		{"acme", "", v1.AuditFilter{Object: "calendar/h"}},
		{"acme", "cid", v1.AuditFilter{Since: holidays.At}},
		{"acme", "ann bob", v1.AuditFilter{Until: holidays.At}},
	} {
		if got := by(t, l, row.tenant, row.filter); got != row.want {
			t.Errorf("%+v of %s chooses %q, not %q", row.filter, row.tenant, got, row.want)
		}
	}
	if tenants, err := l.Tenants(); err != nil || len(tenants) != 3 {
		t.Errorf("there are the logs of %v: %v", tenants, err)
	}
}

// TestFormat checks that the format of a record stays what it is.
func TestFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	add(t, openLogs(t, dir, DefaultSize), record("ann"), record("bob"))
	_, text := file(t, dir)
	kept := formattest.Golden(t, "testdata/format-1/audit.jsonl", []byte(text))
	headText, err := os.ReadFile(filepath.Join(dir, "acme", headName))
	if err != nil {
		t.Fatal(err)
	}
	keptHead := formattest.Golden(t, "testdata/format-1/head.json", headText)
	again := t.TempDir()
	if err := os.Mkdir(filepath.Join(again, "acme"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(again, "acme", fileName(1)), string(kept))
	write(t, filepath.Join(again, "acme", headName), string(keptHead))
	if got := by(t, openLogs(t, again, DefaultSize), "acme", after(0)); got != "ann bob" {
		t.Errorf("the records of the fixture are %q", got)
	}
	// A line is what the API and an export have: who has it can check its hash.
	var r v1.AuditRecord
	line, _, _ := strings.Cut(string(kept), "\n")
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		t.Fatal(err)
	}
	if exported, err := json.Marshal(r); err != nil || string(exported) != line {
		t.Errorf("a record is exported as\n%s, and stored as\n%s: %v", exported, line, err)
	}
}

// forged is a line of a record whose hash is right for what it says.
func forged(t *testing.T, seq uint64, by, previous string) string {
	t.Helper()
	r := record(by)
	r.Format, r.Seq, r.Previous = 1, seq, previous
	line, err := encode(&r)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// TestDamage checks that each change of what was written is named: of the running log, and
// after a restart, and that what is written afterwards is still there.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	add(t, openLogs(t, dir, DefaultSize), record("ann"), record("bob"), record("cid"))
	path, text := file(t, dir)
	headText, err := os.ReadFile(filepath.Join(filepath.Dir(path), headName))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(text, "\n")
	var second v1.AuditRecord
	if err := json.Unmarshal([]byte(lines[1]), &second); err != nil {
		t.Fatal(err)
	}
	name := filepath.Base(path)
	for what, row := range map[string]struct{ text, want string }{
		"nothing":               {text, "ann bob cid"},
		"a record changed":      {strings.Replace(text, `"bob"`, `"eve"`, 1), "ann cid 2: record 2 was changed (line 2 of " + name + ")"},
		"a member added at end": {strings.Replace(text, "\"}\n", "\",\"by\":\"eve\"}\n", 1), "bob cid 1: record 1 was changed (line 1 of " + name + ")"},
		"a record garbled":      {lines[0] + "x\n" + lines[2], "ann cid 2: record 2 cannot be read (line 2 of " + name + ")"},
		"a record removed":      {lines[0] + lines[2], "ann cid 2: record 2 is missing"},
		"the first removed":     {lines[1] + lines[2], "bob cid 1: record 1 is missing"},
		"two exchanged":         {lines[1] + lines[0] + lines[2], "bob cid 1: record 1 is missing 1: record 1 is there once more (line 2 of " + name + ")"},
		"a record twice":        {lines[0] + text, "ann bob cid 1: record 1 is there once more (line 2 of " + name + ")"},
		"a record forged":       {lines[0] + forged(t, 2, "eve", second.Previous) + lines[2], "ann eve cid 2: record 2 is not the one that was written before record 3 (line 3 of " + name + ")"},
		"the last forged":       {lines[0] + lines[1] + forged(t, 3, "eve", second.Hash), "ann bob eve 3: record 3 is not the one that was written last (line 3 of " + name + ")"},
		"the last changed":      {strings.Replace(text, `"cid"`, `"eve"`, 1), "ann bob 3: record 3 was changed (line 3 of " + name + ")"},
		"the end removed":       {lines[0], "ann 2: records 2 to 3 are missing"},
		"all removed":           {"", "1: records 1 to 3 are missing"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "acme"), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "acme", name), row.text)
			write(t, filepath.Join(dir, "acme", headName), string(headText))
			l := openLogs(t, dir, DefaultSize)
			if got := by(t, l, "acme", after(0)); got != row.want {
				t.Errorf("it is read as %q,\nnot %q", got, row.want)
			}
			add(t, l, record("dan"))
			got := by(t, l, "acme", after(0))
			if !strings.Contains(got, "dan") || strings.Contains(row.want, ":") != strings.Contains(got, ":") {
				t.Errorf("after one more record it is read as %q", got)
			}
			if err := os.WriteFile(filepath.Join(dir, "acme", name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := by(t, l, "acme", after(0)); !strings.Contains(got, "1: records 1 to 4 are missing") {
				t.Errorf("emptied while it is open, it is read as %q", got)
			}
		})
	}
}

// TestReplaced checks that no record goes to a file that is not there any more: an editor has put
// another one in its place.
func TestReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLogs(t, dir, DefaultSize)
	add(t, l, record("ann"), record("bob"))
	path, text := file(t, dir)
	write(t, path+".new", text)
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	add(t, l, record("cid"))
	for range 2 { // Also after a restart.
		if got, want := by(t, l, "acme", after(0)), "ann bob cid"; got != want {
			t.Errorf("it is read as %q, not %q", got, want)
		}
		_ = l.Close()
		l = openLogs(t, dir, DefaultSize)
	}
}

// TestFileRemoved checks that a whole file is missed, unless the log has removed it itself.
func TestFileRemoved(t *testing.T) {
	t.Parallel()
	for which, want := range map[int]string{0: "are missing", 1: "are missing"} {
		dir := t.TempDir()
		l := openLogs(t, dir, Size{File: 1000, Files: 4})
		for range 40 {
			add(t, l, record("ann"))
		}
		if got := by(t, l, "acme", after(0)); strings.Contains(got, ":") {
			t.Errorf("a log that has removed its oldest files is read as %q", got)
		}
		log, err := l.Log("acme")
		if err != nil {
			t.Fatal(err)
		}
		names, err := log.files(filePattern)
		if err != nil || len(names) != 4 {
			t.Fatalf("there are the files %v: %v", names, err)
		}
		if err := os.Remove(filepath.Join(dir, "acme", names[which])); err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		if got := by(t, openLogs(t, dir, Size{File: 1000, Files: 4}), "acme", after(0)); !strings.Contains(got, want) {
			t.Errorf("without file %d it is read as %q", which, got)
		}
	}
}

// TestGone checks that a log whose beginning, end or head is gone says so to whoever reads all of
// it: at the next start, and after more records and files.
func TestGone(t *testing.T) {
	t.Parallel()
	size := Size{File: 1000, Files: 4}
	for what, row := range map[string]struct {
		records int
		remove  []string
		want    string
	}{
		"all records":           {5, []string{"audit-*"}, "1: records 1 to 5 are missing"},
		"all that were kept":    {20, []string{"audit-*"}, "10: records 10 to 20 are missing"},
		"the first records":     {5, []string{fileName(1)}, "1: records 1 to 3 are missing"},
		"these and the head":    {5, []string{fileName(1), headName}, "1: records 1 to 3 are missing"},
		"the last and the head": {5, []string{fileName(4), headName}, "3: the head of the log is missing, so what followed record 3 may be missing, too"},
		"the head":              {2, []string{headName}, "2: the head of the log is missing, so what followed record 2 may be missing, too"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			l := openLogs(t, dir, size)
			for range row.records {
				add(t, l, record("ann"))
			}
			if got := by(t, l, "acme", after(0)); strings.Contains(got, ":") {
				t.Fatalf("whole it is read as %q", got)
			}
			headless := slices.Contains(row.remove, headName)
			if headless { // While the log is open it would make its head anew.
				_ = l.Close()
			}
			for _, pattern := range row.remove {
				gone, err := filepath.Glob(filepath.Join(dir, "acme", pattern))
				if err != nil || len(gone) == 0 {
					t.Fatal("nothing is removed", err)
				}
				for _, name := range gone {
					if err := os.Remove(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			if !headless {
				if got := by(t, l, "acme", after(0)); !strings.Contains(got, row.want) {
					t.Errorf("while it is open it is read as %q, without %q", got, row.want)
				}
				_ = l.Close()
			}
			_ = openLogs(t, dir, size).Close()
			for more := range 6 {
				l := openLogs(t, dir, size)
				got := by(t, l, "acme", after(0))
				if more == 0 && !strings.Contains(got, row.want) || !strings.Contains(got, ": ") {
					t.Errorf("after %d more records it is read as %q, without %q", more, got, row.want)
				}
				add(t, l, record("bob"))
				_ = l.Close()
			}
		})
	}
}

// TestFolderGone checks that a log whose whole folder is gone says so, whether it was removed
// while the log is open or before it is opened, and whether with those of the other tenants.
func TestFolderGone(t *testing.T) {
	t.Parallel()
	const missing = "1: records 1 to 3 are missing"
	for what, remove := range map[string]func(dir string) error{
		"one log":   func(dir string) error { return os.RemoveAll(filepath.Join(dir, "acme")) },
		"all logs":  os.RemoveAll,
		"its files": emptied,
		"all but its head": func(dir string) error {
			return errors.Join(emptied(dir), os.WriteFile(filepath.Join(dir, "acme", headName), nil, 0o600))
		},
	} {
		for when, open := range map[string]bool{"while it is open": true, "before it is opened": false} {
			t.Run(what+" "+when, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "audit")
				l := openLogs(t, dir, DefaultSize)
				add(t, l, record("ann"), record("bob"), record("cid"))
				if !open {
					_ = l.Close()
				}
				if err := remove(dir); err != nil {
					t.Fatal(err)
				}
				if !open {
					l = openLogs(t, dir, DefaultSize)
				}
				if all, err := l.Tenants(); err != nil || !slices.Contains(all, "acme") {
					t.Errorf("there are the logs %v: %v", all, err)
				}
				if got := by(t, l, "acme", after(0)); got != missing {
					t.Errorf("it is read as %q", got)
				}
				if err := l.Do(record("dan"), func(*v1.AuditRecord) error { return nil }); err != nil {
					t.Fatal(err)
				}
				for range 2 { // Also after a restart.
					if got := by(t, l, "acme", after(0)); got != "dan "+missing {
						t.Errorf("after one more record it is read as %q", got)
					}
					_ = l.Close()
					l = openLogs(t, dir, DefaultSize)
				}
			})
		}
	}
}

// emptied removes the files of a log and leaves its folder.
func emptied(dir string) error {
	folder := filepath.Join(dir, "acme")
	return errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700))
}

// TestCopyOfHeadAtOpen checks that a log without a copy of its head, such as one of a backup,
// gets it when it is opened.
func TestCopyOfHeadAtOpen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "audit")
	l := openLogs(t, dir, DefaultSize)
	add(t, l, record("ann"), record("bob"))
	_ = l.Close()
	if err := os.RemoveAll(MarksOf(dir)); err != nil {
		t.Fatal(err)
	}
	l = openLogs(t, dir, DefaultSize)
	if got := by(t, l, "acme", after(0)); got != "bob ann" && got != "ann bob" {
		t.Fatalf("it is read as %q", got)
	}
	_ = l.Close()
	if err := os.RemoveAll(filepath.Join(dir, "acme")); err != nil {
		t.Fatal(err)
	}
	if got := by(t, openLogs(t, dir, DefaultSize), "acme", after(0)); got != "1: records 1 to 2 are missing" {
		t.Errorf("without its folder it is read as %q", got)
	}
}

// TestTornEnd checks that a record of which a power cut left a part is dropped at the next
// start, with zeros in place of the rest or without, whatever the head then says; and that
// the log goes on behind the last whole one.
func TestTornEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLogs(t, dir, DefaultSize)
	add(t, l, record("ann"))
	before, err := os.ReadFile(filepath.Join(dir, "acme", headName))
	if err != nil {
		t.Fatal(err)
	}
	add(t, l, record("bob"))
	path, text := file(t, dir)
	_ = l.Close()
	first := strings.Index(text, "\n") + 1
	for cut := first; cut < len(text); cut += min(29, max(1, len(text)-1-cut)) { // The last byte, too.
		for _, rest := range []string{"", strings.Repeat("\x00", len(text)-cut), strings.Repeat("\x00", len(text)-cut-1) + "\n"} {
			if !strings.Contains(rest, "\x00") && rest != "" {
				continue // It lacks nothing but what was there.
			}
			for _, head := range []string{string(before), "", strings.Repeat("\x00", headSize)} {
				write(t, path, text[:cut]+rest)
				write(t, filepath.Join(dir, "acme", headName), head)
				l := openLogs(t, dir, DefaultSize)
				add(t, l, record("cid"))
				if got := by(t, l, "acme", after(0)); got != "ann cid" {
					t.Fatalf("cut after %d bytes, %q behind: it is read as %q", cut, rest, got)
				}
				_ = l.Close()
			}
		}
	}
}

// TestBounded checks that the oldest file goes first, that the rest is still whole, that
// several writers share a log, and that a restart goes on.
func TestBounded(t *testing.T) {
	t.Parallel()
	dir, size := t.TempDir(), Size{File: 4000, Files: 3}
	l := openLogs(t, dir, size)
	var writers sync.WaitGroup
	for range 9 {
		writers.Go(func() {
			for range 20 {
				if err := l.Keep(record("ann")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writers.Wait()
	_ = l.Close()
	l = openLogs(t, dir, size)
	read, err := l.Read("acme", after(0))
	if err != nil || len(read.Damage) > 0 || read.Last != 180 || read.Records[0].Seq != read.First || uint64(len(read.Records)) != read.Last-read.First+1 {
		t.Errorf("%d records from %d to %d are left, damaged: %v: %v", len(read.Records), read.First, read.Last, read.Damage, err)
	}
	var bytes int64
	files, err := filepath.Glob(filepath.Join(dir, "acme", "audit-*"))
	if err != nil || len(files) != 3 {
		t.Errorf("there are the files %v: %v", files, err)
	}
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	if most := int64(size.Files) * (size.File + maxLine); bytes > most {
		t.Errorf("it has %d bytes, more than %d", bytes, most)
	}
	add(t, l, record("bob"))
	if got := by(t, l, "acme", v1.AuditFilter{Limit: 1}); got != "bob" {
		t.Errorf("after a restart the newest is of %q", got)
	}
	all, err := l.Read("acme", v1.AuditFilter{Limit: v1.MaxAudit})
	if err != nil || !slices.EqualFunc(all.Records[:len(all.Records)-1], read.Records[len(read.Records)-len(all.Records)+1:], func(a, b v1.AuditRecord) bool { return a.Hash == b.Hash }) {
		t.Errorf("read back it has %d records, and read on %d: %v", len(all.Records), len(read.Records), err)
	}
}

// TestBegun checks that what was begun and has no record gets one: when its process has
// ended, and not while it is at work.
func TestBegun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLogs(t, dir, DefaultSize)
	if _, err := l.Begin(record("ann")); err != nil {
		t.Fatal(err)
	}
	if err := l.Resume(); err != nil {
		t.Fatal(err)
	}
	if got := by(t, l, "acme", after(0)); got != "" {
		t.Errorf("what is in progress has the record %q", got)
	}
	_ = l.Close()                                            // As the end of the process does.
	write(t, filepath.Join(dir, "acme", "begun-1.json"), "") // A power cut came before its content.
	l = openLogs(t, dir, DefaultSize)
	if err := l.Resume(); err != nil {
		t.Fatal(err)
	}
	read, err := l.Read("acme", after(0))
	if err != nil || len(read.Records) != 2 {
		t.Fatalf("the records are %+v: %v", read.Records, err)
	}
	for _, r := range read.Records {
		if r.Result != v1.AuditUnknown || !strings.Contains(r.Error, "look whether it was done") {
			t.Errorf("what was begun has the record %+v", r)
		}
	}
	if r := read.Records[1]; r.By != "ann" || r.Object != "config" {
		t.Errorf("what was begun has the record %+v", r)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "acme", begunPattern)); err != nil || len(left) > 0 {
		t.Errorf("%v are left: %v", left, err)
	}
}

// TestBeginAtOnce checks that what is begun while another looks for what was left by a
// process that has ended is not taken for that: it had the result "unknown", and could not
// be acknowledged. What was left has one record.
func TestBeginAtOnce(t *testing.T) {
	t.Parallel()
	const requests = 16
	for range 30 {
		dir := t.TempDir()
		before := openLogs(t, dir, DefaultSize)
		if _, err := before.Begin(record("left")); err != nil {
			t.Fatal(err)
		}
		_ = before.Close()
		logs := openLogs(t, dir, DefaultSize)
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				if err := logs.Do(record("ann"), func(*v1.AuditRecord) error { return nil }); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		read, err := logs.Read("acme", after(0))
		if err != nil || len(read.Records) != requests+1 {
			t.Errorf("there are %d records, %v", len(read.Records), err)
		}
		for _, r := range read.Records {
			if want := map[string]string{"ann": v1.AuditDone, "left": v1.AuditUnknown}; r.Result != want[r.By] {
				t.Errorf("record %d is %+v", r.Seq, r)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// TestHold checks that nothing is written while the files are copied.
func TestHold(t *testing.T) {
	t.Parallel()
	l := openLogs(t, t.TempDir(), DefaultSize)
	other := record("eve")
	other.Tenant = AllTenants
	add(t, l, record("ann"), other)
	release, err := l.Hold()
	if err != nil {
		t.Fatal(err)
	}
	for _, log := range l.open {
		if log.mu.TryLock() {
			t.Errorf("the log of %s can be written meanwhile", log.tenant)
		}
	}
	release()
	add(t, l, record("bob"))
	if got := by(t, l, "acme", after(0)); got != "ann bob" {
		t.Errorf("the records are %q", got)
	}
}

// TestTornTail checks that nothing is left of a record that failed, and that the next one does
// not follow what could not be cut off at once.
func TestTornTail(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := openLogs(t, dir, DefaultSize)
	add(t, l, record("ann"))
	log, err := l.Log("acme")
	if err != nil {
		t.Fatal(err)
	}
	path, text := file(t, dir)
	whole := log.file
	if log.file, err = os.Open(path); err != nil { // Neither written nor cut off.
		t.Fatal(err)
	}
	if err := l.Keep(record("bob")); err == nil {
		t.Fatal("a record was written to a file that is open for reading")
	}
	write(t, path, text+strings.Repeat("a longer record than the next one\n", 100))
	_ = log.file.Close()
	log.file = whole
	add(t, l, record("cid"))
	if got := by(t, l, "acme", after(0)); got != "ann cid" {
		t.Errorf("it is read as %q", got)
	}
}

// TestFails checks that what was done and cannot be recorded gets a record once one can be
// written, and that nothing is begun meanwhile.
func TestFails(t *testing.T) {
	t.Parallel()
	l := openLogs(t, t.TempDir(), DefaultSize)
	add(t, l, record("ann"))
	begun, err := l.Begin(record("bob"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := l.Log("acme")
	if err != nil {
		t.Fatal(err)
	}
	whole := log.headFile
	if log.headFile, err = os.OpenFile("/dev/full", os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	if err := begun.Keep(record("bob")); err == nil {
		t.Error("a record was written to a full disk")
	}
	if f := l.Figures(); !f.Failing || f.Failed != 1 || f.Written != 1 {
		t.Errorf("the figures are %+v", f)
	}
	called := false
	if err := l.Do(record("cid"), func(*v1.AuditRecord) error { called = true; return nil }); err == nil || called || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("it was done: %t, %v", called, err)
	}
	_ = log.headFile.Close()
	log.headFile = whole
	if err := l.Do(record("dan"), func(r *v1.AuditRecord) error { r.Object = "token/1"; return errors.New("no") }); err == nil || err.Error() != "no" {
		t.Errorf("the error is %v", err)
	}
	read, err := l.Read("acme", after(0))
	if err != nil || len(read.Damage) > 0 {
		t.Fatalf("it is read as %+v: %v", read, err)
	}
	var got []string
	for _, r := range read.Records {
		got = append(got, r.By+" "+r.Result)
	}
	if want := []string{"ann done", "bob unknown", "dan failed"}; !slices.Equal(got, want) {
		t.Errorf("the records are %q, not %q", got, want)
	}
	if l.Figures().Failing {
		t.Error("it still fails")
	}
}

// TestClean checks that no record has what looks like a secret, or more than fits.
func TestClean(t *testing.T) {
	t.Parallel()
	const hex = "0123456789abcdef0123456789abcdef0123456789abcdef"
	r := record("ann")
	r.Object, r.Error, r.Reason = "token/osu_"+hex, "osus_"+hex+" is no role", "see osuj_"+hex+"_abcdef012345"
	r.Request, r.By = "DELETE /v1/state/strongbox/tokens/osu_"+hex, strings.Repeat("é", maxText)
	r.Diff = "- url: https://ann:hunter22@site.example/\n" + strings.Repeat("+ <&>é\x01\n", 4000)
	l := openLogs(t, t.TempDir(), DefaultSize)
	add(t, l, r, record("bob"))
	read, err := l.Read("acme", after(0))
	if err != nil || len(read.Damage) > 0 || len(read.Records) != 2 {
		t.Fatalf("it is read as %+v: %v", read, err)
	}
	got := read.Records[0]
	text, err := json.Marshal(got)
	if err != nil || strings.Contains(string(text), hex[:12]) || strings.Contains(string(text), "hunter22") || len(text) > maxLine {
		t.Errorf("the record is %.2000s: %v", text, err)
	}
	if got.Object != "token/osu_…" || !strings.HasSuffix(got.Diff, "\n...\n") || !strings.Contains(got.Diff, "https://…@site.example/") || got.By != strings.Repeat("é", maxText/2) {
		t.Errorf("the record is %.2000s", text)
	}
}

// TestNewer checks that a log of a newer version is refused, and left as it is.
func TestNewer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	add(t, openLogs(t, dir, DefaultSize), record("ann"))
	path, text := file(t, dir)
	newer := strings.Replace(text, `{"format":1,`, `{"format":2,`, 1)
	write(t, path, newer)
	l := openLogs(t, dir, DefaultSize)
	if err := l.Keep(record("bob")); err == nil || !strings.Contains(err.Error(), "written by format 2") {
		t.Errorf("the error is %v", err)
	}
	if _, now := file(t, dir); now != newer {
		t.Errorf("it is now %s", now)
	}
}

// BenchmarkKeep is one synced record, and those of many at once.
func BenchmarkKeep(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := Open(b.TempDir())
			defer func() { _ = l.Close() }()
			var all sync.WaitGroup
			for range writers {
				all.Go(func() {
					for range max(1, b.N/writers) {
						begun, err := l.Begin(record("ann"))
						if err == nil {
							err = begun.Keep(record("ann"))
						}
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
			measure.SyncedWrite(b, 512)
		})
	}
}

// FuzzDecode checks that a line of a log that somebody has changed is not read as whole: what
// is read is what was written, byte by byte.
func FuzzDecode(f *testing.F) {
	r := record("ann")
	r.Format, r.Seq = 1, 1
	line, err := encode(&r)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add(bytes.Replace(line, []byte(`"by":"ann"`), []byte(`"by":"bob"`), 1))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		r, err := decode(line)
		if err != nil {
			return
		}
		text, _, _ := bytes.Cut(line, []byte(`,"hash":"`))
		if r.Hash != hashOf(append(slices.Clone(text), '}')) {
			t.Errorf("%s is read with the hash %s", line, r.Hash)
		}
	})
}
