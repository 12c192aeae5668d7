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

// shortID is how much of an id is shown, and leastID how much of it must be given.
const shortID, leastID = 12, 6

// listCredentialsCommand lists the tokens, users, approles and host keys that a site accepts.
type listCredentialsCommand struct {
	siteAPI
	timeFlags
	listOutput
}

// Run implements the command.
func (c *listCredentialsCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	all, err := api.Credentials(ctx)
	if err != nil {
		return answered(err)
	}
	return c.Output.show(out, append([]v1.Credential{}, all...), func(*terminal) error { return listCredentials(out, c.format(), all) })
}

func listCredentials(out io.Writer, at timeFormat, all []v1.Credential) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "ID\tKIND\tTENANT\tOWNER\tMADE\tLAST USED\tALLOWS")
	for _, k := range all {
		used := "-"
		if k.LastUsed != nil {
			used = at.at(*k.LastUsed)
		}
		_, _ = fmt.Fprintf(table, "%.*s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			shortID, k.ID, k.Kind, cmp.Or(k.Tenant, "?"), cmp.Or(k.Owner, "?"), at.at(k.CreationTime), used, allowed(at, k))
	}
	return table.Flush()
}

// allowed says what a credential allows, and until when.
func allowed(at timeFormat, k v1.Credential) string {
	text := strings.Join(k.Allow, " ")
	switch {
	case k.Damage != "":
		return k.Damage
	case k.Login != "":
		text = "login of the " + k.Login + ", " + text
	case k.RoleID != "":
		text += ", role-id " + k.RoleID
	}
	if k.Expires != nil {
		text += " until " + at.at(*k.Expires)
	}
	return strings.TrimSpace(text)
}

// removeCredentialCommand removes a token, a user, an approle or a host key.
type removeCredentialCommand struct {
	siteAPI
	ID string `arg:"" help:"Id of the token, user, approle or host key, as credentials list shows it."`
}

// find returns the one credential whose id begins so.
func (c *siteAPI) find(ctx context.Context, api *siteClient, id string) (found v1.Credential, err error) {
	all, err := api.Credentials(ctx)
	if err != nil {
		return found, answered(err)
	}
	all = slices.DeleteFunc(all, func(k v1.Credential) bool { return !strings.HasPrefix(k.ID, id) })
	switch {
	case len(all) == 0:
		return found, fmt.Errorf("id: %.200q is the id of no token, user, approle and host key in %s; see credentials list", id, c.place())
	case len(all) > 1:
		return found, misusedf("id: %q begins the ids of %d credentials; use more of it", id, len(all))
	}
	return all[0], nil
}

// longEnough returns what is wrong with the beginning of an id.
func longEnough(id string) error {
	if len(id) < leastID {
		return misusedf("id: %q is too short; use at least %d characters of what credentials list shows", id, leastID)
	}
	return nil
}

// removed tells what follows from the removal of a credential of each kind.
var removed = map[string]string{
	v1.TokenCredential:   "the next request with it is refused",
	v1.UserCredential:    "its logins have ended",
	v1.ApproleCredential: "its logins have ended, and its secret-ids are good for nothing",
	v1.KeyCredential:     "a worker that is connected with it is disconnected within a second",
}

// Run implements the command.
func (c *removeCredentialCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := longEnough(c.ID); err != nil {
		return err
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	k, err := c.find(ctx, api, c.ID)
	if err != nil {
		return err
	}
	if err := api.RemoveCredential(ctx, cmp.Or(k.Tenant, client.OfAll), k.ID); err != nil {
		return fmt.Errorf("cannot remove %s: %w", c.ID, answered(err))
	}
	_, err = fmt.Fprintf(out, "Removed the %s of %s of tenant %s: %s.\n", k.Kind, cmp.Or(k.Owner, "?"), cmp.Or(k.Tenant, "?"), removed[k.Kind])
	return err
}

// rotateTokenCommand makes a token in place of another.
type rotateTokenCommand struct {
	siteAPI
	ID      string `arg:"" help:"Id of the token, as credentials list shows it."`
	Overlap length `help:"How long the old token stays valid, such as 1h, so that its users have time to switch (default: not at all)." placeholder:"TIME"`
}

// Help describes the command.
func (c *rotateTokenCommand) Help() string {
	return `The new token has the name, tenant, roles and end of the old one. The key of a host is rotated on the
host itself: osupgrade-agent worker rotate-key.`
}

// Run implements the command.
func (c *rotateTokenCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := longEnough(c.ID); err != nil {
		return err
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	k, err := c.find(ctx, api, c.ID)
	if err != nil {
		return err
	}
	switch k.Kind {
	case v1.TokenCredential:
	case v1.KeyCredential:
		return misusedf("id: %q is the id of a key, which is rotated on its host: osupgrade-agent worker rotate-key", c.ID)
	default:
		return misusedf("id: %q is the id of a %s; credentials %s gives it another secret", c.ID, k.Kind, map[string]string{"user": "user", "approle": "secret-id"}[k.Kind])
	}
	var wanted v1.Rotation
	if c.Overlap > 0 {
		wanted.Overlap = c.Overlap.String()
	}
	made, err := api.RotateToken(ctx, cmp.Or(k.Tenant, client.OfAll), k.ID, wanted)
	if err != nil {
		return fmt.Errorf("cannot rotate %s: %w", c.ID, answered(err))
	}
	_, err = fmt.Fprintln(out, made.Token)
	return err
}
