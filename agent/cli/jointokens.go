//go:build !worker

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/join"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// joinTokenCommand are the commands for join tokens.
type joinTokenCommand struct {
	Create createJoinTokenCommand `cmd:"" help:"Make a token with which one host can join once, and print it."`
	List   listJoinTokensCommand  `cmd:"" help:"List the join tokens, without their secrets."`
	Remove removeJoinTokenCommand `cmd:"" help:"Remove a join token. A host that has joined with it stays."`
}

// createJoinTokenCommand makes a join token.
type createJoinTokenCommand struct {
	siteFolder
	Tenant      string `help:"Tenant that the host will belong to." required:""`
	Host        string `help:"Name of the host that may join, or a pattern such as web-* of which one may." required:""`
	Application string `help:"Worker application of the host: one of worker-applications in the tenant's os-upgrade configuration." required:""`
	Valid       string `help:"How long the token can be used, such as 1h or 2d." default:"1h" placeholder:"TIME"`
	Replace     bool   `help:"Let a host join that has a key already: that one is withdrawn once the host has connected with the new one."`
	CAFile      string `help:"Certificates that the host is to trust for the site, PEM, as in serve --ca-file (default: those of osupgrade-agent init, if it was run)." name:"ca-file" type:"path" env:"OSUPGRADE_CA_FILE" placeholder:"FILE"`
}

// Run implements the command.
func (c *createJoinTokenCommand) Run(out io.Writer) error {
	wanted := v1.NewJoinToken{Host: c.Host, Application: c.Application, Valid: c.Valid, Replace: c.Replace}
	if err := checkName("tenant", c.Tenant, "a tenant"); err != nil {
		return misused(err)
	}
	if wrong := wanted.Validate(); len(wrong) > 0 {
		return misused(wrong)
	}
	if err := c.check(c.Tenant); err != nil {
		return err
	}
	valid, err := wanted.Duration()
	if err != nil {
		return misused(err)
	}
	ca, err := site.ReadCA(c.Data, c.CAFile)
	if err != nil {
		return err
	}
	var fingerprint string
	if len(ca) > 0 {
		if fingerprint, err = v1.Fingerprint(ca); err != nil {
			return fmt.Errorf("ca-file: %w", err)
		}
	}
	tokens, err := site.OpenJoinTokens(c.Data, nil)
	if err != nil {
		return err
	}
	now := time.Now()
	token := join.Token{Tenant: c.Tenant, Host: c.Host, Application: c.Application, Expires: now.Add(valid), Replace: c.Replace, By: whoami()}
	var secret string
	err = recorded(c.Data, v1.AuditRecord{Tenant: c.Tenant, Action: "create", Object: "join-token", Detail: token.About()}, func(r *v1.AuditRecord) error {
		var id string
		if secret, id, err = tokens.Add(token, now); err == nil {
			r.Object += "/" + shortIDOf(id)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, join.Text(secret, fingerprint))
	return err
}

// whoami is the name of who calls, for people.
func whoami() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// listJoinTokensCommand lists the join tokens.
type listJoinTokensCommand struct{ credentialFolder }

// Run implements the command.
func (c *listJoinTokensCommand) Run(out io.Writer) error {
	all, err := c.joinTokens()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tTENANT\tHOST\tAPPLICATION\tSTATE\tEXPIRES\tMADE BY\tUSED BY")
	for _, k := range all {
		if k.Damage != nil {
			_, _ = fmt.Fprintf(table, "%.*s\t?\t?\t?\t%s\n", shortID, k.ID, k.Damage)
			continue
		}
		host, used := k.Host, ""
		if k.Replace {
			host += " (replaces its key)"
		}
		if k.Used != nil {
			used = k.Used.Host + " on " + k.Used.At.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(table, "%.*s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", shortID, k.ID, k.Tenant, host, k.Application, k.State(time.Now()), k.Expires.UTC().Format(time.RFC3339), k.By, used)
	}
	return table.Flush()
}

// joinTokens returns the join tokens, those that expire first at the top.
func (f *credentialFolder) joinTokens() ([]join.Kept, error) {
	if err := f.exists(); err != nil {
		return nil, err
	}
	tokens, err := site.OpenJoinTokens(f.Data, nil)
	if err != nil {
		return nil, err
	}
	all, err := tokens.List()
	slices.SortFunc(all, func(a, b join.Kept) int { return a.Expires.Compare(b.Expires) })
	return all, err
}

// removeJoinTokenCommand removes one of them.
type removeJoinTokenCommand struct {
	credentialFolder
	ID string `arg:"" help:"Its id, as credentials join-token list shows it."`
}

// Run implements the command.
func (c *removeJoinTokenCommand) Run(out io.Writer) error {
	if len(c.ID) < leastID {
		return misusedf("id: %q is too short; use at least %d characters of what credentials join-token list shows", c.ID, leastID)
	}
	all, err := c.joinTokens()
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(k join.Kept) bool { return !strings.HasPrefix(k.ID, c.ID) })
	switch {
	case len(all) == 0:
		return fmt.Errorf("id: %.200q is the id of no join token in %s; see credentials join-token list", c.ID, c.Data)
	case len(all) > 1:
		return misusedf("id: %q begins the ids of %d join tokens; use more of it", c.ID, len(all))
	}
	tokens, err := site.OpenJoinTokens(c.Data, nil)
	if err != nil {
		return err
	}
	record := v1.AuditRecord{Tenant: all[0].Tenant, Action: "delete", Object: "join-token/" + shortIDOf(all[0].ID)}
	err = recorded(c.Data, record, func(*v1.AuditRecord) error {
		if err := tokens.Remove(all[0].ID); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot remove %s: %w", c.ID, err)
	}
	_, err = fmt.Fprintf(out, "Removed the join token for %s of tenant %s: nobody can join with it. A host that has is let in as before.\n", all[0].Host, all[0].Tenant)
	return err
}
