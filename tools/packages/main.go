// Command packages builds the deb and rpm packages of the agent as the release does:
// it reads them from .goreleaser.yaml, which is the one description of a release, and
// builds them with the library that goreleaser builds them with. It publishes nothing.
//
//	go run . -root ../.. -version 1.2.3 -out ../../.cache/packages amd64 arm64
//
// The programs and the generated files (tools/package-files.sh) must be there.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
	"go.yaml.in/yaml/v3"
)

// release is what is read of .goreleaser.yaml.
type release struct {
	Builds []program `yaml:"builds"`
	NFPMs  []pack    `yaml:"nfpms"`
}

// program is a build. What else is said of it is done by tools/packages.sh.
type program struct {
	ID     string `yaml:"id"`
	Binary string `yaml:"binary"`
}

// programs returns the names of the programs of a package.
func (r release) programs(p pack) ([]string, error) {
	var names []string
	for _, id := range p.IDs {
		i := slices.IndexFunc(r.Builds, func(b program) bool { return b.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("ids: there is no build %q", id)
		}
		names = append(names, r.Builds[i].Binary)
	}
	return names, nil
}

// pack is a package. Its members are those of goreleaser's documentation.
type pack struct {
	PackageName string         `yaml:"package_name"`
	Vendor      string         `yaml:"vendor"`
	Homepage    string         `yaml:"homepage"`
	Maintainer  string         `yaml:"maintainer"`
	Description string         `yaml:"description"`
	License     string         `yaml:"license"`
	Section     string         `yaml:"section"`
	Formats     []string       `yaml:"formats"`
	Bindir      string         `yaml:"bindir"`
	Umask       int64          `yaml:"umask"`
	Recommends  []string       `yaml:"recommends"`
	Scripts     nfpm.Scripts   `yaml:"scripts"`
	Contents    files.Contents `yaml:"contents"`
	// IDs are the builds whose programs it has.
	IDs []string `yaml:"ids"`
	RPM struct {
		BuildHost string `yaml:"buildhost"`
	} `yaml:"rpm"`
	// What only goreleaser needs. The library takes the time from SOURCE_DATE_EPOCH.
	ID       string `yaml:"id"`
	FileName string `yaml:"file_name_template"`
	MTime    string `yaml:"mtime"`
}

func main() {
	root := flag.String("root", ".", "root of the repository")
	version := flag.String("version", "0.0.0", "version of the packages")
	out := flag.String("out", ".cache/packages", "folder to write them to")
	flag.Parse()
	if err := run(*root, *version, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

func run(root, version, out string, arches []string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	text, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		return err
	}
	var r release
	if err := yaml.Unmarshal(text, &r); err != nil {
		return fmt.Errorf(".goreleaser.yaml: %w", err)
	}
	if len(r.NFPMs) == 0 {
		return errors.New(".goreleaser.yaml has no nfpms")
	}
	for _, p := range r.NFPMs {
		programs, err := r.programs(p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.PackageName, err)
		}
		for _, arch := range arches {
			for _, format := range p.Formats {
				if err := build(p, programs, format, arch, version, out); err != nil {
					return fmt.Errorf("%s, %s for %s: %w", p.PackageName, format, arch, err)
				}
			}
		}
	}
	return nil
}

func build(p pack, programs []string, format, arch, version, out string) error {
	packager, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var contents files.Contents
	for _, name := range programs {
		contents = append(contents, &files.Content{
			Source: filepath.Join(out, "bin", arch, name), Destination: filepath.Join(p.Bindir, name), FileInfo: &files.ContentFileInfo{Mode: 0o755},
		})
	}
	for _, c := range p.Contents {
		copied := *c
		// The values of a template are those of a snapshot.
		copied.Source = strings.ReplaceAll(copied.Source, "{{ .Arch }}", arch)
		contents = append(contents, &copied)
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: p.PackageName, Arch: arch, Platform: "linux", Version: version, Section: p.Section, Maintainer: p.Maintainer,
		Description: p.Description, Vendor: p.Vendor, Homepage: p.Homepage, License: p.License,
		Overridables: nfpm.Overridables{Umask: os.FileMode(p.Umask), Scripts: p.Scripts, Contents: contents, Recommends: p.Recommends, RPM: nfpm.RPM{BuildHost: p.RPM.BuildHost}}, //nolint:gosec // a mode
	})
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	path := filepath.Join(out, packager.ConventionalFileName(info))
	info.Target = path
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(packager.Package(info, file), file.Close()); err != nil {
		return err
	}
	fmt.Println(path)
	return nil
}
