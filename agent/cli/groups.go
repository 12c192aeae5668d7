package cli

import (
	"errors"

	"github.com/alecthomas/kong"
)

// groups are the headings of --help, in the order of the fields of commands.
var groups = kong.ExplicitGroups([]kong.Group{
	{Key: "see", Title: "See what happens:"},
	{Key: "run", Title: "Run upgrades:"},
	{Key: "declare", Title: "Declare the configuration:"},
	{Key: "let-in", Title: "Let in people, programs and hosts:"},
	{Key: "site", Title: "Site, on its server:"},
	{Key: "host", Title: "Host, on this machine:"},
	{Key: "shell", Title: "Shell completion and man pages:"},
})

// groupCommands lets only the commands of the program have headings: kong hands the group
// of a command down to its flags and to the commands below it.
func groupCommands(k *kong.Kong) error {
	for _, n := range k.Model.Children {
		ungroup(n)
	}
	return nil
}

func ungroup(n *kong.Node) {
	for _, f := range n.Flags {
		f.Group = nil
	}
	for _, child := range n.Children {
		child.Group = &kong.Group{Key: "commands", Title: "Commands:"}
		ungroup(child)
	}
}

// withoutCommand returns what could be parsed of arguments that end before a command, such
// as those of osupgrade-agent and osupgrade-agent credentials; nil when something else is
// wrong with them.
func withoutCommand(err error) *kong.Context {
	parse, ok := errors.AsType[*kong.ParseError](err)
	if !ok || parse.Context == nil || parse.Context.Error != nil {
		return nil
	}
	last := parse.Context.Model.Node
	for _, at := range parse.Context.Path {
		if last = at.Node(); last == nil { // A flag.
			return nil
		}
	}
	if last.Leaf() || last.DefaultCmd != nil {
		return nil
	}
	return parse.Context
}
