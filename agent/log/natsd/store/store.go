package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
)

// indexName is the file in which the server notes, beside the records of a
// stream, how far it has come. What it lacks it makes anew from the records.
const indexName = "index.db"

// Damage is an error that says what is damaged in a store.
type Damage struct {
	// What names the file or the stream and says what is wrong with it.
	What string
	// Override is the file that makes the damage known; a person who removes it
	// goes on with what is left. It is empty when the records themselves are
	// damaged.
	Override string
	cause    error
	// mayBeOld means that a version before the first release may have written the store.
	mayBeOld bool
}

// Error says what is damaged, and what a person can do.
func (d *Damage) Error() string {
	text := "the store is damaged: "
	if d.mayBeOld {
		text = "the store cannot be taken up: "
	}
	text += d.What
	if d.cause != nil {
		text += ": " + d.cause.Error()
	}
	if d.Override != "" {
		text += "; restore a backup, or run osupgrade-agent recover to continue with what is left: it removes " + d.Override
	}
	return text
}

// Unwrap returns the cause.
func (d *Damage) Unwrap() error { return d.cause }

// Check looks for damage in a store on which no server runs. Damage is an error
// of type *Damage. Check changes nothing. It returns what it knows now, for Seal.
func Check(dir string) (*Known, error) {
	known := &Known{}
	sealed, err := known.checkSeal(dir)
	if err != nil {
		return nil, err
	}
	// A store that was sealed has no record that was being written.
	return known, known.checkStreams(dir, sealed)
}

// Prepare makes a store in which Check found no damage ready for a server. It
// breaks the seal. If there is none, the last server went down or its disk was
// full: Prepare drops the indexes then. It always removes orphan streams.
func Prepare(dir string) error {
	switch err := os.Remove(filepath.Join(dir, sealName)); {
	case err == nil:
		if err := durable.SyncFolder(dir); err != nil {
			return err
		}
	case !errors.Is(err, os.ErrNotExist):
		return err
	default:
		if err := dropIndexes(dir); err != nil {
			return err
		}
	}
	return removeOrphans(dir)
}

// dropIndexes removes index.db of every stream, so that the server makes it anew
// from the records. After a full disk the index may count a record that was never
// written, and the next append would leave a gap in the log.
func dropIndexes(dir string) error {
	indexes, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "msgs", indexName))
	if err != nil {
		return err
	}
	for _, index := range indexes {
		err = errors.Join(err, os.Remove(index))
	}
	if err != nil {
		return fmt.Errorf("cannot drop the indexes of the store: %w", err)
	}
	return nil
}

// removeOrphans removes the folders of streams that the server was making when it
// died. They have neither settings nor records, nobody was told of them, and the
// server takes each for a stream that it cannot recover.
func removeOrphans(dir string) error {
	streams, err := streamFolders(dir)
	if err != nil {
		return err
	}
	for _, stream := range streams {
		blocks, err := blocks(stream)
		if err != nil {
			return err
		}
		if !errors.Is(checkSettings(stream), os.ErrNotExist) || !emptyBlocks(stream, blocks) {
			continue
		}
		if err := os.RemoveAll(stream); err != nil {
			return fmt.Errorf("cannot remove an orphan stream: %w", err)
		}
	}
	return nil
}

// streamFolders lists the folders of all streams.
func streamFolders(dir string) ([]string, error) {
	return filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*"))
}

// checkStreams checks each stream by its own checksums, and that none ends before
// its high-water mark. whole tells that the last record of each stream must be
// whole.
func (k *Known) checkStreams(dir string, whole bool) error {
	streams, err := streamFolders(dir)
	if err != nil {
		return err
	}
	last := map[string]uint64{}
	for _, stream := range streams {
		// The server deletes a stream whose folder begins with a dot.
		if strings.HasPrefix(filepath.Base(stream), ".") {
			continue
		}
		account := filepath.Base(filepath.Dir(filepath.Dir(stream)))
		if last[account+"/"+filepath.Base(stream)], err = k.checkStream(stream, whole); err != nil {
			return err
		}
	}
	return checkMarks(dir, last)
}
