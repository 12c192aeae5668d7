//go:build worker

package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// siteCommands are the commands of a site in the program of a host, which is built
// without the server: they say which program has them.
type siteCommands struct {
	Dev         elsewhere `cmd:"" hidden:"" passthrough:"" group:"site"`
	Serve       elsewhere `cmd:"" hidden:"" passthrough:"" group:"site"`
	Init        elsewhere `cmd:"" hidden:"" passthrough:"" group:"site"`
	Backup      elsewhere `cmd:"" hidden:"" passthrough:"" group:"site"`
	Restore     elsewhere `cmd:"" hidden:"" passthrough:"" group:"site"`
	Recover     elsewhere `cmd:"" hidden:"" passthrough:"" group:"site"`
	Seal        elsewhere `cmd:"" hidden:"" passthrough:"" group:"site"`
	Credentials elsewhere `cmd:"" hidden:"" passthrough:"" group:"let-in"`
}

// elsewhere is a command that this program does not have.
type elsewhere struct {
	Arguments []string `arg:"" optional:""`
}

// Run implements the command.
func (elsewhere) Run(parsed *kong.Context) error {
	return misused(fmt.Errorf("%s is a command of a site, and this is the program of a host, which has no server in it; use osupgrade-agent of the package osupgrade-agent", parsed.Selected().Name))
}

// siteAPI is how the commands that manage a site reach its API: this program has only the way
// that all other commands have.
type siteAPI struct{ connection }

// siteClient calls the API of a site.
type siteClient struct{ *client.Client }

func (c *siteClient) done() { c.Close() }

// knows finds nothing to object to: over the network the API says itself if there is no tenant.
func (*siteClient) knows(context.Context, string) error { return nil }

func (c *siteAPI) open(context.Context, *slog.Logger) (*siteClient, error) {
	api, err := c.client()
	if err != nil {
		return nil, err
	}
	return &siteClient{api}, nil
}

func (c *siteAPI) openByToken(ctx context.Context, log *slog.Logger) (*siteClient, error) {
	return c.open(ctx, log)
}

// place is where the site is, for people.
func (c *siteAPI) place() string { return c.address() }
