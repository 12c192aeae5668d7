package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/osupgrade/terraform-provider-osupgrade"

// simulation is the package that plays the whole protocol.
const simulation = "agent/testing/sim"

// slow are the packages whose tests take longer than the rest together. They are tested when
// they change themselves, and not because something changed that they import.
var slow = []string{
	"agent/api",
	"agent/host/strategy/check",
	"agent/host/worker",
	"agent/log/natsd",
	"agent/testing/realhost",
}

// picked are packages with tests of the whole program, of which only those in changed files
// are run.
var picked = []string{"agent/e2e", simulation}

// pkg is a package of the repository.
type pkg struct {
	// Imports are the folders of the packages of the repository that it imports; Tests those
	// that its tests import.
	Imports, Tests []string
	// TestFiles are the texts of its test files, by their names.
	TestFiles map[string]string
}

// plan says what is checked, by the folders of packages.
type plan struct {
	// Changed are the packages of changed files.
	Changed []string
	// Vet are those, and all that is compiled of them; Lint those that still have Go files.
	Vet, Lint []string
	// Test are the packages whose tests are all run. Slow are those that would be, if they
	// were quicker.
	Test, Slow []string
	// Some are packages of which some tests are run.
	Some []some
	// Tools are changed packages of the module tools.
	Tools []string
	// Docs says that the pages in docs/ may be others now; Simulate that the simulation
	// contains what changed.
	Docs, Simulate bool
}

// some are tests of a package.
type some struct {
	Folder string
	Tests  []string
}

// choose decides what is checked after a change of files.
//
// Tested are the packages with a changed file, and those that import one of them directly,
// in their product or in their tests. Those that import these in turn are only compiled and
// vetted: otherwise a change of agent/base/text would test the whole repository. Of the slow
// importers the same is true. What changes only in tests or in testdata of a package is no
// matter of its importers. A document is tested by the tests in whose file its path or its
// folder stands.
func choose(packages map[string]pkg, changed []string) plan {
	var p plan
	altered, wholes := map[string]bool{}, map[string]bool{}
	tests := map[string][]string{}
	for _, name := range changed {
		p.Docs = p.Docs || isShown(name)
		if folder, isTool := toolOf(name); isTool {
			if folder != "" {
				p.Tools = append(p.Tools, folder)
			}
			continue
		}
		if name == "go.mod" || name == "go.sum" {
			for folder := range packages {
				altered[folder] = true
			}
			continue
		}
		folder := packageOf(packages, name)
		if folder == "" {
			for _, s := range readers(packages, name) {
				tests[s.Folder] = append(tests[s.Folder], s.Tests...)
			}
			continue
		}
		p.Changed = append(p.Changed, folder)
		switch {
		case slices.Contains(picked, folder):
			tests[folder] = append(tests[folder], testsIn(packages[folder].TestFiles[path.Base(name)])...)
		default:
			wholes[folder] = true
		}
		if !isTest(name) {
			altered[folder] = true
		}
	}
	p.Changed = sorted(p.Changed)
	p.Tools = sorted(p.Tools)
	contain := compiledOf(packages, altered)
	for folder := range packages {
		if slices.Contains(p.Changed, folder) || contain[folder] {
			p.Vet = append(p.Vet, folder)
		}
		if slices.Contains(p.Changed, folder) {
			p.Lint = append(p.Lint, folder)
		}
		if wholes[folder] {
			p.Test = append(p.Test, folder)
			continue
		}
		if slices.Contains(picked, folder) || len(packages[folder].TestFiles) == 0 || !importsAny(packages[folder], p.Changed, altered) {
			continue
		}
		if slices.Contains(slow, folder) {
			p.Slow = append(p.Slow, folder)
		} else {
			p.Test = append(p.Test, folder)
		}
	}
	p.Vet, p.Lint, p.Test, p.Slow = sorted(p.Vet), sorted(p.Lint), sorted(p.Test), sorted(p.Slow)
	p.Simulate = contain[simulation] || slices.Contains(p.Changed, simulation)
	for folder, names := range tests {
		if !slices.Contains(p.Test, folder) && len(names) > 0 {
			p.Some = append(p.Some, some{folder, sorted(names)})
		}
	}
	slices.SortFunc(p.Some, func(a, b some) int { return strings.Compare(a.Folder, b.Folder) })
	return p
}

