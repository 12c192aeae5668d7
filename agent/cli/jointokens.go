//go:build !worker

package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// joinTokenCommand are the commands for join tokens.
type joinTokenCommand struct {
	Create createJoinTokenCommand `cmd:"" help:"Create a token by which one host can join once, and print it."`
	List   listJoinTokensCommand  `cmd:"" help:"List the join tokens, without their secrets."`
	Remove removeJoinTokenCommand `cmd:"" help:"Remove a join token. A host that has joined with it stays."`
}

// createJoinTokenCommand makes a join token.
type createJoinTokenCommand struct {
	siteFolder
	confirming
	Tenant      string `help:"Tenant that the host will belong to." required:""`
	Host        string `help:"Name of the host that may join, or a pattern such as web-*: one host that matches may." required:""`
	Application string `help:"Worker application of the host: one of worker-applications in the tenant's os-upgrade configuration." required:""`
	Valid       string `help:"How long the token can be used, such as 1h or 2d." default:"1h" placeholder:"TIME"`
	Replace     bool   `help:"Let a host join that has a key already: the old key is revoked once the host has connected with the new one."`
}

// Run implements the command.
func (c *createJoinTokenCommand) Run(ctx context.Context, person *console, out io.Writer, log *slog.Logger) error {
	wanted := v1.NewJoinToken{Host: c.Host, Application: c.Application, Valid: c.Valid, Replace: c.Replace}
	if err := checkName("tenant", c.Tenant, "a tenant"); err != nil {
		return misused(err)
	}
	if wrong := wanted.Validate(); len(wrong) > 0 {
		return misused(wrong)
	}
	api, err := c.openFor(ctx, c.Tenant, log)
	if err != nil {
		return err
	}
	defer api.done()
	if err := c.confirm(person, c.unknownApplication(ctx, api)); err != nil {
		return err
	}
	made, err := api.NewJoinToken(ctx, c.Tenant, wanted)
	if err != nil {
		return answered(err)
	}
	_, err = fmt.Fprintln(out, made.Token)
	return err
}

// unknownApplication says that the tenant does not have the application; empty if it has, if
// it has none yet, and if nobody can tell.
func (c *createJoinTokenCommand) unknownApplication(ctx context.Context, api *siteClient) string {
	if c.Yes || api.stopped {
		return ""
	}
	config, _, err := api.Config(ctx, c.Tenant)
	if err != nil && !client.Missing(err) {
		return ""
	}
	hosts, err := api.Hosts(ctx, c.Tenant, "")
	if err != nil {
		return ""
	}
	return unknownApplication(c.Tenant, c.Application, config, hosts)
}

func unknownApplication(tenant, name string, config v1.OSUpgrade, hosts []v1.Host) string {
	var listed, have []string
	for _, a := range config.WorkerApplications {
		listed = append(listed, a.Name)
	}
	for _, h := range hosts {
		have = append(have, h.Application)
	}
	slices.Sort(have)
	have = slices.Compact(have)
	if slices.Contains(listed, name) || slices.Contains(have, name) || len(listed)+len(have) == 0 {
		return ""
	}
	return fmt.Sprintf("tenant %s has no application %s: its configuration lists %s, its hosts have %s",
		tenant, name, cmp.Or(someOf(listed), "none"), cmp.Or(someOf(have), "none"))
}

// listJoinTokensCommand lists the join tokens.
type listJoinTokensCommand struct {
	siteAPI
	timeFlags
	listOutput
}

// Run implements the command.
func (c *listJoinTokensCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	all, err := joinTokens(ctx, api)
	if err != nil {
		return err
	}
	return c.Output.show(out, append([]v1.JoinToken{}, all...), func(*terminal) error { return listJoinTokens(out, c.format(), all) })
}

func listJoinTokens(out io.Writer, at timeFormat, all []v1.JoinToken) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tTENANT\tHOST\tAPPLICATION\tSTATE\tEXPIRES\tMADE BY\tUSED BY")
	for _, k := range all {
		if k.Damage != "" {
			_, _ = fmt.Fprintf(table, "%.*s\t?\t?\t?\t%s\n", shortID, k.ID, k.Damage)
			continue
		}
		host, used := k.Host, ""
		if k.Replace {
			host += " (replaces its key)"
		}
		if k.UsedAt != nil {
			used = k.UsedBy + " on " + at.at(*k.UsedAt)
		}
		_, _ = fmt.Fprintf(table, "%.*s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", shortID, k.ID, k.Tenant, host, k.Application, k.State, at.at(k.Expires), k.By, used)
	}
	return table.Flush()
}

// joinTokens returns the join tokens, those that expire first at the top.
func joinTokens(ctx context.Context, api *siteClient) ([]v1.JoinToken, error) {
	all, err := api.JoinTokens(ctx)
	slices.SortFunc(all, func(a, b v1.JoinToken) int { return a.Expires.Compare(b.Expires) })
	return all, answered(err)
}

// removeJoinTokenCommand removes one of them.
type removeJoinTokenCommand struct {
	siteAPI
	ID string `arg:"" help:"Its id, as credentials join-token list shows it."`
}

// Run implements the command.
func (c *removeJoinTokenCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if len(c.ID) < leastID {
		return misusedf("id: %q is too short; use at least %d characters of what credentials join-token list shows", c.ID, leastID)
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	all, err := joinTokens(ctx, api)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(k v1.JoinToken) bool { return !strings.HasPrefix(k.ID, c.ID) })
	switch {
	case len(all) == 0:
		return fmt.Errorf("id: %.200q is the id of no join token in %s; see credentials join-token list", c.ID, c.place())
	case len(all) > 1:
		return misusedf("id: %q begins the ids of %d join tokens; use more of it", c.ID, len(all))
	}
	if err := api.RemoveJoinToken(ctx, cmp.Or(all[0].Tenant, client.OfAll), all[0].ID); err != nil {
		return fmt.Errorf("cannot remove %s: %w", c.ID, answered(err))
	}
	_, err = fmt.Fprintf(out, "Removed the join token for %s of tenant %s: nobody can join with it. A host that has is let in as before.\n", all[0].Host, all[0].Tenant)
	return err
}
