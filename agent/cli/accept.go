package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker"
)

// acceptCommand has a version offered again that the machine of this host gave up.
type acceptCommand struct {
	Rejected string `arg:"" name:"version" help:"Version, as the warning of the host names it."`
	State    string `help:"Folder of the worker of this host, as its --state." default:"/var/lib/osupgrade-worker" type:"path" env:"OSUPGRADE_STATE"`
}

// Run implements the command. The worker need not be stopped.
func (c *acceptCommand) Run(out io.Writer) error {
	if _, err := os.Stat(c.State); err != nil {
		return fmt.Errorf("state: %w; name the folder of osupgrade-agent worker --state", err)
	}
	r, err := worker.Accept(c.State, c.Rejected, time.Now(), durable.WriteFile)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "Version %s is offered again; this host went back from it to %s at %s.\n", r.Version, r.Running, r.At.UTC().Format(time.RFC3339))
	return err
}
