package store

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// sealName is the file with the checksum of every file of a store whose server
// has stopped in order. After a crash there is none.
const sealName = "seal.json"

// sealFile is what the file holds: SHA-256 sums by path.
type sealFile struct {
	Files map[string]string `json:"files"`
}

// Seal checks a store whose server has stopped in order, and makes the checksums
// of its files durable, so that the next Check finds what happens to them at rest.
// It does not read the files again that are as they were when they became known.
func Seal(dir string, known *Known) error {
	// The sums come first: a file that is read for its sum is known anew, and its records are
	// checked as they were when its sum was made.
	sums, err := known.checksums(dir)
	if err != nil {
		return err
	}
	if err := known.checkStreams(dir, true); err != nil {
		return err
	}
	return writeFile(format.Seal, filepath.Join(dir, sealName), sealFile{sums})
}

// checkSeal compares a store with its seal, and reports whether it has one.
func (k *Known) checkSeal(dir string) (sealed bool, err error) {
	path := filepath.Join(dir, sealName)
	var seal sealFile
	sealed, err = readFile(format.Seal, path, &seal)
	switch {
	case err != nil || !sealed:
		return sealed, err
	case seal.Files == nil:
		return true, &Damage{What: path + " cannot be read", Override: path}
	}
	got, err := k.checksums(dir)
	if err != nil {
		return true, err
	}
	if what := difference(dir, seal.Files, got); what != "" {
		return true, &Damage{What: what, Override: path}
	}
	return true, nil
}

// difference says in what the files of a store differ from its seal; it is empty
// when they do not.
func difference(dir string, sealed, got map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(sealed)) {
		if got[name] != sealed[name] {
			return filepath.Join(dir, name) + " is not as it was when the agent last read it"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, known := sealed[name]; !known {
			return filepath.Join(dir, name) + " was not there when the agent stopped"
		}
	}
	return ""
}

// purgedName is the folder of a stream in which the server puts what it has purged. It deletes
// the files when it gets to it, and at its next start (nats-server, filestore.go, purgeDir).
const purgedName = "__msgs__"

// checksums returns those of all files of a store that the server cannot make
// anew: index.db it can. What was purged has none.
func (k *Known) checksums(dir string) (map[string]string, error) {
	sums := map[string]string{}
	root := filepath.Join(dir, "jetstream")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist) && path == root:
			return fs.SkipAll
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == purgedName:
			return fs.SkipDir
		case entry.Name() == indexName || !entry.Type().IsRegular():
			return nil
		}
		file, err := k.file(path, true)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		sums[name] = file.sum
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot check the store: %w", err)
	}
	return sums, nil
}
