package remedy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// faked are the remedies of systems that no Debian has: only a fake follows them.
var faked = []string{"RPMOSTreeDeploy", "BootcSwitch"}

// code walks over the files of all strategies and of the tests on whole hosts.
func code(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	for _, root := range []string{"..", "../../../testing/realhost"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err == nil {
				visit(path, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// uses returns the remedies that a file names: those that it follows, as an argument of a function of
// following or in a row of a table for it, and all others.
func uses(file *ast.File) (followed, others []string) {
	names := func(nodes []ast.Expr) (found []string) {
		for _, n := range nodes {
			if pair, ok := n.(*ast.KeyValueExpr); ok {
				n = pair.Value
			}
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "remedy" {
					found = append(found, s.Sel.Name)
				}
			}
		}
		return found
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			followed = append(followed, names(n.Elts)...)
		case *ast.CallExpr:
			name := ""
			switch f := n.Fun.(type) {
			case *ast.SelectorExpr:
				name = f.Sel.Name
			case *ast.Ident:
				name = f.Name
			}
			if slices.Contains(following, name) {
				followed = append(followed, names(n.Args)...)
			}
		case *ast.SelectorExpr:
			others = append(others, names([]ast.Expr{n})...)
		}
		return true
	})
	return followed, others
}

// texts returns the remedies by their names.
func texts(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "remedy.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, name := range value.Names {
				ast.Inspect(value.Values[i], func(n ast.Node) bool {
					if literal, ok := n.(*ast.BasicLit); ok {
						part, err := strconv.Unquote(literal.Value)
						if err != nil {
							t.Fatal(err)
						}
						all[name.Name] += part
					}
					return true
				})
			}
		}
	}
	if len(all) < 30 {
		t.Fatalf("only %d remedies are found", len(all))
	}
	return all
}

// following are the functions that follow a remedy: each takes it with what was printed.
var following = []string{"Remedy", "Follow", "heals", "left"}

// TestEachIsPrintedAndFollowed checks that a strategy prints each remedy, and that a test on a
// real host follows it from what was printed.
func TestEachIsPrintedAndFollowed(t *testing.T) {
	t.Parallel()
	printed, followed := map[string]bool{}, map[string]bool{}
	code(t, func(path string, file *ast.File) {
		name := filepath.Base(path)
		does, names := uses(file)
		if !strings.HasSuffix(name, "_test.go") {
			for _, remedy := range names {
				printed[remedy] = true
			}
			return
		}
		for _, remedy := range does {
			if strings.HasPrefix(name, "real") || strings.Contains(path, "testing/realhost") || slices.Contains(faked, remedy) {
				followed[remedy] = true
			}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(texts(t))) {
		if !printed[name] {
			t.Errorf("no strategy prints remedy.%s", name)
		}
		if !followed[name] {
			t.Errorf("no test on a real host follows remedy.%s from what was printed: realhost.Remedy and realhost.Follow do", name)
		}
	}
}

// mark is what a text has that tells a person what to do to a host.
var mark = regexp.MustCompile(`\brun: |\bby hand\b|restore a backup|prepare (it|the host) again`)

// TestNoneIsElsewhere checks that the strategies have no such text of their own.
func TestNoneIsElsewhere(t *testing.T) {
	t.Parallel()
	code(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "../remedy/") || strings.Contains(path, "testing/realhost") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING && mark.MatchString(literal.Value) {
				t.Errorf("%s has %s, which is to be a remedy", path, literal.Value)
			}
			return true
		})
	})
}

// TestCommandsAreLast checks that nothing follows a command, so that a person and a test see
// where it ends.
func TestCommandsAreLast(t *testing.T) {
	t.Parallel()
	for name, text := range texts(t) {
		if _, command, found := strings.Cut(text, "run: "); found && (command == "" || strings.ContainsAny(command, `"\<>&`)) || strings.Count(text, "run: ") > 1 {
			t.Errorf("remedy.%s: %q", name, text)
		}
	}
}
