package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// createReleaseCommand makes a release of what a run has installed.
type createReleaseCommand struct {
	siteOperator
	Name    string `arg:"" optional:"" help:"Name of the release (default: run-ID)."`
	FromRun runID  `help:"Id of the run whose packages the release lists, each with its exact version." name:"from-run" required:"" placeholder:"ID" complete:"runs"`
	Print   bool   `help:"Print the release as a file for apply, and create nothing."`
}

// Help is the longer text of --help.
func (c *createReleaseCommand) Help() string {
	return "Other hosts then get exactly what the hosts of the run got, also if their repositories have gone on: name the release in their environment. " +
		"A package that only some hosts of the run have changed is left out and named, because a release of exact versions installs each of its packages. " +
		"A package that went to two versions, and a release of more than 64 KiB, are refused."
}

// Run implements the command.
func (c *createReleaseCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.openByToken(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	found, err := api.Installed(ctx, c.Tenant, uint64(c.FromRun))
	if err != nil {
		return err
	}
	name := c.Name
	if name == "" {
		name = fmt.Sprintf("run-%d", c.FromRun)
	}
	if c.Print {
		return c.print(out, name, found)
	}
	one := client.ReleaseNamed(name)
	made, err := one.Put(ctx, api.Client, c.Tenant, client.Stored[v1.Release]{}, found.Release, client.Precondition{IfNoneMatch: "*"})
	if client.HasStatus(err, http.StatusPreconditionFailed) {
		return fmt.Errorf("cannot create release %s: there is one of this name, and a release never changes; choose another name", name)
	}
	if err != nil {
		return fmt.Errorf("cannot create release %s: %s", name, explain(err))
	}
	said := fmt.Sprintf("Release %s is created: %s, each with its exact version.", name, text.Count(len(found.Release.Packages.Only), "package", "packages"))
	if len(found.LeftOut) > 0 {
		said += "\nLeft out, because only some hosts have changed them:\n  " + strings.Join(found.LeftOut, "\n  ")
	}
	return c.Output.say(out, made.Value, "%s", said)
}

// print prints the release as a file.
func (c *createReleaseCommand) print(out io.Writer, name string, found v1.Installed) error {
	declares := intent.Intent{Releases: map[string]v1.Release{name: found.Release}}
	return c.Output.show(out, declares, func(to *terminal) error {
		for _, left := range found.LeftOut {
			to.line("# left out: " + left)
		}
		file, err := declares.Encode(document.YAML)
		to.print(string(file))
		return err
	})
}
