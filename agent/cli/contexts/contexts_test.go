package contexts

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
)

// north is a context.
var north = Context{Endpoint: "https://north.example:4646", Tenant: "acme", CAFile: "/etc/north.pem", User: "ann"}

// TestChange checks that a change is there for who reads the file later, that only its owner can
// read it, and that a change that fails or is invalid leaves it alone.
func TestChange(t *testing.T) {
	t.Parallel()
	s := In(filepath.Join(t.TempDir(), "osupgrade"))
	if set, err := s.Load(); err != nil || len(set.Contexts) != 0 {
		t.Fatalf("before the first change there is %v, %v", set, err)
	}
	south := Context{Endpoint: "https://south.example:4646", TokenCommand: []string{"vault", "read, this", `"x"`}}
	if err := s.Change(t.Context(), func(set *Set) error {
		set.Current = "north"
		set.Contexts["north"], set.Contexts["south"] = north, south
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(set *Set) error{
		"no endpoint": func(set *Set) error { set.Contexts["x"] = Context{}; return nil },
		"no context":  func(set *Set) error { set.Current = "west"; return nil },
		"failed":      func(set *Set) error { set.Current = "south"; return errors.New("no") },
	} {
		if err := s.Change(t.Context(), change); err == nil {
			t.Errorf("%s: it is written", what)
		}
	}
	set, err := s.Load()
	if want := (Set{Current: "north", Contexts: map[string]Context{"north": north, "south": south}}); err != nil || !reflect.DeepEqual(set, want) {
		t.Errorf("it is %v, %v", set, err)
	}
	info, err := os.Stat(s.Path())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
}

// TestChangeOfLink checks that a symbolic link stays one, whether or not its file is there: the
// change is written to the file.
func TestChangeOfLink(t *testing.T) {
	t.Parallel()
	for name, relative := range map[string]bool{"absolute": false, "relative": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, kept := In(t.TempDir()), filepath.Join(t.TempDir(), "kept.yaml")
			to := kept
			if relative {
				var err error
				if to, err = filepath.Rel(filepath.Dir(s.Path()), kept); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Symlink(to, s.Path()); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"first", "second"} {
				if err := s.Change(t.Context(), func(set *Set) error { set.Contexts[name] = north; return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if is, err := os.Readlink(s.Path()); err != nil || is != to {
				t.Errorf("the link leads to %q, %v", is, err)
			}
			text, err := os.ReadFile(kept)
			if set, wrong := decode(text); err != nil || wrong != nil || len(set.Contexts) != 2 {
				t.Errorf("its file has %s, %v, %v", text, err, wrong)
			}
		})
	}
}

// TestChangesAtOnce checks that changes at once take turns, so that none is lost.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	s := In(t.TempDir())
	var all sync.WaitGroup
	names := strings.Fields("a b c d e f g h")
	for _, name := range names {
		all.Go(func() {
			if err := s.Change(t.Context(), func(set *Set) error {
				set.Contexts[name], set.Current = north, name
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if set, err := s.Load(); err != nil || len(set.Contexts) != len(names) || set.Current == "" {
		t.Errorf("there are %v, %v", set, err)
	}
}

// TestWrongFile checks what is told of a file that cannot be used.
func TestWrongFile(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		mode       os.FileMode
		text, want string
	}{
		"readable by others": {0o644, "contexts: {}\n", "is open to other users (mode 0644); check what it says, and run chmod 600 "},
		"of a group":         {0o640, "contexts: {}\n", "chmod 600"},
		"unknown member":     {0o600, "contexts:\n  north: {endpoint: https://x, token: osu_1}\n", "contexts.north.token: unknown key"},
		"unknown root":       {0o600, "context: {}\n", "context: unknown key"},
		"key twice":          {0o600, "contexts:\n  a: {endpoint: https://x}\n  a: {endpoint: https://y}\n", "contexts.a: the key is there twice"},
		"no endpoint":        {0o600, "contexts:\n  north: {tenant: acme}\n", "contexts.north.endpoint: it is missing"},
		"a list":             {0o600, "contexts:\n  north: [a]\n", "contexts.north: a list is not an object"},
		"name":               {0o600, "contexts:\n  ../north: {endpoint: https://x}\n", `contexts: "../north" is not the name of a context`},
		"tenant":             {0o600, "contexts:\n  north: {endpoint: https://x, tenant: A B}\n", "contexts.north.tenant: "},
		"relative file":      {0o600, "contexts:\n  north: {endpoint: https://x, ca-file: ca.pem}\n", `contexts.north.ca-file: "ca.pem" is not an absolute path`},
		"two proofs":         {0o600, "contexts:\n  north: {endpoint: https://x, user: ann, token-file: /t}\n", "contexts.north.token-file and user are each enough to get in"},
		"half a certificate": {0o600, "contexts:\n  north: {endpoint: https://x, client-cert-file: /c}\n", "contexts.north.client-cert-file and client-key-file belong together"},
		"unknown current":    {0o600, "current: west\ncontexts:\n  north: {endpoint: https://x}\n", `current: there is no context "west"; use one of north`},
		"empty":              {0o600, "", "the document is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := In(t.TempDir())
			if err := os.WriteFile(s.Path(), []byte(row.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(s.Path(), row.mode); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Load(); err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), s.Path()) {
				t.Errorf("it says %v", err)
			}
			if err := s.Change(t.Context(), func(*Set) error { return nil }); err == nil {
				t.Error("it is written")
			}
		})
	}
}

// TestTokens checks that only their owner can read the tokens of logins, and that one can be
// dropped twice.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := In(t.TempDir())
	if err := s.KeepToken("north", "osu_1"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.TokenPath("north"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if err := errors.Join(s.DropToken("north"), s.DropToken("north")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.TokenPath("north")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is there: %v", err)
	}
}

// FuzzDecode checks that what is read can be written and read again as the same.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("current: north\ncontexts:\n  north: {endpoint: https://x, tenant: acme, token-command: [vault, 'a b']}\n"))
	f.Add([]byte("contexts:\n  north: {endpoint: https://x, user: ann}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := decode(text)
		if err != nil {
			return
		}
		again, err := yaml.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decode(again); err != nil || !reflect.DeepEqual(got, set) {
			t.Errorf("%q is read as %v, written as %q and read as %v, %v", text, set, again, got, err)
		}
	})
}
