// Package smallfile reads a small file that another program may write, replace or remove meanwhile.
//
// It decides when a file is read at all, so that no pipe, link or huge file holds up who reads it. It
// never decides whether what is in the file counts.
package smallfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// File is a file as it was found.
type File struct {
	Name string
	Mode fs.FileMode
	// Owner is the user that the file belongs to, -1 if that is not known.
	Owner int
	Size  int64
	// Modified is when it was last written.
	Modified time.Time
	// Body is its content. It is empty for what is no regular file and for a file that is larger
	// than is to be read.
	Body []byte
	// Err is why the content cannot be read.
	Err error
}

// IsTrusted reports whether the file belongs to root or to the user self.
func (f File) IsTrusted(self int) bool { return f.Owner == 0 || f.Owner == self }

// Read reads a file of at most that many bytes; false if there is none.
func Read(path string, most int64) (File, bool) {
	found := File{Name: filepath.Base(path), Owner: -1}
	info, err := os.Lstat(path)
	if err != nil {
		return found, false
	}
	found.Mode, found.Size, found.Modified = info.Mode(), info.Size(), info.ModTime()
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		found.Owner = int(stat.Uid)
	}
	if !found.Mode.IsRegular() || found.Size > most {
		return found, true
	}
	// It may have become a pipe or a link meanwhile, on which a worker must not hang.
	opened, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return found, false
	}
	if err == nil {
		found.Body, err = readSame(opened, info, most)
	}
	found.Size, found.Err = max(found.Size, int64(len(found.Body))), err
	return found, true
}

// readSame reads a file and closes it, unless it is another one than that whose owner was
// looked at.
func readSame(opened *os.File, looked fs.FileInfo, most int64) (body []byte, err error) {
	defer func() { err = errors.Join(err, opened.Close()) }()
	info, err := opened.Stat()
	switch {
	case err != nil:
		return nil, err
	case !os.SameFile(info, looked):
		return nil, errors.New("it is being replaced")
	}
	return io.ReadAll(io.LimitReader(opened, most+1))
}
