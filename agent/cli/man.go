package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
)

// manCommand writes the man pages, which have the text of --help.
type manCommand struct {
	Out string `help:"Folder to write the pages to; it is created if needed, and its pages are replaced." required:"" type:"path" placeholder:"DIR"`
}

// Run implements the command.
func (c *manCommand) Run(parsed *kong.Context, out io.Writer, program version) error {
	if err := os.MkdirAll(c.Out, 0o755); err != nil { //nolint:gosec // everybody may read them
		return fmt.Errorf("cannot make the folder of the man pages: %w", err)
	}
	pages := manual(program).Pages(parsed.Model.Node)
	for _, page := range pages {
		if err := os.WriteFile(filepath.Join(c.Out, page.Name+".1"), []byte(page.Text), 0o644); err != nil { //nolint:gosec // everybody may read it
			return fmt.Errorf("cannot write a man page: %w", err)
		}
	}
	_, err := fmt.Fprintf(out, "Wrote %d man pages to %s; the first is %s.1.\n", len(pages), c.Out, programName)
	return err
}

// manual is what the man pages say of all commands.
func manual(program version) shell.Manual {
	m := shell.Manual{Program: programName, Version: string(program), Summary: summary, Examples: examples, Statuses: exitStatuses}
	if info, ok := debug.ReadBuildInfo(); ok {
		m.Date = shell.CommitDate(info.Settings)
	}
	return m
}
