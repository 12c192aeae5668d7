package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// tenantCommand are the commands for the tenants of a site.
type tenantCommand struct {
	List   listTenantsCommand  `cmd:"" help:"List the tenants of the site, including removed ones."`
	Add    addTenantCommand    `cmd:"" help:"Create a tenant, or restore one that was removed."`
	Remove removeTenantCommand `cmd:"" help:"Remove a tenant: its users and hosts can no longer connect. Its log is kept."`
}

// ofSite is the common part of commands that act on the site and on no tenant. They need a
// token of all tenants, or, on the machine of the site, none.
type ofSite struct {
	siteAPI
	Output format `help:"Output format: text or json." default:"text" short:"o" placeholder:"text|json"`
}

// Validate implements kong's hook.
func (c *ofSite) Validate() error { return c.Output.given() }

// listTenantsCommand lists the tenants.
type listTenantsCommand struct{ ofSite }

// Run implements the command.
func (c *listTenantsCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	all, err := api.Tenants(ctx)
	if err != nil {
		return err
	}
	if c.Output == asJSON {
		return printJSON(out, all)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tSTATUS\tMADE BY\tDESCRIPTION")
	for _, t := range all {
		by := "the API"
		if t.Source == v1.TenantOfSite {
			by = "the site's configuration"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", t.Name, t.Status, by, cmp.Or(t.DescriptiveName, "-"))
	}
	return table.Flush()
}

// addTenantCommand makes a tenant.
type addTenantCommand struct {
	ofSite
	Name        string `arg:"" help:"Name of the tenant."`
	Description string `help:"Its name for people." placeholder:"TEXT"`
	Restore     bool   `help:"Restore a removed tenant with its log, configuration and history."`
}

// Run implements the command.
func (c *addTenantCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	t := v1.Tenant{Name: c.Name, DescriptiveName: c.Description}
	if wrong := t.Validate(); len(wrong) > 0 {
		return misused(wrong)
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	if err := api.AddTenant(ctx, t, c.Restore); err != nil {
		return err
	}
	if c.Output == asJSON {
		return printJSON(out, map[string]string{"added": c.Name})
	}
	did := "made"
	if c.Restore {
		did = "restored"
	}
	_, err = fmt.Fprintf(out, "Tenant %s is %s and served. Nobody is let in yet; on the site: osupgrade-agent credentials user --tenant %s --name NAME --allow admin\n", c.Name, did, c.Name)
	return err
}

// removeTenantCommand removes a tenant.
type removeTenantCommand struct {
	ofSite
	Name  string `arg:"" help:"Name of the tenant, as tenant list shows it."`
	Force bool   `help:"Remove it even if it has hosts or a run in progress: revoke their keys, and abort the run at once."`
}

// Run implements the command.
func (c *removeTenantCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	if err := api.DeleteTenant(ctx, c.Name, c.Force); err != nil {
		return err
	}
	if c.Output == asJSON {
		return printJSON(out, map[string]string{"removed": c.Name})
	}
	_, err = fmt.Fprintf(out, "Tenant %s is removed. Its log is kept; to take it up again: osupgrade-agent tenant add %s --restore\n", c.Name, c.Name)
	return err
}
