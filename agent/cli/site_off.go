//go:build worker

package cli

import (
	"fmt"

	"github.com/alecthomas/kong"
)

// siteCommands are the commands of a site in the program of a host, which is built
// without the server: they say which program has them.
type siteCommands struct {
	Dev         elsewhere `cmd:"" hidden:"" passthrough:""`
	Serve       elsewhere `cmd:"" hidden:"" passthrough:""`
	Init        elsewhere `cmd:"" hidden:"" passthrough:""`
	Backup      elsewhere `cmd:"" hidden:"" passthrough:""`
	Restore     elsewhere `cmd:"" hidden:"" passthrough:""`
	Recover     elsewhere `cmd:"" hidden:"" passthrough:""`
	Seal        elsewhere `cmd:"" hidden:"" passthrough:""`
	Credentials elsewhere `cmd:"" hidden:"" passthrough:""`
}

// elsewhere is a command that this program does not have.
type elsewhere struct {
	Arguments []string `arg:"" optional:""`
}

// Run implements the command.
func (elsewhere) Run(parsed *kong.Context) error {
	return misused(fmt.Errorf("%s is a command of a site, and this is the program of a host, which has no server in it; use osupgrade-agent of the package osupgrade-agent", parsed.Selected().Name))
}
