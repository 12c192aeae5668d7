// Package contexts keeps the sites that a person works with: a file with a context for each,
// one of which may be the current one, and the tokens of logins, each in a file of its own.
// Only their owner may read them.
//
// It decides what a file may contain. It reaches no site, and decides for no command which
// context is used.
package contexts

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Context says how to reach a site, and as whom. A token is named and never contained.
type Context struct {
	Endpoint string `json:"endpoint" yaml:"endpoint"`
	// Tenant is the tenant of the commands that need one.
	Tenant         string `json:"tenant,omitempty" yaml:"tenant,omitempty"`
	CAFile         string `json:"ca-file,omitempty" yaml:"ca-file,omitempty"`
	ClientCertFile string `json:"client-cert-file,omitempty" yaml:"client-cert-file,omitempty"`
	ClientKeyFile  string `json:"client-key-file,omitempty" yaml:"client-key-file,omitempty"`
	// TokenFile has the token.
	TokenFile string `json:"token-file,omitempty" yaml:"token-file,omitempty"`
	// TokenCommand is a program with its arguments, which prints the token.
	TokenCommand []string `json:"token-command,omitempty" yaml:"token-command,omitempty"`
	// User logs in. The store keeps the token of the login.
	User string `json:"user,omitempty" yaml:"user,omitempty"`
}

// Check returns what is wrong with a context.
func (c Context) Check() error {
	if c.Endpoint == "" {
		return errors.New("endpoint: it is missing; give the address of the site's REST API, such as https://site.example:4646")
	}
	if c.Tenant != "" && !names.Valid(c.Tenant) {
		return fmt.Errorf("tenant: %.200q is not the name of a tenant; %s", c.Tenant, names.Form)
	}
	for _, file := range []struct{ member, path string }{
		{"ca-file", c.CAFile}, {"client-cert-file", c.ClientCertFile}, {"client-key-file", c.ClientKeyFile}, {"token-file", c.TokenFile},
	} {
		if file.path != "" && !filepath.IsAbs(file.path) {
			return fmt.Errorf("%s: %.200q is not an absolute path; commands run in any folder", file.member, file.path)
		}
	}
	if len(c.TokenCommand) > 0 && strings.Contains(c.TokenCommand[0], "/") && !filepath.IsAbs(c.TokenCommand[0]) {
		return fmt.Errorf("token-command: %.200q is neither an absolute path nor a name in PATH; commands run in any folder", c.TokenCommand[0])
	}
	if (c.ClientCertFile == "") != (c.ClientKeyFile == "") {
		return errors.New("client-cert-file and client-key-file belong together; give both")
	}
	if proofs := c.Proofs(); len(proofs) > 1 {
		return fmt.Errorf("%s are each enough to get in; give one of them", strings.Join(proofs, " and "))
	}
	return nil
}

// Proofs are the members with which the context proves who it is.
func (c Context) Proofs() []string {
	var given []string
	for _, proof := range []struct {
		member string
		is     bool
	}{
		{"token-file", c.TokenFile != ""}, {"token-command", len(c.TokenCommand) > 0}, {"user", c.User != ""}, {"client-cert-file", c.ClientCertFile != ""},
	} {
		if proof.is {
			given = append(given, proof.member)
		}
	}
	return given
}

// Set is what the file contains.
type Set struct {
	// Current is the context of commands that name none; empty if there is none.
	Current  string             `yaml:"current,omitempty"`
	Contexts map[string]Context `yaml:"contexts"`
}

// Names returns the names of the contexts, sorted.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s.Contexts)) }

// Find returns a context.
func (s Set) Find(name string) (Context, error) {
	c, exists := s.Contexts[name]
	switch {
	case exists:
		return c, nil
	case len(s.Contexts) == 0:
		return c, fmt.Errorf("there is no context %.100q, and no other; add it with osupgrade-agent context add", name)
	}
	return c, fmt.Errorf("there is no context %.100q; use one of %s", name, strings.Join(s.Names(), ", "))
}

// Store is the folder with the file and the tokens.
type Store struct{ dir string }

// In returns the store in a folder.
func In(dir string) Store { return Store{dir: dir} }

// OfPerson returns the store of whoever runs the program, in $XDG_CONFIG_HOME or ~/.config.
func OfPerson() Store {
	config, err := os.UserConfigDir()
	if err != nil {
		return Store{} // There is no home: nothing can be read, and Change says so.
	}
	return Store{dir: filepath.Join(config, "osupgrade")}
}

// Path is the file with the contexts.
func (s Store) Path() string { return filepath.Join(s.dir, "contexts.yaml") }

// maxFile bounds the file, in bytes.
const maxFile = 1 << 20

