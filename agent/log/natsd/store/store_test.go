package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFormats holds the files of a store against the fixtures of format 1, and
// reads these. Files of another format are refused by name, and are no damage.
func TestFormats(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	write(t, filepath.Join(dir, "jetstream", "$G", "file"), "text")
	want := Marks{"$G/KV_osu-hosts": 7, "$G/OSU_acme": 1}
	if err := want.Write(dir); err != nil {
		t.Fatal(err)
	}
	seal, marks := filepath.Join(dir, sealName), marksPath(dir)
	write(t, marks, string(formattest.Golden(t, "testdata/format1/marks.json", []byte(read(t, marks)))))
	if got, err := ReadMarks(dir); err != nil || !maps.Equal(got, want) {
		t.Errorf("the marks are read as %v, %v", got, err)
	}
	// The streams that are marked are not there.
	var damage *Damage
	if _, err := Check(dir); !errors.As(err, &damage) || damage.Override != marks || !strings.Contains(err.Error(), "$G/KV_osu-hosts ends at record 0, and record 7 had been there") {
		t.Errorf("without the streams that are marked: %v", err)
	}
	write(t, marks, `{"streams":{}}`)
	const old = "it bears no format number: it was written by a version before the first release, or is damaged"
	if _, err := Check(dir); err == nil || err.Error() != "the store cannot be taken up: "+marks+": "+old+"; restore a backup, or run osupgrade-agent recover to continue with what is left: it removes "+marks {
		t.Errorf("of a store of before the first release it is said: %v", err)
	}
	write(t, marks, `{"format":1,"streams":{}}`)
	if err := Seal(dir, &Known{}); err != nil {
		t.Fatal(err)
	}
	write(t, seal, string(formattest.Golden(t, "testdata/format1/seal.json", []byte(read(t, seal)))))
	if _, err := Check(dir); err != nil {
		t.Errorf("as it was sealed: %v", err)
	}
	write(t, filepath.Join(dir, "jetstream", "$G", "file"), "Text")
	if _, err := Check(dir); !errors.As(err, &damage) || damage.Override != seal {
		t.Errorf("with another file: %v", err)
	}
	const newer = `{"format":2,"of":{}}`
	for _, path := range []string{seal, marks} {
		write(t, path, newer)
		_, err := Check(dir)
		if !format.IsUnsupported(err) || errors.As(err, &damage) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s of another format: %v", filepath.Base(path), err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Check(dir); err != nil {
		t.Errorf("without marks and seal: %v", err)
	}
}

