package store

import (
	"errors"
	"fmt"
	"os"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// readFile reads one of the files that say how a store was left. found is false if there
// is none. A file that cannot be read is damage, which removing the file overrides.
func readFile(kind format.Kind, path string, value any) (found bool, err error) {
	body, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch err := kind.Decode(body, value); {
	case format.IsUnsupported(err):
		return true, fmt.Errorf("the %s %s of the store was %w", kind.Name, path, err)
	case errors.Is(err, format.ErrNoNumber):
		return true, &Damage{What: path, cause: err, Override: path, mayBeOld: true}
	case err != nil:
		return true, &Damage{What: path + " cannot be read", cause: err, Override: path}
	}
	return true, nil
}

// writeFile makes one of these files durable.
func writeFile(kind format.Kind, path string, value any) error {
	body, err := kind.Encode(value)
	if err != nil {
		return err
	}
	return durable.WriteFile(path, body, 0o600)
}
