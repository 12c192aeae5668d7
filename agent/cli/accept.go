package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker"
)

// acceptCommand has a version offered again that the machine of this host gave up, or one
// kept that waits for the checks of its run.
type acceptCommand struct {
	Rejected string `arg:"" name:"version" help:"Version, as the warning of the host or the plan of the run names it."`
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
	if r == nil {
		_, err = fmt.Fprintf(out, "Version %s is kept: the worker marks it as good within a minute, or when it is started, whatever its checks say.\n", c.Rejected)
		return err
	}
	_, err = fmt.Fprintf(out, "Version %s is offered again; this host went back from it to %s at %s.\n", r.Version, r.Running, r.At.UTC().Format(time.RFC3339))
	return err
}
