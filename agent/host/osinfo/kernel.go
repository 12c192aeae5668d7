package osinfo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
)

// Kernels are the kernels of a host.
type Kernels struct {
	// Running is the kernel that runs.
	Running string
	// Installed are those that can be booted, the newest last.
	Installed []string
}

// ReadKernels reads which kernel runs and which are installed: those that have
// modules and an image. A package that was removed often leaves a folder of modules.
func ReadKernels(root string) (Kernels, error) {
	running, err := readText(filepath.Join(root, "proc/sys/kernel/osrelease"))
	if err != nil {
		return Kernels{}, err
	}
	kernels := Kernels{Running: clean(running)}
	for _, folder := range moduleFolders(root) {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Kernels{}, fmt.Errorf("cannot read the installed kernels: %w", err)
		}
		for _, entry := range entries {
			if isBootable(root, folder, entry.Name()) {
				kernels.Installed = append(kernels.Installed, clean(entry.Name()))
			}
		}
	}
	slices.SortFunc(kernels.Installed, CompareKernels)
	// One of the two folders may be a link to the other.
	kernels.Installed = slices.Compact(kernels.Installed)
	return kernels, nil
}

func moduleFolders(root string) []string {
	return []string{filepath.Join(root, "usr/lib/modules"), filepath.Join(root, "lib/modules")}
}

// isBootable reports whether a kernel has an image: in its own folder, as Fedora has
// it, or in /boot.
func isBootable(root, folder, version string) bool {
	images := []string{filepath.Join(folder, version, "vmlinuz")}
	for _, name := range []string{"vmlinuz-", "vmlinux-", "Image-", "kernel-"} {
		images = append(images, filepath.Join(root, "boot", name+version))
	}
	return slices.ContainsFunc(images, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// Newest returns the kernel that the next boot starts: the newest installed one of
// the flavour that runs or, if there is none, of any. It is empty if none is
// installed.
func (k Kernels) Newest() string {
	if len(k.Installed) == 0 {
		return ""
	}
	for _, version := range slices.Backward(k.Installed) {
		if flavour(version) == flavour(k.Running) {
			return version
		}
	}
	return k.Installed[len(k.Installed)-1]
}

// Outdated reports whether a newer kernel of the flavour that runs is installed, so
// that a reboot is needed to run it. Another flavour (amd64 beside cloud-amd64, or
// the kernels for each model of a Raspberry Pi) says nothing about the next boot.
func (k Kernels) Outdated() bool {
	newest := k.Newest()
	return newest != "" && k.Running != "" && flavour(newest) == flavour(k.Running) && CompareKernels(k.Running, newest) < 0
}

// numbered is the part of a kernel's name that has its version: segments that begin
// with a digit, and words that count releases.
var numbered = text.Pattern(`^[0-9][^-]*(-[0-9][^-]*|-(rc|arch|zen)[0-9]+)*`)

// flavour returns what distinguishes kernels of one version: "cloud-amd64" of
// "6.1.0-18-cloud-amd64", "rt" of "5.14.0-427.el9.x86_64+rt".
func flavour(version string) string {
	number := numbered().FindString(version)
	if rest := strings.TrimPrefix(version[len(number):], "-"); rest != "" {
		return rest
	}
	_, variant, _ := strings.Cut(number, "+")
	return variant
}

// CompareKernels compares two versions of kernels: numbers by their value, all else
// by its bytes; "~" and "-rc" are before everything, also before the end.
func CompareKernels(a, b string) int {
	a, b = strings.ReplaceAll(a, "-rc", "~rc"), strings.ReplaceAll(b, "-rc", "~rc")
	for a != "" || b != "" {
		partA, restA := part(a)
		partB, restB := part(b)
		if order := comparePart(partA, partB); order != 0 {
			return order
		}
		a, b = restA, restB
	}
	return 0
}

// part cuts the first part of a version: a number, or one other byte.
func part(version string) (first, rest string) {
	end := 0
	for end < len(version) && isDigit(version[end]) {
		end++
	}
	end = min(max(end, 1), len(version))
	return version[:end], version[end:]
}

func comparePart(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "~" || b != "~" && a == "":
		return -1
	case b == "~" || b == "":
		return 1
	}
	if isDigit(a[0]) != isDigit(b[0]) { // A number is after a separator: 6.1.10 is after 6.1-1.
		if isDigit(a[0]) {
			return 1
		}
		return -1
	}
	a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
