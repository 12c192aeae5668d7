package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// hostsCommand lists the hosts, or shows one.
type hostsCommand struct {
	operator
	Host string `arg:"" optional:"" help:"Name of one host, to show all that is known of it."`
}

// Run implements the command.
func (c *hostsCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if c.Host != "" {
		host, err := api.Host(ctx, c.Tenant, c.Host)
		if err != nil {
			return err
		}
		if c.Output == "json" {
			return c.json(out, host)
		}
		return showHost(out, host)
	}
	hosts, err := api.Hosts(ctx, c.Tenant, "")
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return c.json(out, hosts)
	}
	state, err := api.State(ctx, c.Tenant, "")
	if err != nil {
		return err
	}
	if err := listHosts(out, hosts); err != nil {
		return err
	}
	return listWarnings(out, state)
}

// listHosts prints a table of hosts.
func listHosts(out io.Writer, hosts []v1.Host) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "HOST\tAPPLICATION\tONLINE\tLAST RUN\tVERSIONS")
	for _, h := range hosts {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", h.Hostname, h.Application, yesNo(h.Online), lastRun(h), versionsLine(h.Versions))
	}
	return table.Flush()
}

// listWarnings prints what is wrong with hosts, also with such that are not known yet.
func listWarnings(out io.Writer, state v1.State) error {
	if len(state.Warnings) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "\nWARNING\tSINCE\tWHAT")
	for _, w := range state.Warnings {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", w.Host, w.Since.Format(time.RFC3339), w.Text)
	}
	if more := state.WarningCount - len(state.Warnings); more > 0 {
		_, _ = fmt.Fprintf(table, "and %d more\n", more)
	}
	return table.Flush()
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// lastRun is a cell of the table: how the host fares in its last run.
func lastRun(h v1.Host) string {
	if h.LastRun == nil {
		return "-"
	}
	text := fmt.Sprintf("%d %s", h.LastRun.ID, h.LastRun.Status)
	if h.OutdatedSince != nil {
		text += ", outdated since " + h.OutdatedSince.Format(time.DateOnly)
	}
	return text
}

// showHost prints all that is known of a host.
func showHost(out io.Writer, h v1.Host) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row(table, "host", h.Hostname)
	row(table, "application", h.Application)
	row(table, "online", yesNo(h.Online)+lastSeen(h))
	row(table, "role", cmp.Or(h.Role, "none"))
	row(table, "labels", labelsLine(h.Labels))
	row(table, "agent version", cmp.Or(h.AgentVersion, "unknown")+protocolText(h.Protocol))
	row(table, "lease", leaseLine(h.Lease))
	row(table, "last run", lastRunLine(h.LastRun))
	if h.OutdatedSince != nil {
		row(table, "outdated since", h.OutdatedSince.Format(time.RFC3339)+": no run has upgraded it since")
	}
	for _, w := range h.Warnings {
		row(table, "warning", w.Text+" (since "+w.Since.Format(time.RFC3339)+")")
	}
	versions := "none reported"
	if h.VersionsAt != nil {
		versions = "reported at " + h.VersionsAt.Format(time.RFC3339)
	}
	row(table, "versions", versions)
	for _, name := range slices.Sorted(maps.Keys(h.Versions)) {
		row(table, "  "+name, h.Versions[name])
	}
	if len(h.Reports) > 0 {
		row(table, "reports", "")
	}
	for i, r := range h.Reports {
		text := reportLine(r)
		if text == "" && i == len(h.Reports)-1 {
			text = "the first report"
		}
		row(table, "  "+r.At.Format(time.RFC3339), cmp.Or(text, "no version has changed"))
	}
	return table.Flush()
}

func lastSeen(h v1.Host) string {
	if h.LastSeen == nil {
		return ", not heard of since the site was started"
	}
	return ", last seen at " + h.LastSeen.Format(time.RFC3339)
}

func labelsLine(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return cmp.Or(strings.Join(parts, ", "), "none")
}

func protocolText(protocol int) string {
	if protocol == 0 {
		return ""
	}
	return fmt.Sprintf(", protocol %d", protocol)
}

func leaseLine(l *v1.HostLease) string {
	switch {
	case l == nil:
		return "no worker has ever held it"
	case l.Vacant:
		return fmt.Sprintf("given back by worker %s at %s, epoch %d", l.Worker, l.Since.Format(time.RFC3339), l.Epoch)
	}
	return fmt.Sprintf("worker %s, process %s, epoch %d, since %s", l.Worker, l.Incarnation, l.Epoch, l.Since.Format(time.RFC3339))
}

func lastRunLine(r *v1.HostRun) string {
	if r == nil {
		return "none"
	}
	text := fmt.Sprintf("%d, %s", r.ID, cmp.Or(r.Result, r.Phase))
	if r.EndedAt != nil {
		text += " at " + r.EndedAt.Format(time.RFC3339)
	}
	return text + "; this host: " + r.Status
}

// reportLine says what a report of versions has changed; empty for nothing.
func reportLine(r v1.VersionReport) string {
	var parts []string
	for _, c := range r.Changes[:min(len(r.Changes), maxShown)] {
		switch {
		case c.From == "":
			parts = append(parts, c.Package+" "+c.To+" is new")
		case c.To == "":
			parts = append(parts, c.Package+" "+c.From+" is gone")
		default:
			parts = append(parts, c.Package+" "+c.From+" to "+c.To)
		}
	}
	if more := r.Changed - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
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