// compiledOf returns the packages that contain one of some packages, or whose tests do.
func compiledOf(packages map[string]pkg, altered map[string]bool) map[string]bool {
	contain := map[string]bool{}
	for folder := range altered {
		contain[folder] = true
	}
	for grown := true; grown; {
		grown = false
		for folder, p := range packages {
			if !contain[folder] && slices.ContainsFunc(p.Imports, func(i string) bool { return contain[i] }) {
				contain[folder], grown = true, true
			}
		}
	}
	all := map[string]bool{}
	for folder, p := range packages {
		all[folder] = contain[folder] || slices.ContainsFunc(p.Tests, func(i string) bool { return contain[i] })
	}
	return all
}

// importsAny reports whether a package or its tests import a changed package.
func importsAny(p pkg, changed []string, altered map[string]bool) bool {
	hit := func(i string) bool { return altered[i] && slices.Contains(changed, i) }
	return slices.ContainsFunc(p.Imports, hit) || slices.ContainsFunc(p.Tests, hit)
}

// packageOf returns the folder of the package that a file belongs to: that with Go files
// which is nearest above it. Only Go files belong to the root.
func packageOf(packages map[string]pkg, name string) string {
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if _, there := packages[at]; there {
			return at
		}
	}
	if path.Dir(name) == "." && path.Ext(name) == ".go" {
		return "."
	}
	return ""
}

// toolOf returns the folder of a file's package in the module tools; "" if it is in none.
func toolOf(name string) (folder string, isTool bool) {
	if !strings.HasPrefix(name, "tools/") {
		return "", false
	}
	if parts := strings.Split(name, "/"); len(parts) > 2 && path.Ext(name) == ".go" {
		return path.Dir(name), true
	}
	return "", path.Ext(name) != ".sh"
}

func isTest(name string) bool {
	return strings.HasSuffix(name, "_test.go") || strings.Contains(name, "/testdata/")
}

// isShown reports whether pages in docs/ are made of a file.
func isShown(name string) bool {
	for _, folder := range []string{"docs/", "templates/", "examples/", "provider/"} {
		if strings.HasPrefix(name, folder) {
			return !strings.HasSuffix(name, "_test.go")
		}
	}
	return false
}

// readers returns the tests in the files that name a document, or its folder as the
// beginning of a path.
func readers(packages map[string]pkg, name string) (found []some) {
	folder := path.Dir(name) + `/"`
	for at, p := range packages {
		for _, text := range p.TestFiles {
			if strings.Contains(text, name+`"`) || folder != `./"` && strings.Contains(text, folder) {
				found = append(found, some{at, testsIn(text)})
			}
		}
	}
	return found
}

// testsIn returns the names of the tests in a test file.
func testsIn(text string) (names []string) {
	for line := range strings.Lines(text) {
		name, isFunc := strings.CutPrefix(line, "func Test")
		if name, _, isTest := strings.Cut(name, "(t *testing.T)"); isFunc && isTest {
			names = append(names, "Test"+name)
		}
	}
	return names
}

func sorted(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}

// packages returns the packages of the repository by their folders.
func (c *checker) packages(ctx context.Context) (map[string]pkg, error) {
	out, err := c.output(ctx, "go", "list", "-json=ImportPath,Dir,Imports,TestImports,XTestImports,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	packages := map[string]pkg{}
	for decoder := json.NewDecoder(strings.NewReader(out)); ; {
		var l struct {
			ImportPath, Dir                    string
			Imports, TestImports, XTestImports []string
			TestGoFiles, XTestGoFiles          []string
		}
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		p := pkg{Imports: ours(l.Imports), Tests: ours(slices.Concat(l.TestImports, l.XTestImports)), TestFiles: map[string]string{}}
		for _, name := range slices.Concat(l.TestGoFiles, l.XTestGoFiles) {
			text, err := os.ReadFile(filepath.Join(l.Dir, name)) //nolint:gosec // a file of this repository
			if err != nil {
				return nil, err
			}
			p.TestFiles[name] = string(text)
		}
		packages[folderOf(l.ImportPath)] = p
	}
}

// ours returns the folders of the imports that are of the repository.
func ours(imports []string) (folders []string) {
	for _, name := range imports {
		if name == module || strings.HasPrefix(name, module+"/") {
			folders = append(folders, folderOf(name))
		}
	}
	return folders
}

func folderOf(name string) string {
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(name, module), "/"))
}
