package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/dev"
)

// devCommand runs a site with simulated hosts (design.md 9).
type devCommand struct {
	Hosts  int    `help:"How many simulated hosts: h01, h02, ..." default:"3" env:"OSUPGRADE_HOSTS"`
	Data   string `help:"Folder for all data; a restarted site continues from this folder." required:"" type:"path" env:"OSUPGRADE_DATA" placeholder:"DIR"`
	Listen string `help:"Where the REST API listens; port 0 takes any that is free." default:"127.0.0.1:4646" env:"OSUPGRADE_LISTEN"`
	Step   length `help:"How long one simulated action takes." default:"2s" env:"OSUPGRADE_STEP"`
}

// Run implements the command.
func (c *devCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger, program version) error {
	if c.Hosts < 0 || c.Hosts > 10_000 {
		return misusedf("--hosts %d is out of range; use 0 to 10000", c.Hosts)
	}
	if err := checkAddress("listen", c.Listen); err != nil {
		return misused(err)
	}
	d, err := dev.Start(ctx, dev.Options{Dir: c.Data, Hosts: c.Hosts, Step: time.Duration(c.Step), Listen: c.Listen, Version: string(program), Log: log})
	if err != nil {
		return err
	}
	env := filepath.Join(c.Data, "dev.env")
	if err := d.WriteEnv(env); err != nil {
		return errors.Join(err, d.Close())
	}
	_, _ = fmt.Fprintf(out, "The agent is ready at %s with %s of application %s.\nUse it from another terminal with:  . %s\n",
		d.Endpoint, count(c.Hosts, "simulated host"), dev.Application, env)
	return errors.Join(wait(ctx, d.Failed()), d.Close())
}

// wait returns when ctx ends, which is no error, or a part has stopped.
func wait(ctx context.Context, failed <-chan error) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}
