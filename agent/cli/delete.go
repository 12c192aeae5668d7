package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// deleteCommand deletes objects of a tenant.
type deleteCommand struct {
	siteOperator
	What  []string `arg:"" help:"What to delete, such as policy/NAME or calendar/NAME, config or rollout." complete:"objects"`
	Force bool     `help:"Delete a policy even if a user, an approle or a token names it, and an environment or config even if it has hosts or a run is in progress. The run continues."`
}

// forcible are the kinds that --force deletes though they are in use. Whatever names another kind has to
// be changed first.
var forcible = []intent.Kind{intent.Config, intent.Environment, intent.Policy}

// Help is the longer text of --help.
func (c *deleteCommand) Help() string {
	return "The logins of a user or an approle end. A deleted policy no longer allows anything to users, approles and tokens that still name it. " +
		"The hosts of an environment are in the one that matches them, or else in default. A release can be deleted once nothing names it. What is queued for a webhook is dropped. If somebody else changes an object meanwhile, it stays."
}

// Run implements the command.
func (c *deleteCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	asked, err := parseKeys(c.What)
	if err != nil {
		return err
	}
	if len(asked.all) > 0 {
		return misusedf("name each object to delete, such as %s/NAME; %s means all of them", asked.all[0].name, asked.all[0].plural)
	}
	for _, key := range asked.keys {
		if c.Force && !slices.Contains(forcible, key.Kind) {
			return misusedf("--force is for config, environment and policy, and not for %s; leave it out", key)
		}
	}
	api, err := c.openByToken(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	site, err := readSiteIntent(ctx, api.Client, c.Tenant, asked.keys)
	if err != nil {
		return err
	}
	for _, key := range asked.keys {
		if _, exists := site.etags[key]; !exists {
			return fmt.Errorf("nothing was deleted: %w", lacks(ctx, api.Client, c.Tenant, key))
		}
	}
	deleted, warnings := []string{}, []v1.IntentWarning{}
	to := newTerminal(out)
	for _, key := range asked.keys {
		found, err := kindOf(key.Kind).remove(ctx, site, key.Name, client.Precondition{IfMatch: site.etags[key]}, c.Force)
		if err != nil {
			return fmt.Errorf("cannot delete %s: %s", key, explain(err))
		}
		deleted, warnings = append(deleted, key.String()), append(warnings, found...)
		if c.Output == asText {
			for _, w := range found {
				to.line(to.paint(yellow, "warning: "+w.Text))
			}
			if _, err := fmt.Fprintf(out, "Deleted %s of tenant %s.\n", key, c.Tenant); err != nil {
				return err
			}
		}
	}
	if c.Output == asText {
		return nil
	}
	return c.json(out, map[string]any{"tenant": c.Tenant, "deleted": deleted, "warnings": warnings})
}
