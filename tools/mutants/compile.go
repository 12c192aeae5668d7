package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// compiler type-checks packages with a fault in them. It reads what they import from
// the build cache.
type compiler struct {
	root  string
	files *token.FileSet
	// parsed are the files without a fault, by path; sources are the files of each
	// folder that this system builds, exports the compiled packages by import path.
	parsed   map[string]*ast.File
	sources  map[string][]string
	exports  map[string]string
	importer types.Importer
}

func newCompiler(root string) (*compiler, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-f", `{{.ImportPath}}|{{.Export}}|{{.Dir}}|{{join .GoFiles ","}}`, "./agent/...")
	list.Dir, list.Stderr = root, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot compile the product: %w", err)
	}
	c := &compiler{root: root, files: token.NewFileSet(), parsed: map[string]*ast.File{}, sources: map[string][]string{}, exports: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		part := strings.Split(strings.TrimSpace(line), "|")
		c.exports[part[0]] = part[1]
		if folder, err := filepath.Rel(root, part[2]); err == nil {
			c.sources[filepath.ToSlash(folder)] = strings.Split(part[3], ",")
		}
	}
	c.importer = importer.ForCompiler(c.files, "gc", func(pkg string) (io.ReadCloser, error) { return os.Open(c.exports[pkg]) })
	return c, nil
}

// compile reports why a package does not compile with another content of one of its
// files.
func (c *compiler) compile(changed string, body []byte) error {
	folder := path.Dir(changed)
	var files []*ast.File
	for _, name := range c.sources[folder] {
		at := path.Join(folder, name)
		if at == changed {
			f, err := parser.ParseFile(c.files, at, body, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, f)
			continue
		}
		f, err := c.file(at)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		return errors.New("this system does not build " + changed)
	}
	var wrong bytes.Buffer
	types := types.Config{Importer: c.importer, Error: func(err error) { fmt.Fprintf(&wrong, "\n  %v", err) }}
	if _, err := types.Check(folder, c.files, files, nil); err != nil {
		return errors.New("it does not compile:" + wrong.String())
	}
	return nil
}

// file returns a file without a fault.
func (c *compiler) file(at string) (*ast.File, error) {
	if f := c.parsed[at]; f != nil {
		return f, nil
	}
	f, err := parser.ParseFile(c.files, filepath.Join(c.root, filepath.FromSlash(at)), nil, parser.SkipObjectResolution)
	if err == nil {
		c.parsed[at] = f
	}
	return f, err
}
