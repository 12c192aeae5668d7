package exec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
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

func (s *Strategy) checkFolder() error {
	info, err := os.Stat(s.dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder; it should be one of scripts", s.dir)
	}
	return trusted(s.dir, info.Mode(), owner(info), os.Geteuid())
}

// checkScript is repeated before each start, for what was right at Detect may
// have been replaced since.
func (s *Strategy) checkScript(a action) error {
	info, err := os.Lstat(s.script(a))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the script %s is missing; it is required", s.script(a))
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a %s; it should be a regular file", s.script(a), kind(info.Mode()))
	}
	if info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s has mode %#o; it should be executable, such as 0755", s.script(a), info.Mode().Perm())
	}
	return trusted(s.script(a), info.Mode(), owner(info), os.Geteuid())
}

// trusted refuses what somebody else could have written: it is about to be run
// with the worker's rights.
func trusted(path string, mode fs.FileMode, owner, self int) error {
	if owner != 0 && owner != self {
		return fmt.Errorf("%s belongs to user %d; it should belong to root or to the worker's user %d", path, owner, self)
	}
	if mode&0o022 != 0 {
		return fmt.Errorf("%s has mode %#o; nobody but its owner should be able to write it, such as 0755", path, mode.Perm())
	}
	return nil
}

func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "folder"
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	default:
		return "special file"
	}
}

// owner is the user id that a file belongs to.
func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}

func (s *Strategy) script(a action) string { return filepath.Join(s.dir, string(a)) }

// has reports whether there is a file of the script's name.
func (s *Strategy) has(a action) (bool, error) {
	_, err := os.Lstat(s.script(a))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
