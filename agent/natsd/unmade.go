package natsd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// clearUnmade removes the folders of streams that were being made when the
// agent died: they hold nothing, nobody was told of them, and the server takes
// each for a stream that it could not recover.
func clearUnmade(dir string) error {
	streams, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*"))
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
			return fmt.Errorf("cannot remove a stream that was never made: %w", err)
		}
	}
	return nil
}
