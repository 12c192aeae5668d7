package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
)

// marksName is the file with the high-water mark of each stream. After a crash a
// stream that lacks its newest records looks like one whose last record was being
// written. The logs have a guard besides.
const marksName = "marks.json"

// Marks are the high-water marks of a store: the last sequence of each stream,
// by "ACCOUNT/STREAM".
type Marks map[string]uint64

// marksFile is what the file holds.
type marksFile struct {
	Streams Marks `json:"streams"`
}

// ReadMarks returns the marks of a store; nil for a store that never had any.
func ReadMarks(dir string) (Marks, error) {
	path := filepath.Join(dir, marksName)
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var file marksFile
	switch err := format.Marks.Decode(body, &file); {
	case format.IsUnsupported(err):
		return nil, fmt.Errorf("the high-water marks %s were %w", path, err)
	case err != nil:
		return nil, &Damage{What: path + " cannot be read", cause: err, Override: path}
	}
	return file.Streams, nil
}

// Write makes the marks durable.
func (m Marks) Write(dir string) error {
	body, err := format.Marks.Encode(marksFile{m})
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, marksName), body, 0o600)
}

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
				Override: filepath.Join(dir, marksName),
			}
		}
	}
	return nil
}
