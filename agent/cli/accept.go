package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
)

// acceptCommand has a version offered again that the machine of this host gave up, or one
// kept that waits for the checks of its run.
type acceptCommand struct {
	Rejected string `arg:"" name:"version" help:"Version, as shown in the warning about the host or in the plan of the run."`
	timeFlags
	State string `help:"State folder of this host's worker (its --state)." default:"/var/lib/osupgrade-worker" type:"path" env:"OSUPGRADE_STATE"`
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
		_, err = fmt.Fprintf(out, "Version %s is kept: the worker marks it as good within a minute, or at its next start, whatever its checks say.\n", c.Rejected)
		return err
	}
	_, err = fmt.Fprintf(out, "Version %s is offered again. This host fell back from it to %s at %s.\n", r.Version, r.Running, c.format().at(r.At))
	return err
}
