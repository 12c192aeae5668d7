package realhost

import (
	"archive/tar"
	"bytes"
	"crypto/md5" //nolint:gosec // deb-md5sums(5)
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Deb is a Debian package, made here. The zero value of each field but Name and
// Version is what a package that has nothing of it has.
type Deb struct {
	Name, Version string
	// Architecture is "all" by default.
	Architecture string
	// Fields are further lines of its control file, such as "Depends: b (>= 2)".
	Fields []string
	// Files are its files by path, without the first "/"; those under etc/ are
	// conffiles. Scripts and programs are executable.
	Files map[string]string
	// Scripts are preinst, postinst, prerm and postrm. The first line is added here.
	Scripts map[string]string
}

func (d Deb) architecture() string {
	if d.Architecture == "" {
		return "all"
	}
	return d.Architecture
}

func (d Deb) control() string {
	lines := []string{
		"Package: " + d.Name, "Version: " + d.Version, "Architecture: " + d.architecture(),
		"Maintainer: nobody <nobody@example.invalid>", "Description: " + d.Name + " of a test",
	}
	return strings.Join(append(lines, d.Fields...), "\n") + "\n"
}

// file is its name in the pool of a repository.
func (d Deb) file() string {
	return fmt.Sprintf("%s_%s_%s.deb", d.Name, strings.ReplaceAll(d.Version, ":", "%3a"), d.architecture())
}

// Build returns the package as dpkg reads it (deb(5)): an ar archive of two tar
// files, here without compression.
func (d Deb) Build() []byte {
	control := map[string]string{"control": d.control()}
	for name, text := range d.Scripts {
		control[name] = "#!/bin/sh\n" + text
	}
	var conffiles, sums strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		if strings.HasPrefix(name, "etc/") {
			conffiles.WriteString("/" + name + "\n")
			continue
		}
		fmt.Fprintf(&sums, "%x  %s\n", md5.Sum([]byte(d.Files[name])), name) //nolint:gosec // deb-md5sums(5)
	}
	control["md5sums"] = sums.String()
	if conffiles.Len() > 0 {
		control["conffiles"] = conffiles.String()
	}
	var out bytes.Buffer
	out.WriteString("!<arch>\n")
	member := func(name string, data []byte) {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "100644", len(data))
		out.Write(data)
		if len(data)%2 == 1 {
			out.WriteByte('\n')
		}
	}
	member("debian-binary", []byte("2.0\n"))
	member("control.tar", archive(control))
	member("data.tar", archive(d.Files))
	return out.Bytes()
}

// executable reports whether a file is a script or a program.
func executable(content string) bool {
	return strings.HasPrefix(content, "#!") || strings.HasPrefix(content, "\x7fELF")
}

// archive returns a tar file of files by path, with their folders, owned by root.
func archive(files map[string]string) []byte {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	write := func(h *tar.Header, data string) {
		h.ModTime, h.Size = time.Unix(1_700_000_000, 0), int64(len(data))
		if err := w.WriteHeader(h); err != nil {
			panic(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			panic(err)
		}
	}
	folders := map[string]bool{".": true}
	for name := range files {
		for dir := path.Dir(name); !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(folders)) {
		name := "./"
		if dir != "." {
			name += dir + "/"
		}
		write(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}, "")
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode := fs.FileMode(0o644)
		if executable(files[name]) {
			mode = 0o755
		}
		write(&tar.Header{Typeflag: tar.TypeReg, Name: "./" + name, Mode: int64(mode)}, files[name])
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}
