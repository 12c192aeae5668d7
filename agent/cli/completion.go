package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCommand prints a script that completes the command line in a shell. The
// script is made from the commands and flags of this program, and asks no site.
type completionCommand struct {
	Shell string `arg:"" help:"The shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help describes the command.
func (c *completionCommand) Help() string {
	return `The script completes commands, flags, the values of flags that take one of a few words,
and files. Load it in each new shell, by a line in ~/.bashrc (bash 4.4 or later), ~/.zshrc (after compinit)
or ~/.config/fish/config.fish:

    source <(osupgrade-agent completion bash)
    source <(osupgrade-agent completion zsh)
    osupgrade-agent completion fish | source

Make it anew after an upgrade of the program if you keep it in a file.`
}

// Run implements the command.
func (c *completionCommand) Run(parsed *kong.Context, out io.Writer) error {
	write := map[string]func(*kong.Node) string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[c.Shell]
	_, err := io.WriteString(out, write(parsed.Model.Node))
	return err
}

// accepted says what may stand as a value.
type accepted struct {
	kind  acceptedKind
	words []string
}

type acceptedKind int

const (
	acceptsText acceptedKind = iota
	acceptsWords
	acceptsFile
	acceptsFolder
)

// accepts returns what may stand as a value of a flag or an argument. Words are those
// of its enum, or of a placeholder such as text|json; one in capitals stands for a name
// that nobody can know here.
func accepts(v *kong.Value) accepted {
	placeholder := v.Tag.PlaceHolder
	switch {
	case v.Enum != "":
		return accepted{acceptsWords, v.EnumSlice()}
	case strings.Contains(placeholder, "|"):
		words := strings.Split(placeholder, "|")
		return accepted{acceptsWords, slices.DeleteFunc(words, func(word string) bool { return word == strings.ToUpper(word) })}
	case placeholder == "DIR":
		return accepted{kind: acceptsFolder}
	case v.Tag.Type == "path" || placeholder == "FILE":
		return accepted{kind: acceptsFile}
	}
	return accepted{}
}

// withCommands returns a node and all visible commands below it, each before its own.
func withCommands(n *kong.Node) []*kong.Node {
	all := []*kong.Node{n}
	for _, child := range visible(n) {
		all = append(all, withCommands(child)...)
	}
	return all
}

// visible returns the commands right below a node that help shows.
func visible(n *kong.Node) []*kong.Node {
	var children []*kong.Node
	for _, child := range n.Children {
		if !child.Hidden {
			children = append(children, child)
		}
	}
	return children
}

// flagsOf returns the flags that a command takes, those of the program first.
func flagsOf(n *kong.Node) []*kong.Flag {
	var flags []*kong.Flag
	for _, group := range n.AllFlags(true) {
		flags = append(flags, group...)
	}
	return flags
}

// spelled returns the ways to write a flag, the short one first.
func spelled(f *kong.Flag) []string {
	if f.Short == 0 {
		return []string{"--" + f.Name}
	}
	return []string{"-" + string(f.Short), "--" + f.Name}
}

// identifier returns the name of a shell function for a command.
func identifier(n *kong.Node) string {
	name := "_osupgrade_agent"
	if command := commandName(n); command != "" {
		name += "_" + command
	}
	return strings.NewReplacer(" ", "_", "-", "_").Replace(name)
}

// singleQuoted quotes a text for bash and zsh.
func singleQuoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// walkTables returns what a script needs to find the command that words stand for: a
// pattern "COMMAND WORD" for each flag that takes a value and for each command.
func walkTables(root *kong.Node) (valued, commands []string) {
	for _, n := range withCommands(root) {
		path := commandName(n)
		for _, f := range flagsOf(n) {
			if f.IsBool() {
				continue
			}
			for _, word := range spelled(f) {
				valued = append(valued, singleQuoted(path+" "+word))
			}
		}
		for _, child := range visible(n) {
			commands = append(commands, singleQuoted(path+" "+child.Name))
		}
	}
	return valued, commands
}
