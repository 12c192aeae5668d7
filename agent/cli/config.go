package cli

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// configFile is a YAML object of flag names and values: every flag of the
// command is a key. An OSUPGRADE_* variable counts more than the file, a flag
// more than both.
type configFile struct {
	name     string
	document *document.Document
	// values holds what is not empty, once the command is known.
	values map[string]any
	err    error
}

// maxConfig bounds a config file, in bytes.
const maxConfig = 1 << 20

// configFiles are the config files of a call, for who asks where a value comes
// from.
type configFiles struct{ read []*configFile }

// load reads a config file.
func (c *configFiles) load(r io.Reader) (kong.Resolver, error) {
	file, err := loadConfig(r)
	if err != nil {
		return nil, err
	}
	c.read = append(c.read, file)
	return file, nil
}

func loadConfig(r io.Reader) (*configFile, error) {
	file := &configFile{name: "config file"}
	if named, ok := r.(interface{ Name() string }); ok {
		file.name += " " + named.Name()
	}
	text, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot read config file: %w", err)
	case len(text) > maxConfig:
		return nil, fmt.Errorf("%s is larger than %d bytes", file.name, maxConfig)
	}
	if file.document, err = document.Parse(document.YAML, text); err != nil {
		return nil, fmt.Errorf("%s: %w", file.name, err)
	}
	return file, nil
}

// take reads the values of a command's flags, and finds what is wrong with the
// file, keys that are no flag of this command among it.
func (f *configFile) take(flags []*kong.Flag) {
	f.values = map[string]any{}
	root := f.document.Root()
	for _, flag := range flags {
		if !isSetting(flag) {
			continue
		}
		if !flag.IsSlice() {
			if text, ok := root.Text(flag.Name); ok && text != "" {
				f.values[flag.Name] = text
			}
			continue
		}
		if texts, ok := root.Texts(flag.Name); ok && len(texts) > 0 {
			items := make([]any, len(texts))
			for i, text := range texts {
				items[i] = text
			}
			f.values[flag.Name] = items
		}
	}
	f.err = withForms(f.document.Err(), flags)
}

// ofReleases are keys with which a host could say what is installed. A release says that: these are its
// members.
var ofReleases = map[string]string{
	"apt-mode": "packages.select", "apt-packages": "packages.only", "apt-release": "packages.distribution", "apt-sources": "packages.as-of, and set apt-snapshot",
	"dnf-mode": "packages.select", "dnf-packages": "packages.only",
	"rauc-version": "version and images", "rauc-sha256": "images, which have sha256",
	"ostree-ref":        "images, whose url may be a branch",
	"sysupdate-version": "version and images",
}

// declaredBy says what replaces a key of ofReleases.
func declaredBy(key string) string {
	return "what is installed is declared at the site, by a release: use its " + ofReleases[key]
}

// variablesOfReleases returns an error if a variable is set that belonged to a key of ofReleases. It would
// have no effect, and the host would install something else.
func variablesOfReleases() error {
	for _, key := range slices.Sorted(maps.Keys(ofReleases)) {
		name := "OSUPGRADE_" + strings.ToUpper(strings.ReplaceAll(key, "-", "_"))
		if os.Getenv(name) != "" {
			return fmt.Errorf("variable %s has no effect any more; %s", name, declaredBy(key))
		}
	}
	return nil
}

// withForms adds to what is wrong with a list the form of its entries, which a
// document does not know, and to a key that is none what to use instead.
func withForms(err error, flags []*kong.Flag) error {
	problems, ok := errors.AsType[document.Problems](err)
	if !ok {
		return err
	}
	told := slices.Clone(problems)
	for i, p := range told {
		field, _, _ := strings.Cut(p.Field, "[")
		if ofReleases[field] != "" {
			told[i].Message = "unknown key; " + declaredBy(field)
		}
		for _, flag := range flags {
			if flag.Name == field && flag.IsSlice() {
				form := strings.TrimSuffix(flag.PlaceHolder, ",...")
				told[i].Message += fmt.Sprintf("; %s is a list of %s, such as %s: [%s]", field, form, field, listExamples[field])
			}
		}
	}
	return told
}

