package store

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// marksPath is the file with the high-water mark of each stream. After a crash a
// stream that lacks its newest records looks like one whose last record was being
// written. The file is beside the store, so that an older store that is put in place of
// it is found out. The logs have a guard besides.
func marksPath(dir string) string { return filepath.Clean(dir) + "-marks.json" }

// Marks are the high-water marks of a store: the last sequence of each stream,
// by "ACCOUNT/STREAM".
type Marks map[string]uint64

// marksFile is what the file holds.
type marksFile struct {
	Streams Marks `json:"streams"`
}

// ReadMarks returns the marks of a store; nil for a store that never had any.
func ReadMarks(dir string) (Marks, error) {
	var file marksFile
	_, err := readFile(format.Marks, marksPath(dir), &file)
	return file.Streams, err
}

// Write makes the marks durable.
func (m Marks) Write(dir string) error { return writeFile(format.Marks, marksPath(dir), marksFile{m}) }

// checkMarks checks that no stream ends before its mark.
func checkMarks(dir string, last map[string]uint64) error {
	marks, err := ReadMarks(dir)
	if err != nil {
		return err
	}
	for _, stream := range slices.Sorted(maps.Keys(marks)) {
		if mark := marks[stream]; last[stream] < mark {
			return &Damage{
				What:     fmt.Sprintf("stream %s ends at record %d, and record %d had been there", stream, last[stream], mark),
				Override: marksPath(dir),
			}
		}
	}
	return nil
}
