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

// CheckSecret refuses a file that another user could have written or could read. The error does
// not name it: who sees the error may be a tenant.
func CheckSecret(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return errors.Unwrap(err) // What it says of the path.
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("its file is a %s; it should be a regular file", kind(info.Mode()))
	}
	if of := owner(info); of != 0 && of != os.Geteuid() {
		return fmt.Errorf("its file belongs to user %d; it should belong to root or to the agent's user %d", of, os.Geteuid())
	}
	if info.Mode()&0o027 != 0 {
		return fmt.Errorf("its file has mode %#o; others should be able neither to read nor to write it, such as 0640", info.Mode().Perm())
	}
	return nil
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
