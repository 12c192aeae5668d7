package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// source is the product's Go code. It reads each package once, when it is first
// asked for.
type source struct {
	root string
	pkgs map[string]*pkg
}

// pkg is what a folder declares: the product's functions, and the names of the tests.
type pkg struct {
	functions map[string]function
	tests     map[string]bool
}

// function is a function or a method.
type function struct {
	file *file
	line int
	body span
	// names are those of the receiver, which is "" for a function, and of the parameters;
	// results are the types of the results.
	names, results []string
	// calls are the calls that are arguments of other calls, by the name of what they call.
	calls map[string][]span
}

// span is a part of a file, by its offsets.
type span struct{ from, to int }

// file is a Go file; its path is relative to the root.
type file struct {
	path string
	body []byte
}

func newSource(root string) *source { return &source{root: root, pkgs: map[string]*pkg{}} }

// find returns the function of a qualified name. Where there is none, the error names those
// that it may have become.
func (s *source) find(name string) (function, error) {
	folder, inner := split(name)
	p, err := s.pkg(folder)
	if err != nil {
		return function{}, fmt.Errorf("%s: there is no such package: %w", name, err)
	}
	fn, there := p.functions[inner]
	if !there {
		return function{}, fmt.Errorf("%s is not declared any more%s", name, s.alike(inner))
	}
	return fn, nil
}

// split splits a name at the first dot after the last slash.
func split(name string) (folder, inner string) {
	slash := strings.LastIndex(name, "/") + 1
	last, inner, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + last, inner
}

// alike lists the functions of all packages under agent that have the last
// part of a name.
func (s *source) alike(inner string) string {
	last := inner[strings.LastIndex(inner, ".")+1:]
	var found []string
	_ = filepath.WalkDir(filepath.Join(s.root, "agent"), func(at string, e os.DirEntry, err error) error {
		if err != nil || !e.IsDir() || e.Name() == "testdata" {
			return err
		}
		folder, err := filepath.Rel(s.root, at)
		if err != nil {
			return err
		}
		p, err := s.pkg(filepath.ToSlash(folder))
		if err != nil {
			return nil //nolint:nilerr // A folder without Go files.
		}
		for name := range p.functions {
			if name == last || strings.HasSuffix(name, "."+last) {
				found = append(found, filepath.ToSlash(folder)+"."+name)
			}
		}
		return nil
	})
	if len(found) == 0 {
		return ", and nothing else is named " + last
	}
	slices.Sort(found)
	return "; of that name there are " + strings.Join(found, ", ")
}

func (s *source) hasTest(folder, name string) error {
	p, err := s.pkg(folder)
	if err != nil {
		return err
	}
	if !p.tests[name] {
		return fmt.Errorf("%s has no test %s", folder, name)
	}
	return nil
}

// pkg reads a package.
func (s *source) pkg(folder string) (*pkg, error) {
	if p := s.pkgs[folder]; p != nil {
		return p, nil
	}
	paths, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(folder), "*.go"))
	if err == nil && len(paths) == 0 {
		err = fmt.Errorf("%s has no Go files", folder)
	}
	if err != nil {
		return nil, err
	}
	p := &pkg{functions: map[string]function{}, tests: map[string]bool{}}
	for _, at := range paths {
		body, err := os.ReadFile(at)
		if err != nil {
			return nil, err
		}
		if err := p.read(&file{path: path.Join(folder, filepath.Base(at)), body: body}); err != nil {
			return nil, err
		}
	}
	s.pkgs[folder] = p
	return p, nil
}

// read adds what a file declares. A later file does not replace what an earlier
// one declares: of a function for several systems, the first file counts.
func (p *pkg) read(f *file) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, f.path, f.body, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, d := range parsed.Decls {
		d, isFunc := d.(*ast.FuncDecl)
		if !isFunc || d.Body == nil {
			continue
		}
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		if strings.HasSuffix(f.path, "_test.go") {
			p.tests[name] = true
		} else if _, there := p.functions[name]; !there {
			p.functions[name] = f.function(files, d)
		}
	}
	return nil
}

// function returns what a declaration says.
func (f *file) function(files *token.FileSet, d *ast.FuncDecl) function {
	at := func(n ast.Node) span {
		return span{files.Position(n.Pos()).Offset, files.Position(n.End()).Offset}
	}
	fn := function{file: f, line: files.Position(d.Pos()).Line, body: at(d.Body), names: []string{""}, calls: map[string][]span{}}
	if d.Recv != nil && len(d.Recv.List[0].Names) > 0 {
		fn.names[0] = d.Recv.List[0].Names[0].Name
	}
	for _, field := range d.Type.Params.List {
		for _, name := range field.Names {
			fn.names = append(fn.names, name.Name)
		}
	}
	if d.Type.Results != nil {
		for _, field := range d.Type.Results.List {
			of := at(field.Type)
			for range max(1, len(field.Names)) {
				fn.results = append(fn.results, string(f.body[of.from:of.to]))
			}
		}
	}
	ast.Inspect(d.Body, func(n ast.Node) bool {
		call, isCall := n.(*ast.CallExpr)
		if !isCall {
			return true
		}
		for i, argument := range call.Args {
			inner, isCall := argument.(*ast.CallExpr)
			if !isCall {
				continue
			}
			called, isSelector := inner.Fun.(*ast.SelectorExpr)
			if !isSelector {
				continue
			}
			// With the comma before it, or else after it.
			gone := at(inner)
			if i > 0 {
				gone.from = at(call.Args[i-1]).to
			} else if len(call.Args) > 1 {
				gone.to = at(call.Args[1]).from
			}
			fn.calls[called.Sel.Name] = append(fn.calls[called.Sel.Name], gone)
		}
		return true
	})
	return fn
}

// argument returns where the only call of a library's function is an argument.
func (fn function) argument(called string) (span, error) {
	if n := len(fn.calls[called]); n != 1 {
		return span{}, fmt.Errorf("a call of %s is %d times an argument, not once", called, n)
	}
	return fn.calls[called][0], nil
}

// receiver is the name of a method's type, without its star and parameters.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return "?"
}
