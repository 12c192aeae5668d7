package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// hostsCommand lists the hosts.
type hostsCommand struct {
	operator
}

// Run implements the command.
func (c *hostsCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	hosts, err := api.Hosts(ctx, c.Tenant, "")
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return c.json(out, hosts)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "HOST\tAPPLICATION\tONLINE\tVERSIONS")
	for _, h := range hosts {
		online := "no"
		if h.Online {
			online = "yes"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", h.Hostname, h.Application, online, versionsLine(h.Versions))
	}
	return table.Flush()
}

// maxShown is the number of packages that a line of the table shows.
const maxShown = 4

func versionsLine(versions map[string]string) string {
	var parts []string
	for name, version := range versions {
		parts = append(parts, name+" "+version)
	}
	slices.Sort(parts)
	if more := len(parts) - maxShown; more > 0 {
		parts = append(parts[:maxShown], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}

// forgetCommand deletes a host that no longer exists.
type forgetCommand struct {
	operator
	Host string `arg:"" help:"Name of the host, as hosts shows it."`
}

// Run implements the command.
func (c *forgetCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if err := api.DeleteHost(ctx, c.Tenant, c.Host); err != nil {
		return err
	}
	if c.Output == "json" {
		return c.json(out, map[string]string{"tenant": c.Tenant, "forgotten": c.Host})
	}
	_, err = fmt.Fprintf(out, "Host %s of tenant %s is deleted. It returns when its worker connects again; remove its key to keep it out.\n", c.Host, c.Tenant)
	return err
}
