package cli

import (
	"fmt"
	"io/fs"
	"os"
)

// othersMay are the permissions that a file with a secret must not give: any to
// everybody, and writing to its group. A group may read it, as that of a service does.
const othersMay fs.FileMode = 0o027

// readSecret reads a file with a secret, unless others may read it. option is the name of
// the option that names the file.
func readSecret(option, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", option, err)
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&othersMay != 0 {
		return nil, fmt.Errorf("%s: %s is open to other users (mode %#o); run chmod 600 %s, and make a new one if somebody may have read it",
			option, path, mode.Perm(), path)
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", option, err)
	}
	return body, nil
}
