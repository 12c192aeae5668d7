package script

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// CheckFolder refuses a folder in which another user could create a script.
func CheckFolder(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder; it should be the folder of the scripts", dir)
	}
	return trusted(dir, info.Mode(), owner(info), os.Geteuid())
}

// CheckFile refuses a file that another user could have written or that is not
// an executable regular file. Call it before each start, because the file may
// have been replaced since the last one.
func CheckFile(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the script %s is missing; it is required", path)
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a %s; it should be a regular file", path, kind(info.Mode()))
	}
	if info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s has mode %#o; it should be executable, such as 0755", path, info.Mode().Perm())
	}
	return trusted(path, info.Mode(), owner(info), os.Geteuid())
}

// trusted refuses a file or folder that another user could have written, because
// the script runs with the agent's rights.
func trusted(path string, mode fs.FileMode, owner, self int) error {
	if owner != 0 && owner != self {
		return fmt.Errorf("%s belongs to user %d; it should belong to root or to the agent's user %d", path, owner, self)
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

// owner returns the user id of a file's owner; -1 if it is unknown.
func owner(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return -1
}
