package exec

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/script"
)

// checkAll checks the folder and its scripts.
func (s *Strategy) checkAll() error {
	var problems []error
	if err := s.checkFolder(); err != nil {
		return err
	}
	for _, a := range slices.Concat(required, optional) {
		has, err := s.has(a)
		if err == nil && (has || slices.Contains(required, a)) {
			err = s.checkScript(a)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

func (s *Strategy) checkFolder() error { return script.CheckFolder(s.dir) }

// checkScript is repeated before each start, for what was right at Detect may
// have been replaced since.
func (s *Strategy) checkScript(a action) error { return script.CheckFile(s.script(a)) }

func (s *Strategy) script(a action) string { return filepath.Join(s.dir, string(a)) }

// has reports whether there is a file of the script's name.
func (s *Strategy) has(a action) (bool, error) {
	_, err := os.Lstat(s.script(a))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
