package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
)

var word = regexp.MustCompile(`"[^"]*"|\S+`)

// TestExamples checks that each command has an example in its help, that the parser
// takes every example, as the command that it is of, and that there is none for a
// command that does not exist.
func TestExamples(t *testing.T) {
	t.Setenv("OSUPGRADE_TENANT", "acme")
	leaves := map[string]bool{}
	newTestParser := func() *kong.Kong {
		parser, err := newParser(&commands{}, "1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		return parser
	}
	for _, leaf := range newTestParser().Model.Leaves(true) {
		name := shell.Name(leaf)
		leaves[name] = true
		if len(examples[name]) == 0 || !strings.Contains(leaf.Detail, "    "+examples[name][0]) {
			t.Errorf("the help of %s has no example:\n%s", name, leaf.Detail)
		}
	}
	for name, lines := range examples {
		if !leaves[name] {
			t.Errorf("there are examples of %s, which is no command", name)
		}
		for _, line := range lines {
			for part := range strings.SplitSeq(line, " | ") {
				part, _, _ = strings.Cut(part, " >")
				part = strings.ReplaceAll(part, "/etc/osupgrade/", "../../examples/agent/")
				args := word.FindAllString(part, -1)
				for i := range args {
					args[i] = strings.Trim(args[i], `"`)
				}
				if args[0] != "osupgrade-agent" {
					t.Errorf("%s begins with another program", line)
				}
				parsed, err := newTestParser().Parse(args[1:])
				if err != nil {
					t.Errorf("%s: %v", line, err)
					continue
				}
				if got := shell.Name(parsed.Selected()); got != name && !strings.Contains(line, " | ") {
					t.Errorf("%s is an example of %s, not of %s", line, got, name)
				}
			}
		}
	}
}
