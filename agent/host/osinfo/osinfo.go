// Package osinfo reads what a host says about its operating system: the release
// and the kernels. Every native strategy publishes that beside its packages.
//
// It decides what the release and the newest kernel are. It never changes
// anything, starts no program and knows nothing of strategies.
package osinfo

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/message"
)

// The names under which Read returns versions.
const (
	// OS is the id of the system and its version, such as "debian 12.9".
	OS = "os"
	// Image is IMAGE_ID and IMAGE_VERSION of os-release(5), which a system built as
	// an image has.
	Image = "os-image"
	// Kernel is the kernel that runs, as uname -r prints it.
	Kernel = "kernel"
	// KernelInstalled is the newest kernel that is installed, which runs after the
	// next boot.
	KernelInstalled = "kernel-installed"
)

// Read returns the release and the kernels of the system whose root folder is root
// ("/" for this machine). A name without a version is absent: a container has no
// kernel of its own.
func Read(root string) (map[string]string, error) {
	release, err := ReadRelease(root)
	if err != nil {
		return nil, err
	}
	kernels, err := ReadKernels(root)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for name, version := range map[string]string{
		OS: release.version(), Image: release.image(), Kernel: kernels.Running, KernelInstalled: kernels.Newest(),
	} {
		if version != "" {
			versions[name] = version
		}
	}
	return versions, nil
}

// System returns which system has its root folder at root, with its version and the architecture, such
// as "debian 12 amd64": packages have the same versions on all hosts of which it is the same. It is
// empty if the release cannot be read.
func System(root string) string {
	release, err := ReadRelease(root)
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(release.ID+" "+cmp.Or(release.VersionID, release.Codename)+" "+runtime.GOARCH), " ")
}

// Paths returns the files and folders to watch: after a change of one of them Read
// may return something else.
func Paths(root string) []string {
	paths := []string{filepath.Join(root, "etc/os-release"), filepath.Join(root, "usr/lib/os-release"), filepath.Join(root, "etc/debian_version")}
	for _, folder := range moduleFolders(root) {
		// A folder that does not exist cannot be watched, and its place may be none either.
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			paths = append(paths, folder)
		}
	}
	return paths
}

// maxFile bounds the files that are read, in bytes. They have a few hundred.
const maxFile = 64 << 10

// readText reads a small text file. Without the file the text is empty.
func readText(path string) (string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	// A FIFO or a device at this place would block or never end.
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, fmt.Errorf("%s is not a regular file", path))
	}
	body, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot read %s: %w", path, err)
	case len(body) > maxFile:
		return "", fmt.Errorf("%s has more than %d bytes; it should be a short text", path, maxFile)
	}
	return string(body), nil
}

// maxWord bounds a value, in bytes.
const maxWord = 200

// clean returns a value as it may be published: one line of printable text.
func clean(word string) string { return text.Cut(message.CleanText(word), maxWord, "") }
