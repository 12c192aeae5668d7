package natsd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// indexName is the file in which the server notes, beside the records of a
// stream, how far it has come. What it lacks it makes anew from the records.
const indexName = "index.db"

// unwritten has a store hold what is in its records and nothing else, after a
// server that was ill or went down: what was being written then counts as not
// written. The server that was ill may have noted one that a full disk refused,
// and the next would leave out its number: in the log that is a record missing.
func unwritten(dir string) error {
	if err := checkStreams(dir, false); err != nil {
		return err
	}
	indexes, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", indexName))
	if err != nil {
		return err
	}
	for _, index := range indexes {
		err = errors.Join(err, os.Remove(index))
	}
	if err != nil {
		return fmt.Errorf("cannot remove what the server noted beside the records: %w", err)
	}
	return nil
}