// TestPrepare checks what is made of a store that was sealed, and of one that was
// not: there the indexes may count what was never written.
func TestPrepare(t *testing.T) {
	t.Parallel()
	for name, sealed := range map[string]bool{"sealed": true, "not sealed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			streams := filepath.Join(dir, "jetstream", "$G", "streams")
			index, orphan := filepath.Join(streams, "one", "msgs", indexName), filepath.Join(streams, "two")
			write(t, filepath.Join(streams, "one", "meta.inf"), "{}")
			write(t, filepath.Join(streams, "one", "meta.sum"), "")
			write(t, index, "index")
			write(t, filepath.Join(orphan, "msgs", "1.blk"), "")
			if sealed {
				write(t, filepath.Join(dir, sealName), `{"format":1,"files":{}}`)
			}
			if err := Prepare(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(index); errors.Is(err, os.ErrNotExist) == sealed {
				t.Errorf("the index: %v", err)
			}
			for _, gone := range []string{orphan, filepath.Join(dir, sealName)} {
				if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("%s is still there: %v", gone, err)
				}
			}
			if _, err := os.Stat(filepath.Join(streams, "one", "meta.inf")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPurged checks that a seal passes over what the server has purged and deletes when it
// gets to it: in the middle of a seal, or at its next start.
func TestPurged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	purged := filepath.Join(dir, "jetstream", "$G", "streams", "KV_x", "__msgs__")
	if err := os.MkdirAll(purged, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(purged, "1.blk"), "purged")
	if err := Seal(dir, &Known{}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(purged); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(dir); err != nil {
		t.Errorf("what was purged is missed: %v", err)
	}
}

// TestKnownFiles checks that a file which is as it was at the start is not read again at the stop,
// so that the next start finds what its disk has changed in between, and that any other file is.
func TestKnownFiles(t *testing.T) {
	t.Parallel()
	large, other := strings.Repeat("a", smallFile+1), strings.Repeat("a", smallFile)+"b"
	for name, row := range map[string]struct {
		text   string
		change func(path string, before os.FileInfo) error
		found  bool
	}{
		"as it was": {large, func(string, os.FileInfo) error { return nil }, false},
		"written":   {large, func(path string, _ os.FileInfo) error { return os.WriteFile(path, []byte(other), 0o600) }, false},
		"longer": {large, func(path string, before os.FileInfo) error {
			return errors.Join(os.WriteFile(path, []byte(large+"b"), 0o600), os.Chtimes(path, time.Time{}, before.ModTime()))
		}, false},
		"changed by its disk": {large, func(path string, before os.FileInfo) error {
			return errors.Join(os.WriteFile(path, []byte(other), 0o600), os.Chtimes(path, time.Time{}, before.ModTime()))
		}, true},
		"small": {"a", func(path string, before os.FileInfo) error {
			return errors.Join(os.WriteFile(path, []byte("b"), 0o600), os.Chtimes(path, time.Time{}, before.ModTime()))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "jetstream", "$G", "file")
			write(t, path, row.text)
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := Seal(dir, &Known{}); err != nil {
				t.Fatal(err)
			}
			known, err := Check(dir)
			if err != nil {
				t.Fatal(err)
			}
			before, err := os.Stat(path)
			if err := errors.Join(err, row.change(path, before), Seal(dir, known)); err != nil {
				t.Fatal(err)
			}
			var damage *Damage
			if _, err := Check(dir); errors.As(err, &damage) != row.found {
				t.Errorf("the next start finds %v", err)
			}
		})
	}
}

// TestRotIsNotSealed checks that a block which rots while the agent runs is not sealed as it is: it was
// whole at the start, and only its sum is made at the stop.
func TestRotIsNotSealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stream := filepath.Join(dir, "jetstream", "$G", "streams", "log")
	block, path := blockOfOne(t, blockHash("log", 1), smallFile+1), blockPath(stream, 1)
	sum, err := checksum(sha256.Sum256([]byte("log")), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(stream, "meta.inf"), "{}")
	write(t, filepath.Join(stream, "meta.sum"), hex.EncodeToString(sum))
	write(t, path, string(block))
	settled := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, time.Time{}, settled); err != nil {
		t.Fatal(err)
	}
	known, err := Check(dir)
	if err != nil {
		t.Fatal(err)
	}
	block[len(block)/2]++
	write(t, path, string(block))
	if err := os.Chtimes(path, time.Time{}, settled); err != nil {
		t.Fatal(err)
	}
	var damage *Damage
	if err := Seal(dir, known); !errors.As(err, &damage) || damage.What != path {
		t.Errorf("the seal of a block that has rotted ends with %v", err)
	}
}

// blockOfOne is a block with one record, which has so many bytes.
func blockOfOne(t *testing.T, key [sha256.Size]byte, size int) []byte {
	t.Helper()
	block := make([]byte, recordHead+size+recordSum)
	binary.LittleEndian.PutUint32(block, uint32(len(block)))
	binary.LittleEndian.PutUint64(block[4:], 1)
	sum, err := checksum(key, block[4:20], block[recordHead:recordHead+size])
	if err != nil {
		t.Fatal(err)
	}
	copy(block[recordHead+size:], sum)
	return block
}

// TestUnsettledFileIsNotKnown checks that a file which has just changed is read again: its time
// may not show the next change.
func TestUnsettledFileIsNotKnown(t *testing.T) {
	t.Parallel()
	dir, ahead := t.TempDir(), time.Now().Add(time.Hour)
	path := filepath.Join(dir, "jetstream", "$G", "file")
	fill := func(text string) {
		t.Helper()
		write(t, path, strings.Repeat(text, smallFile+1))
		if err := os.Chtimes(path, time.Time{}, ahead); err != nil {
			t.Fatal(err)
		}
	}
	fill("a")
	known := &Known{}
	if _, err := known.checksums(dir); err != nil {
		t.Fatal(err)
	}
	fill("b")
	if err := Seal(dir, known); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(dir); err != nil {
		t.Error(err)
	}
}