// Load reads the file. A missing one contains nothing.
func (s Store) Load() (Set, error) {
	if s.dir == "" {
		return Set{}, nil
	}
	info, err := os.Stat(s.Path())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Set{}, nil
	case err != nil:
		return Set{}, fmt.Errorf("cannot read the contexts: %w", err)
	case info.Mode().Perm()&^0o600 != 0:
		// Whoever writes it chooses where tokens are sent and which programs are run.
		return Set{}, fmt.Errorf("%s is open to other users (mode %#o); check what it says, and run chmod 600 %s", s.Path(), info.Mode().Perm(), s.Path())
	case !isOwn(info):
		return Set{}, fmt.Errorf("%s belongs to another user, who could choose which programs you run and where your tokens are sent; set XDG_CONFIG_HOME to a folder of your own", s.Path())
	case info.Size() > maxFile:
		return Set{}, fmt.Errorf("%s is larger than %d bytes", s.Path(), maxFile)
	}
	text, err := os.ReadFile(s.Path())
	if err != nil {
		return Set{}, fmt.Errorf("cannot read the contexts: %w", err)
	}
	set, err := decode(text)
	if err != nil {
		return Set{}, fmt.Errorf("%s: %w", s.Path(), err)
	}
	return set, nil
}

// isOwn reports whether a file belongs to the user of this process.
func isOwn(info fs.FileInfo) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}

func decode(text []byte) (Set, error) {
	var set Set
	doc, err := document.Parse(document.YAML, text)
	if err != nil {
		return set, err
	}
	root := doc.Root()
	set.Current, _ = root.Text("current")
	set.Contexts = map[string]Context{}
	if all, ok := root.Nested("contexts"); ok {
		for _, name := range all.Keys() {
			var c Context
			if one, ok := all.Nested(name); ok {
				one.Fill(&c)
			}
			set.Contexts[name] = c
		}
	}
	if err := doc.Err(); err != nil {
		return set, err
	}
	return set, set.check()
}

// check returns what is wrong with the values.
func (s Set) check() error {
	for _, name := range s.Names() {
		if !names.Valid(name) {
			return fmt.Errorf("contexts: %.200q is not the name of a context; %s", name, names.Form)
		}
		if err := s.Contexts[name].Check(); err != nil {
			return fmt.Errorf("contexts.%s.%w", name, err)
		}
	}
	if s.Current != "" {
		if _, err := s.Find(s.Current); err != nil {
			return fmt.Errorf("current: %w", err)
		}
	}
	return nil
}

// patience is how long a command waits for others that write the file.
const patience = 10 * time.Second

// Change replaces what the file contains, atomically: commands that do so at once take
// turns, and each starts from what the one before has written.
func (s Store) Change(ctx context.Context, change func(*Set) error) (err error) {
	if s.dir == "" {
		return errors.New("there is no folder for the contexts: neither HOME nor XDG_CONFIG_HOME is set")
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("cannot write the contexts: %w", err)
	}
	lock, err := durable.LockFolderWithin(ctx, filepath.Join(s.dir, "contexts.lock"), "osupgrade-agent context", patience)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	set, err := s.Load()
	if err != nil {
		return err
	}
	if set.Contexts == nil {
		set.Contexts = map[string]Context{}
	}
	if err := change(&set); err != nil {
		return err
	}
	if err := set.check(); err != nil {
		return err
	}
	if err := write(s.Path(), set); err != nil {
		return fmt.Errorf("cannot write the contexts: %w", err)
	}
	return nil
}

func write(path string, set Set) error {
	text, err := yaml.Marshal(set)
	if err != nil {
		return err
	}
	if path, err = target(path); err != nil {
		return err
	}
	return durable.WriteFile(path, text, 0o600)
}

// target returns the file that a path leads to. The path may be a symbolic link, such as into a
// repository of dot files; replacing the link by a file would break that.
func target(path string) (string, error) {
	found, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return found, err
	}
	link, err := os.Readlink(path) // The file that it names may be missing as yet.
	switch {
	case err != nil:
		return path, nil //nolint:nilerr // it is no link
	case filepath.IsAbs(link):
		return link, nil
	}
	return filepath.Join(filepath.Dir(path), link), nil
}

// TokenPath is the file with the token of the login of a context.
func (s Store) TokenPath(name string) string { return filepath.Join(s.dir, "tokens", name) }

// KeepToken keeps the token of a login. Call it in a Change, so that nobody replaces the context
// meanwhile.
func (s Store) KeepToken(name, token string) error {
	if err := os.MkdirAll(filepath.Dir(s.TokenPath(name)), 0o700); err != nil {
		return fmt.Errorf("cannot keep the token of the login: %w", err)
	}
	if err := durable.WriteFile(s.TokenPath(name), []byte(token+"\n"), 0o600); err != nil {
		return fmt.Errorf("cannot keep the token of the login: %w", err)
	}
	return nil
}

// DropToken removes the token of a login, if there is one: it is for the address that the
// context had.
func (s Store) DropToken(name string) error {
	if err := os.Remove(s.TokenPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the token of the login: %w", err)
	}
	return nil
}
