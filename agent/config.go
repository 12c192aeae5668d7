package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"
)

// configFile is a YAML mapping of flag names to values: every flag of a
// command is a key. An OSUPGRADE_* variable counts more than the file, a flag
// more than both.
type configFile struct {
	values map[string]string
	used   map[string]bool
}

// loadConfig reads a config file.
func loadConfig(r io.Reader) (kong.Resolver, error) {
	var tree map[string]yaml.Node
	if err := yaml.NewDecoder(r).Decode(&tree); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read config file: %w", err)
	}
	file := &configFile{values: map[string]string{}, used: map[string]bool{}}
	for key, node := range tree {
		text, err := scalar(node)
		if err != nil {
			return nil, fmt.Errorf("config file, line %d: %s %w", node.Line, key, err)
		}
		file.values[key] = text
	}
	return file, nil
}

// scalar returns a value as its written text, a list joined by commas.
func scalar(node yaml.Node) (string, error) {
	switch node.Kind {
	case yaml.ScalarNode:
		return node.Value, nil
	case yaml.SequenceNode:
		var parts []string
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode || strings.Contains(item.Value, ",") {
				return "", fmt.Errorf("must be a value or a list of values without commas")
			}
			parts = append(parts, item.Value)
		}
		return strings.Join(parts, ","), nil
	default:
		return "", fmt.Errorf("must be a value or a list of values")
	}
}

// Validate refuses keys that are no flag of any command.
func (f *configFile) Validate(app *kong.Application) error {
	var known []string
	var collect func(*kong.Node)
	collect = func(node *kong.Node) {
		for _, flag := range node.Flags {
			known = append(known, flag.Name)
		}
		for _, child := range node.Children {
			collect(child)
		}
	}
	collect(app.Node)
	for key := range f.values {
		if !slices.Contains(known, key) {
			return fmt.Errorf("config file: %q is no key; use the name of a flag without its dashes", key)
		}
	}
	return nil
}

// Resolve returns the file's value of a flag, unless the environment has one.
func (f *configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	value, found := f.values[flag.Name]
	if !found {
		return nil, nil
	}
	for _, name := range flag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	return value, nil
}

// printConfig prints the effective values of a command as a config file.
// Secrets stand in files, so there are none to mask.
func printConfig(w io.Writer, parsed *kong.Context) error {
	for _, flag := range parsed.Flags() {
		if flag.Name == "help" || flag.Name == "version" || flag.Name == "config" || flag.Name == "print-config" {
			continue
		}
		value, err := yaml.Marshal(map[string]any{flag.Name: parsed.FlagValue(flag)})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "# %s\n%s", flag.Help, value); err != nil {
			return err
		}
	}
	return nil
}
