package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
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

// pkg is what a folder declares: the product's declarations, and the names of
// the tests.
type pkg struct {
	decls map[string]decl
	tests map[string]bool
}

// decl is a function, a method, or a group of variables, constants or types.
type decl struct {
	file *file
	line int
	// span and body are offsets in the file. body is zero without a function's
	// body.
	span, body [2]int
}

// file is a Go file; its path is relative to the root.
type file struct {
	path string
	body []byte
}

func newSource(root string) *source { return &source{root: root, pkgs: map[string]*pkg{}} }

// find returns the declaration of a qualified name. Where there is none, the
// error names those that it may have become.
func (s *source) find(name string) (decl, error) {
	folder, inner := split(name)
	p, err := s.pkg(folder)
	if err != nil {
		return decl{}, fmt.Errorf("%s: there is no such package: %w", name, err)
	}
	d, there := p.decls[inner]
	if !there {
		return decl{}, fmt.Errorf("%s is not declared any more%s", name, s.alike(inner))
	}
	return d, nil
}

// split splits a name at the first dot after the last slash.
func split(name string) (folder, inner string) {
	slash := strings.LastIndex(name, "/") + 1
	last, inner, _ := strings.Cut(name[slash:], ".")
	return name[:slash] + last, inner
}

// alike lists the declarations of all packages under agent that have the last
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
		for name := range p.decls {
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
	p := &pkg{decls: map[string]decl{}, tests: map[string]bool{}}
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
	offset := func(at token.Pos) int { return files.Position(at).Offset }
	for _, d := range parsed.Decls {
		names, body := declared(d)
		if strings.HasSuffix(f.path, "_test.go") {
			for _, name := range names {
				p.tests[name] = true
			}
			continue
		}
		for _, name := range names {
			if _, there := p.decls[name]; there {
				continue
			}
			made := decl{file: f, line: files.Position(d.Pos()).Line, span: [2]int{offset(d.Pos()), offset(d.End())}}
			if body != nil {
				made.body = [2]int{offset(body.Pos()), offset(body.End())}
			}
			p.decls[name] = made
		}
	}
	return nil
}

// declared returns the names that a declaration has in go doc, and the body of a
// function.
func declared(d ast.Decl) (names []string, body *ast.BlockStmt) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return []string{d.Name.Name}, d.Body
		}
		return []string{receiver(d.Recv.List[0].Type) + "." + d.Name.Name}, d.Body
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names = append(names, name.Name)
				}
			case *ast.TypeSpec:
				names = append(names, spec.Name.Name)
			}
		}
	}
	return names, nil
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

// occurrence returns where code occurs in a declaration: it must be there
// exactly once.
func (s *source) occurrence(d decl, code string) (from, to int, err error) {
	want, err := tokens([]byte(code))
	if err != nil {
		return 0, 0, err
	}
	if len(want) == 0 {
		return 0, 0, errors.New("the fault names no code")
	}
	have, err := tokens(d.file.body[d.span[0]:d.span[1]])
	if err != nil {
		return 0, 0, err
	}
	times := 0
	for i := 0; i+len(want) <= len(have); i++ {
		if slices.EqualFunc(want, have[i:i+len(want)], lexeme.same) {
			times++
			from, to = d.span[0]+have[i].from, d.span[0]+have[i+len(want)-1].to
		}
	}
	if times != 1 {
		return 0, 0, fmt.Errorf("this occurs %d times, not once:\n%s", times, code)
	}
	return from, to, nil
}

// lexeme is a token of Go with its place.
type lexeme struct {
	token    token.Token
	text     string
	from, to int
}

func (l lexeme) same(other lexeme) bool { return l.token == other.token && l.text == other.text }

// tokens splits code into tokens. It leaves out comments and all that gofmt
// moves: semicolons at line breaks and commas before a closing bracket.
func tokens(code []byte) ([]lexeme, error) {
	var s scanner.Scanner
	var wrong error
	files := token.NewFileSet()
	at := files.AddFile("", files.Base(), len(code))
	s.Init(at, code, func(_ token.Position, msg string) { wrong = fmt.Errorf("%s: %s", msg, code) }, 0)
	var all []lexeme
	for {
		pos, tok, text := s.Scan()
		switch tok {
		case token.EOF:
			return all, wrong
		case token.SEMICOLON:
			if text == "\n" {
				continue
			}
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if n := len(all); n > 0 && all[n-1].token == token.COMMA {
				all = all[:n-1]
			}
		}
		if text == "" {
			text = tok.String()
		}
		from := at.Offset(pos)
		all = append(all, lexeme{tok, text, from, from + len(text)})
	}
}
