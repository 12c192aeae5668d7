package store

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"time"
)

// Known is what a check has found in the large files of a store: a full block never changes, and
// the next check of the same process need not read it again. The zero value knows nothing.
type Known struct {
	files map[string]knownFile
}

// knownFile is what was found in a file.
type knownFile struct {
	size     int64
	modified time.Time
	// sum is its SHA-256; empty if nobody has asked for it.
	sum string
	// ends is the last sequence of a block, and damage what is wrong with it.
	ends   uint64
	damage error
}

const (
	// smallFile is the size up to which a file is read each time.
	smallFile = 64 << 10
	// settledAfter is how long a file must not have changed before it becomes known: some file
	// systems show a change only in the next second.
	settledAfter = 2 * time.Second
)

// file returns what there is in a file, with its sum if that is asked for.
func (k *Known) file(path string, summed bool) (knownFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return knownFile{}, err
	}
	if known, found := k.files[path]; found && known.size == info.Size() && known.modified.Equal(info.ModTime()) && (known.sum != "" || !summed) {
		return known, nil
	}
	begun := time.Now()
	body, err := os.ReadFile(path)
	if err != nil {
		return knownFile{}, err
	}
	file := knownFile{size: info.Size(), modified: info.ModTime()}
	if summed {
		sum := sha256.Sum256(body)
		file.sum = hex.EncodeToString(sum[:])
	}
	if number, isBlock := blockNumber(filepath.Base(path)); isBlock {
		file.ends, file.damage = checkBlock(body, blockHash(filepath.Base(filepath.Dir(filepath.Dir(path))), number))
	}
	if file.size > smallFile && begun.Sub(file.modified) > settledAfter {
		if k.files == nil {
			k.files = map[string]knownFile{}
		}
		k.files[path] = file
	}
	return file, nil
}
