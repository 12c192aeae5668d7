// Package shell shows the commands and flags of a program, as its parser has them, to
// people and their shells: what completes a command line, and the man pages. It
// knows no command by name and asks no site; what only a site knows, such as the names
// of hosts, its caller answers.
package shell

import (
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Commands returns a node and all visible commands below it, each before its own.
func Commands(n *kong.Node) []*kong.Node {
	all := []*kong.Node{n}
	for _, child := range visible(n) {
		all = append(all, Commands(child)...)
	}
	return all
}

// Name is the words of a command, such as "credentials token"; "" for the program.
func Name(n *kong.Node) string {
	var words []string
	for ; n != nil && n.Type == kong.CommandNode; n = n.Parent {
		words = append([]string{n.Name}, words...)
	}
	return strings.Join(words, " ")
}

// Flags returns the flags that a command takes, those of the program first.
func Flags(n *kong.Node) []*kong.Flag {
	var flags []*kong.Flag
	for _, level := range n.AllFlags(true) {
		flags = append(flags, level...)
	}
	return flags
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

// spelled returns the ways to write a flag, the short one first.
func spelled(f *kong.Flag) []string {
	if f.Short == 0 {
		return []string{"--" + f.Name}
	}
	return []string{"-" + string(f.Short), "--" + f.Name}
}

// accepted says what may stand as a value.
type accepted struct {
	kind  kind
	words []string
}

// accepts returns what may stand as a value of a flag or an argument. Words are those
// of its enum, or of a placeholder such as text|json; one in capitals stands for a name
// that only a site knows.
func accepts(v *kong.Value) accepted {
	placeholder := v.Tag.PlaceHolder
	switch {
	case v.Enum != "":
		return accepted{words: v.EnumSlice()}
	case strings.Contains(placeholder, "|"):
		words := strings.Split(placeholder, "|")
		return accepted{words: slices.DeleteFunc(words, func(word string) bool { return word == strings.ToUpper(word) })}
	case placeholder == "DIR":
		return accepted{kind: folders}
	case v.Tag.Type == "path" || placeholder == "FILE":
		return accepted{kind: files}
	}
	return accepted{}
}
