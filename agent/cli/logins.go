//go:build !worker

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// roles are what a user or an approle may do.
type roles struct {
	Tenant string   `help:"Tenant that it is valid for; * for all." required:""`
	Name   string   `help:"Its name; runs that it starts bear it." required:""`
	Allow  []string `help:"Its roles: admin, operator, approver, viewer, the single rights read, write, start, join, or policies of the tenant." required:"" placeholder:"admin|operator|approver|viewer|read|write|start|join|POLICY"`
}

// known returns why a user or an approle may not name these roles on a site in dir.
func (r *roles) known(dir string) error { return knownRoles(dir, r.Tenant, r.Allow) }

func knownRoles(dir, tenant string, allow []access.Role) error {
	policies, err := site.OpenPolicies(dir)
	if err != nil {
		return err
	}
	if err := policies.Known("allow", tenant, allow); err != nil {
		return misused(err)
	}
	return nil
}

// record is the audit record of a user or an approle that is made or changed.
func (r *roles) record(kind string) v1.AuditRecord {
	return v1.AuditRecord{Tenant: r.Tenant, Action: "write", Object: kind + "/" + r.Name, Detail: "allows " + strings.Join(r.Allow, " ")}
}

// userCommand makes or changes a user.
type userCommand struct {
	siteFolder
	roles
	PasswordFile string `help:"File with the password (default: one is made and printed)." type:"path" placeholder:"FILE"`
}

// Help describes the command.
func (c *userCommand) Help() string {
	return `A user that there is gets these roles and this password, and its logins end: whoever has a token of one logs
in again (osupgrade-agent login).`
}

// Run implements the command.
func (c *userCommand) Run(ctx context.Context, out io.Writer) error {
	if err := c.check(c.Tenant); err != nil {
		return err
	}
	if err := c.known(c.Data); err != nil {
		return err
	}
	logins, err := site.OpenLogins(c.Data)
	if err != nil {
		return err
	}
	var password string
	if c.PasswordFile != "" {
		text, err := readSecret("password-file", c.PasswordFile)
		if err != nil {
			return err
		}
		password = strings.TrimRight(string(text), "\r\n")
	} else if password, err = principal.NewPassword(); err != nil {
		return err
	}
	err = recorded(c.Data, c.record("user"), func(*v1.AuditRecord) error {
		return misused(logins.PutUser(ctx, c.Tenant, c.Name, c.Allow, password, time.Now()))
	})
	if err != nil {
		return err
	}
	if c.PasswordFile == "" {
		_, err = fmt.Fprintln(out, password)
	}
	return err
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
func (c *approleCommand) Run(out io.Writer) error {
	if err := c.check(c.Tenant); err != nil {
		return err
	}
	if err := c.known(c.Data); err != nil {
		return err
	}
	logins, err := site.OpenLogins(c.Data)
	if err != nil {
		return err
	}
	var role principal.Approle
	err = recorded(c.Data, c.record("approle"), func(*v1.AuditRecord) error {
		role, err = logins.Approles.Put(c.Tenant, c.Name, c.Allow, time.Now())
		return misused(err)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, role.RoleID)
	return err
}

// secretIDCommand makes a secret-id.
type secretIDCommand struct {
	credentialFolder
	Tenant string `help:"Tenant of the approle; * for all." required:""`
	Name   string `help:"Name of the approle." required:""`
	Uses   int    `help:"How many logins it is good for; 0 means any number." default:"1"`
	Valid  length `help:"How long it can be used, such as 1h; 0s means until its uses are used up." default:"1h" placeholder:"TIME"`
}

// Run implements the command.
func (c *secretIDCommand) Run(out io.Writer) error {
	if c.Uses < 0 {
		return misusedf("uses: %d is below 0", c.Uses)
	}
	if err := c.exists(); err != nil {
		return err
	}
	logins, err := site.OpenLogins(c.Data)
	if err != nil {
		return err
	}
	role, err := logins.Approles.Get(c.Tenant, c.Name)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("name: tenant %.100s has no approle %.100q; make it with osupgrade-agent credentials approle", c.Tenant, c.Name)
	}
	if err != nil {
		return err
	}
	var text string
	err = recorded(c.Data, v1.AuditRecord{Tenant: c.Tenant, Action: "create", Object: "secret-id", Detail: "of approle " + c.Name}, func(r *v1.AuditRecord) error {
		if text, err = logins.Approles.AddSecret(role, c.Uses, time.Duration(c.Valid), time.Now()); err == nil {
			r.Object += "/" + shortIDOf(principal.ID(text))
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, text)
	return err
}

// logins returns the users and approles of the site.
func (f *credentialFolder) logins() (all []storedCredential, err error) {
	opened, err := site.OpenLogins(f.Data)
	if err != nil {
		return nil, err
	}
	users, err := opened.Users.List()
	if err != nil {
		return nil, err
	}
	for _, u := range users {
		all = append(all, storedCredential{
			kind: "user", owner: u.Name, tenant: u.Tenant, note: strings.Join(u.Allow, " "), id: principal.ID(u.Key), made: u.Since,
			remove: func() error { return opened.RemoveUser(u.Key, nil) }, removed: "its logins have ended",
		}.damagedBy(u.Damage))
	}
	approles, err := opened.Approles.List()
	if err != nil {
		return nil, err
	}
	for _, a := range approles {
		all = append(all, storedCredential{
			kind: "approle", owner: a.Name, tenant: a.Tenant, note: strings.Join(a.Allow, " ") + ", role-id " + a.RoleID, id: principal.ID(a.Key), made: a.Since,
			remove: func() error { return opened.RemoveApprole(a.Key, nil) }, removed: "its logins have ended, and its secret-ids are good for nothing",
		}.damagedBy(a.Damage))
	}
	return all, nil
}

// firstAdmin makes the first user of a site that has none, and returns its password; empty
// if there is a user.
func firstAdmin(ctx context.Context, dir string) (password string, err error) {
	logins, err := site.OpenLogins(dir)
	if err != nil {
		return "", err
	}
	if users, err := logins.Users.List(); err != nil || len(users) > 0 {
		return "", err
	}
	if password, err = principal.NewPassword(); err != nil {
		return "", err
	}
	first := roles{Tenant: access.AnyTenant, Name: adminName, Allow: []access.Role{access.Admin}}
	return password, recorded(dir, first.record("user"), func(*v1.AuditRecord) error {
		return logins.PutUser(ctx, first.Tenant, first.Name, first.Allow, password, time.Now())
	})
}

// adminName is the name of the first user.
const adminName = "admin"
