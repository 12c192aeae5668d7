package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// healthCommand asks what a run would ask before it prepares any host.
type healthCommand struct {
	operator
	environmentFlag
}

// Help is the longer text of --help.
func (c *healthCommand) Help() string {
	return "The checks are checks.start of the rollout: at the site, and on the hosts that each of them matches. No run is opened, and nothing is kept. " +
		"Exit code 1 if a check failed."
}

// Run implements the command.
func (c *healthCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	report, err := api.Health(ctx, c.Tenant, v1.AskHealth{Environment: c.Environment})
	if err != nil {
		return c.format().refusal(err)
	}
	err = c.Output.show(out, report, func(to *terminal) error {
		if len(report.Checks) == 0 {
			to.linef("Environment %s has no start checks: declare checks.start in its rollout.", report.Environment)
			return nil
		}
		showHealth(to, report)
		return nil
	})
	return cmp.Or(err, failedChecks(report))
}

// showHealth prints each check where it was asked, and what it said.
func showHealth(to *terminal, r v1.HealthReport) {
	var t table
	t.add("CHECK", "WHERE", "RESULT", "SAID")
	for _, c := range r.Checks {
		where := cmp.Or(c.Host, "site")
		if c.Result == v1.HealthNotAsked {
			where = "-"
		}
		if c.Result == v1.HealthFailed {
			t.addIn(map[int]string{2: red}, c.Check, where, c.Result, c.Text)
		} else {
			t.add(c.Check, where, c.Result, c.Text)
		}
	}
	t.print(to)
}

// failedChecks is the error of a report in which checks failed; nil when none did.
func failedChecks(r v1.HealthReport) error {
	failed := 0
	for _, c := range r.Checks {
		if c.Result == v1.HealthFailed {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%s failed", text.Count(failed, "start check", "start checks"))
}
