package natsd

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
)

// sealName is the file that says what the files of a store are while no server
// runs on it. There is none after a crash.
const sealName = "seal.json"

// seal makes the checksums of a store's files durable, once its server has
// stopped, so that damage done at rest is noticed at the next start.
func seal(dir string) error {
	if err := checkStreams(dir, true); err != nil {
		return err
	}
	sums, err := checksums(dir)
	if err != nil {
		return err
	}
	body, err := json.Marshal(sums)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, sealName), body, 0o600)
}

// unseal checks a store before a server runs on it, and removes the seal.
func unseal(dir string) error {
	path := filepath.Join(dir, sealName)
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return unwritten(dir)
	}
	if err != nil {
		return err
	}
	if err := compare(dir, body); err != nil {
		return fmt.Errorf("%w; put a backup in place of the folder, or remove %s to go on with what can be read", err, path)
	}
	if err := checkStreams(dir, true); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		return err
	}
	return durable.SyncFolder(dir)
}

func compare(dir string, sealed []byte) error {
	var want map[string]string
	decoder := json.NewDecoder(bytes.NewReader(sealed))
	if err := decoder.Decode(&want); err != nil || want == nil {
		return errors.New("the store is damaged: its seal cannot be read")
	}
	got, err := checksums(dir)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			return fmt.Errorf("the store is damaged: %s is not as it was when the agent stopped", filepath.Join(dir, name))
		}
		delete(got, name)
	}
	for name := range got {
		return fmt.Errorf("the store is damaged: %s was not there when the agent stopped", filepath.Join(dir, name))
	}
	return nil
}

// checksums returns those of all files of a store that the server cannot make
// anew: index.db it can.
func checksums(dir string) (map[string]string, error) {
	sums := map[string]string{}
	root := filepath.Join(dir, "jetstream")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist) && path == root:
			return fs.SkipAll
		case err != nil:
			return err
		case entry.Name() == indexName || !entry.Type().IsRegular():
			return nil
		}
		body, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		sums[name] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot check the store: %w", err)
	}
	return sums, nil
}
