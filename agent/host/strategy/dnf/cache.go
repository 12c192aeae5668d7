package dnf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
)

// dnf compares the metadata that it has fetched with their sums each time it reads them, and never compares the
// caches that its solver makes of them. A power cut may leave a part of such a cache. dnf then fails until
// somebody removes it, or finds nothing new in it, and the host seems to be up to date. So the first call after
// each boot removes these caches, and dnf makes them again from the metadata.

// bootName is the file with the id of the boot in which the caches were removed.
const bootName = "dnf-boot"

// solverCaches are the caches of the solver of dnf 4 and of dnf5, in a folder of metadata.
var solverCaches = []string{"*.solv", "*.solvx", "*/solv/*.solv", "*/solv/*.solvx"}

// dropCaches removes the caches of the solver, once in each boot.
func (s *Strategy) dropCaches(bootID string) error {
	done := filepath.Join(s.StateDir, bootName)
	if boot, err := os.ReadFile(done); err == nil && string(boot) == bootID {
		return nil
	}
	for _, folder := range []string{s.cache, filepath.Join(s.pastCaches(), "*")} {
		for _, pattern := range solverCaches {
			caches, err := filepath.Glob(s.host.Path(filepath.Join(folder, pattern)))
			if err != nil {
				return err
			}
			for _, cache := range caches {
				if err := os.Remove(cache); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return fmt.Errorf("cannot remove a cache of dnf that may be torn: %w", err)
				}
			}
		}
	}
	err := os.MkdirAll(s.StateDir, 0o700)
	if err == nil {
		err = durable.WriteFile(done, []byte(bootID), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot keep that the caches of dnf are removed: %w", err)
	}
	return nil
}
