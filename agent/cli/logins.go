//go:build !worker

package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// roles are what a user or an approle may do.
type roles struct {
	Tenant string   `help:"Tenant for which it is valid; * for all." required:""`
	Name   string   `help:"Its name, shown with the runs that it starts." required:""`
	Allow  []string `help:"What it may do: roles (admin, operator, approver, viewer), single rights (read, write, start, join), or policies of the tenant." required:"" placeholder:"admin|operator|approver|viewer|read|write|start|join|POLICY"`
}

// userCommand makes or changes a user.
type userCommand struct {
	siteFolder
	roles
	PasswordFile string `help:"File with the password, or - to ask at the terminal or read standard input (default: create one and print it)." type:"path" placeholder:"FILE"`
}

// Help describes the command.
func (c *userCommand) Help() string {
	return `A user that there is gets these roles and this password, and its logins end: whoever has a token of one logs
in again (osupgrade-agent login).`
}

// Run implements the command.
func (c *userCommand) Run(ctx context.Context, out io.Writer, person *console, log *slog.Logger) error {
	api, err := c.openFor(ctx, c.Tenant, log)
	if err != nil {
		return err
	}
	defer api.done()
	user := v1.User{Name: c.Name, TokenPolicies: c.Allow}
	if user.Password, err = c.password(person); err != nil {
		return err
	}
	if err := api.SetUser(ctx, c.Tenant, user); err != nil {
		return answered(err)
	}
	if c.PasswordFile == "" {
		_, err = fmt.Fprintln(out, user.Password)
	}
	return err
}

// password reads the password, or makes one.
func (c *userCommand) password(person *console) (string, error) {
	if c.PasswordFile == "" {
		return principal.NewPassword()
	}
	what := fmt.Sprintf("new password of %.63s", c.Name)
	text, err := readPassphrase(what, "password-file", c.PasswordFile, person)
	if err == nil && c.PasswordFile == "-" {
		err = askAgain(person, what, "password-file", text)
	}
	return string(text), err
}

// approleCommand makes or changes an approle.
type approleCommand struct {
	siteFolder
	roles
}

// Help describes the command.
func (c *approleCommand) Help() string {
	return `It prints the role-id, which is no secret. A program logs in with it and a secret-id, at /v1/approle-login:
osupgrade-agent credentials secret-id makes one.`
}

// Run implements the command.
func (c *approleCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.openFor(ctx, c.Tenant, log)
	if err != nil {
		return err
	}
	defer api.done()
	role, err := api.SetApprole(ctx, c.Tenant, v1.Approle{Name: c.Name, TokenPolicies: c.Allow})
	if err != nil {
		return answered(err)
	}
	_, err = fmt.Fprintln(out, role.RoleID)
	return err
}

// secretIDCommand makes a secret-id.
type secretIDCommand struct {
	siteAPI
	Tenant string `help:"Tenant of the approle; * for all." required:""`
	Name   string `help:"Name of the approle." required:""`
	Uses   int    `help:"How many logins it allows; 0 means any number." default:"1"`
	Valid  length `help:"How long it can be used, such as 1h; 0s means until --uses is used up." default:"1h" placeholder:"TIME"`
}

// Run implements the command.
func (c *secretIDCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if c.Uses < 0 {
		return misusedf("uses: %d is below 0", c.Uses)
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	made, err := api.NewSecretID(ctx, c.Tenant, c.Name, v1.NewSecretID{SecretIDNumUses: &c.Uses, SecretIDTTL: c.Valid.String()})
	if client.Missing(err) {
		return fmt.Errorf("name: tenant %.100s has no approle %.100q; make it with osupgrade-agent credentials approle", c.Tenant, c.Name)
	}
	if err != nil {
		return answered(err)
	}
	_, err = fmt.Fprintln(out, made.SecretID)
	return err
}

// firstAdmin makes the first user of a site that has none, and returns its password; empty
// if there is a user.
func firstAdmin(ctx context.Context, api *client.Client) (password string, err error) {
	all, err := api.Credentials(ctx)
	if err != nil || slices.ContainsFunc(all, func(k v1.Credential) bool { return k.Kind == v1.UserCredential }) {
		return "", err
	}
	if password, err = principal.NewPassword(); err != nil {
		return "", err
	}
	return password, api.SetUser(ctx, access.AnyTenant, v1.User{Name: adminName, TokenPolicies: []access.Role{access.Admin}, Password: password})
}

// adminName is the name of the first user.
const adminName = "admin"
