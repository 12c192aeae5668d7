// Package begun keeps on disk what an upgrade has begun to change, until a strategy has seen
// that it is all there. So the next run knows what an own run has left broken and may repair,
// and what was broken by others, which it leaves to them.
package begun

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

const file = "begun.json"

// Write keeps changes that are about to be made. dir is the state folder of a strategy.
func Write(dir string, changes []message.Change) error {
	data, err := json.Marshal(changes)
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err == nil {
		err = durable.WriteFile(filepath.Join(dir, file), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot keep what is about to be changed: %w", err)
	}
	return nil
}

// Read returns the changes that an upgrade has begun and nobody has seen to be whole. A file
// that nobody can read names none: what is broken then counts as that of others.
func Read(dir string) (changes []message.Change) {
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil || json.Unmarshal(data, &changes) != nil {
		return nil
	}
	return changes
}

// Clear forgets the changes: they are whole, or undone.
func Clear(dir string) error {
	if err := os.Remove(filepath.Join(dir, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Covers reports whether changes that were begun explain all packages that are broken. Where
// none is broken there is nothing to explain: the host may be in service with what it has.
func Covers(begun []message.Change, broken []string) bool {
	return len(broken) > 0 && !slices.ContainsFunc(broken, func(name string) bool { return len(Of(begun, []string{name})) == 0 })
}

// Of returns the changes of some packages.
func Of(changes []message.Change, names []string) (of []message.Change) {
	for _, c := range changes {
		if slices.Contains(names, c.Name) {
			of = append(of, c)
		}
	}
	return of
}
