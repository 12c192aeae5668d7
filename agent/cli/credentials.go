//go:build !worker

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// credentialsCommand makes what a client or a host proves itself with.
type credentialsCommand struct {
	Token     tokenCommand            `cmd:"" help:"Make a token for the REST API and print it."`
	User      userCommand             `cmd:"" help:"Make a user, or change its roles and password."`
	Approle   approleCommand          `cmd:"" help:"Make an approle, with which a program logs in, or change its roles."`
	SecretID  secretIDCommand         `cmd:"" name:"secret-id" help:"Make a secret-id of an approle and print it."`
	Host      keyCommand              `cmd:"" help:"Make a key for a host and write it to a file."`
	JoinToken joinTokenCommand        `cmd:"" help:"Make, list and remove tokens with which hosts join."`
	List      listCredentialsCommand  `cmd:"" help:"List the tokens, users, approles and host keys, without their secrets."`
	Rotate    rotateTokenCommand      `cmd:"" help:"Make another token in place of one, and print it. The old one is withdrawn."`
	Remove    removeCredentialCommand `cmd:"" help:"Withdraw a token, a user, an approle or a host key. Whoever is connected with the key is disconnected within a second."`
}

// tokenCommand makes a token.
type tokenCommand struct {
	siteFolder
	Tenant string   `help:"Tenant for which it is valid; * for all." required:""`
	Name   string   `help:"Name of its owner, shown with the runs that it starts." required:""`
	Allow  []string `help:"What it allows: roles (admin, operator, approver, viewer, or calendar for the calendar feed, also in a URL), single rights (read, write, start, or join to create join tokens), or policies of the tenant." default:"read,write,start" placeholder:"admin|operator|approver|viewer|calendar|read|write|start|join|POLICY"`
	Valid  length   `help:"How long it is valid, such as 90d or 12h (default: until removed)." placeholder:"TIME"`
}

// Run implements the command.
func (c *tokenCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := c.misused(principal.Token{Name: c.Name, Tenant: c.Tenant, Allow: c.Allow}); err != nil {
		return misused(err)
	}
	api, err := c.openFor(ctx, c.Tenant, log)
	if err != nil {
		return err
	}
	defer api.done()
	wanted := v1.NewToken{Name: c.Name, Allow: c.Allow}
	if c.Valid > 0 {
		wanted.Valid = c.Valid.String()
	}
	made, err := api.MakeToken(ctx, c.Tenant, wanted)
	if err != nil {
		return answered(err)
	}
	_, err = fmt.Fprintln(out, made.Token)
	return err
}

// misused validates the values of a token.
func (c *tokenCommand) misused(token principal.Token) error {
	if err := token.Check(); err != nil || token.Tenant == access.AnyTenant {
		return err
	}
	if err := checkName("tenant", c.Tenant, "a tenant"); err != nil {
		return fmt.Errorf("%w, or * for all tenants", err)
	}
	return nil
}

// keyCommand makes a host's key.
type keyCommand struct {
	siteFolder
	Tenant  string `help:"Tenant that the host belongs to." required:""`
	Host    string `help:"Name of the host." required:""`
	Replace bool   `help:"Replace the key that the host has: it is revoked once the host has connected with the new one."`
	Out     string `help:"File to write the key to; move it to the host and keep no copy." required:"" type:"path" placeholder:"FILE"`
}

// Run implements the command.
func (c *keyCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := checkName("tenant", c.Tenant, "a tenant"); err != nil {
		return misused(err)
	}
	if !names.ValidHost(c.Host) {
		return misusedf("host: %.200q is not a host name; use letters, digits, \"-\", \"_\" and \".\"", c.Host)
	}
	api, err := c.openFor(ctx, c.Tenant, log)
	if err != nil {
		return err
	}
	defer api.done()
	key, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	public, err := key.PublicKey()
	if err != nil {
		return err
	}
	// The file goes first: a key that is let in but lost would be no use.
	file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("out: %w", err)
	}
	seed, err := key.Seed()
	if err == nil {
		_, err = file.Write(append(seed, '\n'))
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = durable.SyncFolder(filepath.Dir(c.Out))
	}
	if err == nil {
		err = api.AddHostKey(ctx, c.Tenant, c.Host, v1.NewHostKey{PublicKey: public, Replace: c.Replace})
		if client.HasStatus(err, http.StatusConflict) && !c.Replace {
			err = fmt.Errorf("%w; give --replace for a new one, or withdraw it with credentials remove", answered(err))
		}
	}
	if err != nil {
		// A file without a key would stand in the way of the next try.
		return fmt.Errorf("cannot write a key to %s: %w", c.Out, errors.Join(answered(err), os.Remove(c.Out)))
	}
	_, err = fmt.Fprintf(out, "Wrote the key of host %s to %s.\n", c.Host, c.Out)
	return err
}