// listExamples are entries of the lists among the keys.
var listExamples = map[string]string{"tenants": "acme, beta", "label": "ring=0, rack=r12", "apt-versions": "linux-image-*, systemd"}

// isSetting reports whether a flag says how to work, and not what to show
// instead.
func isSetting(flag *kong.Flag) bool {
	switch flag.Name {
	case "help", "version", "config", "print-config":
		return false
	}
	return true
}

// Validate tells what is wrong with the file. It is called after Resolve, and
// before anything that is missing is told.
func (f *configFile) Validate(*kong.Application) error {
	if f.err != nil {
		return fmt.Errorf("%s: %w", f.name, f.err)
	}
	return nil
}

// withoutEmptyPaths has the parser pass over the variables of paths that are set to
// nothing: they name no file, and surely not the folder that the program happens to be in.
// Help and errors name them all the same, from Flag.Envs, which kong.New fills at its end.
func withoutEmptyPaths(k *kong.Kong) error {
	return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok && flag.Tag.Type == "path" {
			flag.Tag.Envs = slices.DeleteFunc(slices.Clone(flag.Tag.Envs), func(name string) bool { return os.Getenv(name) == "" })
		}
		return next(nil)
	})
}

// flagHelp is the help of a flag, with all its variables.
func flagHelp(value *kong.Value) string {
	if value.Flag == nil {
		return kong.DefaultHelpValueFormatter(value)
	}
	tag, shown := *value.Tag, *value
	tag.Envs, shown.Tag = value.Flag.Envs, &tag
	return kong.DefaultHelpValueFormatter(&shown)
}

// pathMapper reads the path of a file or folder. An empty one is as good as none.
func pathMapper(ctx *kong.DecodeContext, target reflect.Value) error {
	if target.Kind() != reflect.String { // A list of paths.
		return kong.NewRegistry().RegisterDefaults().ForNamedType("path", target.Type()).Decode(ctx, target)
	}
	var path string
	if err := ctx.Scan.PopValueInto("file", &path); err != nil {
		return err
	}
	switch {
	case path == "" && ctx.Value.Required:
		return errors.New("it is empty; give the path of a file or folder")
	case path == "":
		path = ctx.Value.Default
	}
	if path != "" && path != "-" { // As in kong's own mapper, that is no file.
		path = kong.ExpandPath(path)
	}
	target.SetString(path)
	return nil
}

// Resolve returns the file's value of a flag, unless the environment has one.
func (f *configFile) Resolve(command *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if f.values == nil {
		f.take(command.Flags())
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set && slices.Contains(flag.Tag.Envs, name) {
			return nil, nil
		}
	}
	return f.values[flag.Name], nil
}

// origin says where the value of a flag comes from: the flag, a variable, a line of
// the config file, or nowhere, which is the default.
func (c *configFiles) origin(parsed *kong.Context, flag *kong.Flag) string {
	for _, p := range parsed.Path {
		if p.Flag == flag && !p.Resolved {
			return "flag --" + flag.Name
		}
	}
	for _, name := range flag.Envs {
		if value, set := os.LookupEnv(name); set && value != "" {
			return "variable " + name
		}
	}
	for _, file := range c.read {
		if _, some := file.values[flag.Name]; some {
			return fmt.Sprintf("%s, line %d", file.name, file.document.Line(flag.Name))
		}
	}
	return "default"
}

// printConfig prints the effective values of a command as a config file, which
// has the same effect again, and where each comes from: what is not set is left out.
// Secrets stand in files, so there are none to mask.
func printConfig(w io.Writer, parsed *kong.Context, files *configFiles) error {
	for _, flag := range parsed.Flags() {
		value := parsed.FlagValue(flag)
		if !isSetting(flag) || unset(value) {
			continue
		}
		text, err := yaml.Marshal(map[string]any{flag.Name: value})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "# %s\n# From: %s.\n%s", flag.Help, files.origin(parsed, flag), text); err != nil {
			return err
		}
	}
	return nil
}

func unset(value any) bool {
	switch v := value.(type) {
	case string:
		return v == ""
	case []string:
		return len(v) == 0
	}
	return false
}
