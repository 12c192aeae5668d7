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
	Create createJoinTokenCommand `cmd:"" help:"Create a token by which one host, or several, can join, and print it."`
	List   listJoinTokensCommand  `cmd:"" help:"List the join tokens, without their secrets."`
	Show   showJoinTokenCommand   `cmd:"" help:"Show a join token and the hosts that have used it."`
	Remove removeJoinTokenCommand `cmd:"" help:"Remove a join token. The hosts that have joined with it stay."`
}

// createJoinTokenCommand makes a join token.
type createJoinTokenCommand struct {
	siteFolder
	confirming
	Tenant      string   `help:"Tenant that the host will belong to." required:""`
	Host        string   `help:"Name of the host that may join, or a pattern such as web-*: hosts that match may." required:""`
	Application string   `help:"Worker application of the host: one of worker-applications in the tenant's os-upgrade configuration." required:""`
	MaxHosts    int      `help:"How many hosts may join, each once with a key of its own: at most 1000." default:"1" placeholder:"N"`
	Label       []string `help:"Label of each host that joins, by which a rollout can select it (repeatable). It wins over the label that the host reports." placeholder:"KEY=VALUE"`
	Approve     bool     `help:"Keep each host waiting until you approve it with approve-host."`
	Valid       string   `help:"How long the token can be used, from 1m to 7d." default:"1h" placeholder:"TIME"`
	Replace     bool     `help:"Let a host join that has a key already: the old key is revoked once the host has connected with the new one."`
}

// Run implements the command.
func (c *createJoinTokenCommand) Run(ctx context.Context, person *console, out io.Writer, log *slog.Logger) error {
	labels, err := parseLabels(c.Label)
	if err != nil {
		return misused(err)
	}
	if c.MaxHosts < 1 {
		return misusedf("max-hosts: %d is out of range; use 1 to %d", c.MaxHosts, v1.MaxJoinHosts)
	}
	wanted := v1.NewJoinToken{
		Host: c.Host, Application: c.Application, MaxHosts: c.MaxHosts, Labels: labels, Approve: c.Approve, Valid: c.Valid, Replace: c.Replace,
	}
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
		host := k.Host
		if k.Replace {
			host += " (replaces its key)"
		}
		_, _ = fmt.Fprintf(table, "%.*s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", shortID, k.ID, k.Tenant, host, k.Application, k.State, at.at(k.Expires), k.By, usedBy(at, k))
	}
	return table.Flush()
}

// usedBy says which host has used a join token; of a token for several, how many have.
func usedBy(at timeFormat, k v1.JoinToken) string {
	switch {
	case k.MaxHosts > 1:
		waiting := 0
		for _, u := range k.UsedBy {
			if u.Status == v1.JoinWaiting {
				waiting++
			}
		}
		used := fmt.Sprintf("%d of %d", len(k.UsedBy), k.MaxHosts)
		if waiting > 0 {
			used += fmt.Sprintf(", %d waiting", waiting)
		}
		return used
	case len(k.UsedBy) == 0:
		return ""
	}
	u := k.UsedBy[0]
	used := u.Host + " on " + at.at(u.At)
	if u.Status != v1.JoinJoined {
		used += " (" + u.Status + ")"
	}
	return used
}

// joinTokens returns the join tokens, those that expire first at the top.
func joinTokens(ctx context.Context, api *siteClient) ([]v1.JoinToken, error) {
	all, err := api.JoinTokens(ctx)
	slices.SortFunc(all, func(a, b v1.JoinToken) int { return a.Expires.Compare(b.Expires) })
	return all, answered(err)
}

// joinTokenID chooses one join token.
type joinTokenID struct {
	ID string `arg:"" help:"Its id, as credentials join-token list shows it."`
}

// token returns the token.
func (c joinTokenID) token(ctx context.Context, api *siteClient, place string) (v1.JoinToken, error) {
	if len(c.ID) < leastID {
		return v1.JoinToken{}, misusedf("id: %q is too short; use at least %d characters of what credentials join-token list shows", c.ID, leastID)
	}
	all, err := joinTokens(ctx, api)
	if err != nil {
		return v1.JoinToken{}, err
	}
	all = slices.DeleteFunc(all, func(k v1.JoinToken) bool { return !strings.HasPrefix(k.ID, c.ID) })
	switch {
	case len(all) == 0:
		return v1.JoinToken{}, fmt.Errorf("id: %.200q is the id of no join token in %s; see credentials join-token list", c.ID, place)
	case len(all) > 1:
		return v1.JoinToken{}, misusedf("id: %q begins the ids of %d join tokens; use more of it", c.ID, len(all))
	}
	return all[0], nil
}

// showJoinTokenCommand shows one of them.
type showJoinTokenCommand struct {
	siteAPI
	joinTokenID
	timeFlags
}

// Run implements the command.
func (c *showJoinTokenCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	k, err := c.token(ctx, api, c.place())
	if err != nil {
		return err
	}
	to := newTerminal(out)
	showJoinToken(to, c.format(), k)
	return to.err
}

func showJoinToken(to *terminal, at timeFormat, k v1.JoinToken) {
	var f facts
	f.add("id", k.ID)
	if k.Damage != "" {
		f.add("damage", k.Damage)
		f.print(to)
		return
	}
	f.add("tenant", k.Tenant)
	f.add("for", fmt.Sprintf("host %s, %d of %d", k.Host, len(k.UsedBy), k.MaxHosts))
	f.add("application", k.Application)
	if len(k.Labels) > 0 {
		f.add("labels", labelsLine(k.Labels))
	}
	if k.Approve {
		f.add("approval", "each host waits for it")
	}
	if k.Replace {
		f.add("replaces", "the key that a host has already")
	}
	f.add("state", k.State)
	f.add("expires", at.at(k.Expires))
	if k.By != "" {
		f.add("made by", k.By)
	}
	f.print(to)
	if len(k.UsedBy) > 0 {
		to.line("")
		joinUses(to, at, k.UsedBy)
	}
}

// joinUses prints which hosts have used a join token.
func joinUses(to *terminal, at timeFormat, all []v1.JoinUse) {
	var t table
	t.add("HOST", "STATUS", "AT", "FROM", "DECIDED BY", "KEY")
	for _, u := range all {
		t.add(u.Host, u.Status, at.at(u.At), u.From, u.By, u.PublicKey)
	}
	t.print(to)
}

// removeJoinTokenCommand removes one of them.
type removeJoinTokenCommand struct {
	siteAPI
	joinTokenID
	timeFlags
}

// Run implements the command.
func (c *removeJoinTokenCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	k, err := c.token(ctx, api, c.place())
	if err != nil {
		return err
	}
	if err := api.RemoveJoinToken(ctx, cmp.Or(k.Tenant, client.OfAll), k.ID); err != nil {
		return fmt.Errorf("cannot remove %s: %w", c.ID, answered(err))
	}
	to := newTerminal(out)
	to.linef("Removed the join token for %s of tenant %s: nobody can join with it.", k.Host, k.Tenant)
	if len(k.UsedBy) > 0 {
		to.line("These hosts have used it. Those that joined stay; those that waited for approval are not let in.")
		joinUses(to, c.format(), k.UsedBy)
		to.line("To remove one that should not be in: osupgrade-agent credentials remove KEY, and osupgrade-agent forget HOST.")
	}
	return to.err
}
