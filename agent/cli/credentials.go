//go:build !worker

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// credentialsCommand makes what a client or a host proves itself with. It
// works on the site's folder, also while the site runs.
type credentialsCommand struct {
	Token       tokenCommand            `cmd:"" help:"Make a token for the REST API and print it."`
	User        userCommand             `cmd:"" help:"Make a user, or change its roles and password."`
	Approle     approleCommand          `cmd:"" help:"Make an approle, with which a program logs in, or change its roles."`
	SecretID    secretIDCommand         `cmd:"" name:"secret-id" help:"Make a secret-id of an approle and print it."`
	Certificate certificateCommand      `cmd:"" help:"Make a client certificate for a user and write it to files."`
	Revoke      revokeCommand           `cmd:"" help:"Revoke a client certificate."`
	Host        keyCommand              `cmd:"" help:"Make a key for a host and write it to a file."`
	JoinToken   joinTokenCommand        `cmd:"" help:"Make, list and remove tokens with which hosts join."`
	List        listCredentialsCommand  `cmd:"" help:"List the tokens, users, approles and host keys, without their secrets."`
	Rotate      rotateTokenCommand      `cmd:"" help:"Make another token in place of one, and print it. The old one is withdrawn."`
	Remove      removeCredentialCommand `cmd:"" help:"Withdraw a token, a user, an approle or a host key. Whoever is connected with the key is disconnected within a second."`
}

// siteFolder is the folder of the site that a credential is for. A mistyped one
// would be made, and the credential be good for nothing.
type siteFolder struct {
	Data    string `help:"The site's folder." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`
	NewSite bool   `help:"The site has not run in this folder yet, or not with this tenant: prepare it before."`
}

// check tells whether a site has run in the folder, with a tenant.
func (f *siteFolder) check(tenant string) error {
	if err := readable(f.Data); err != nil {
		return err
	}
	if f.NewSite {
		return nil
	}
	const right = "name the folder of osupgrade-agent serve --data, or give --new-site to prepare one that has not run yet"
	store := filepath.Join(f.Data, "store")
	switch _, err := os.ReadDir(store); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("data: no site has run in %s; %s", f.Data, right)
	case err != nil:
		return fmt.Errorf("data: %w", err)
	case tenant == access.AnyTenant:
		return nil
	}
	served, err := site.Served(f.Data)
	if err != nil {
		return err
	}
	switch {
	case len(served) == 0:
		return fmt.Errorf("tenant: the site in %s has no tenants yet; make %q with osupgrade-agent tenant add, or %s", f.Data, tenant, right)
	case !slices.Contains(served, tenant):
		return fmt.Errorf("tenant: the site in %s does not serve %q; use %s, or give --new-site and add it to the tenants of osupgrade-agent serve",
			f.Data, tenant, strings.Join(served, " or "))
	}
	return nil
}

// readable tells whether the site could read what this user writes into its folder.
func readable(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return nil //nolint:nilerr // whoever uses the folder says what is wrong with it
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if own := os.Geteuid(); !known || own != 0 || int(owner.Uid) == own {
		return nil
	}
	name := strconv.FormatUint(uint64(owner.Uid), 10)
	if u, err := user.LookupId(name); err == nil {
		name = u.Username
	}
	return fmt.Errorf("data: %s belongs to user %s, who could not read what root writes there; run it as sudo -u %s", dir, name, name)
}

// tokenCommand makes a token.
type tokenCommand struct {
	siteFolder
	Tenant string   `help:"Tenant that it is valid for; * for all." required:""`
	Name   string   `help:"Name of its owner; runs that it starts bear this name." required:""`
	Allow  []string `help:"What it allows: the roles admin, operator, approver, viewer, calendar (the calendar feed, also in a URL), or the single rights read, write, start, join (make join tokens), or policies of the tenant." default:"read,write,start" placeholder:"admin|operator|approver|viewer|calendar|read|write|start|join|POLICY"`
	Valid  length   `help:"How long it is valid, such as 90d or 12h (default: until it is removed)." placeholder:"TIME"`
}

// Run implements the command.
func (c *tokenCommand) Run(out io.Writer) error {
	token := principal.Token{Name: c.Name, Tenant: c.Tenant, Allow: c.Allow}
	if c.Valid > 0 {
		end := time.Now().Add(time.Duration(c.Valid)).UTC().Truncate(time.Second)
		token.Expires = &end
	}
	if err := c.misused(token); err != nil {
		return misused(err)
	}
	if err := c.check(c.Tenant); err != nil {
		return err
	}
	if err := knownRoles(c.Data, c.Tenant, c.Allow); err != nil {
		return err
	}
	tokens, err := site.OpenTokens(c.Data)
	if err != nil {
		return err
	}
	var text string
	err = recorded(c.Data, v1.AuditRecord{Tenant: c.Tenant, Action: "create", Object: "token", Detail: token.About()}, func(r *v1.AuditRecord) error {
		if text, err = tokens.Add(token); err == nil {
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
	Replace bool   `help:"The host may have a key already: that one is withdrawn once the host has connected with the new one."`
	Out     string `help:"File to write the key to; bring it to the host and keep it nowhere else." required:"" type:"path" placeholder:"FILE"`
}

// Run implements the command.
func (c *keyCommand) Run(out io.Writer) error {
	if err := checkName("tenant", c.Tenant, "a tenant"); err != nil {
		return misused(err)
	}
	if !names.ValidHost(c.Host) {
		return misusedf("host: %.200q is not a host name; use letters, digits, \"-\", \"_\" and \".\"", c.Host)
	}
	if err := c.check(c.Tenant); err != nil {
		return err
	}
	hosts, err := site.OpenHosts(c.Data)
	if err != nil {
		return err
	}
	// The file goes first: a key that is let in but lost would be no use.
	file, err := os.OpenFile(c.Out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("out: %w", err)
	}
	id, add := natsd.Identity{Tenant: c.Tenant, Host: c.Host}, hosts.Add
	if c.Replace {
		add = hosts.Replace
	}
	record := v1.AuditRecord{Tenant: c.Tenant, Action: "add-key", Object: "host/" + c.Host}
	if c.Replace {
		record.Detail = "may replace a key"
	}
	var seed []byte
	err = recorded(c.Data, record, func(*v1.AuditRecord) error {
		seed, err = add(id)
		return err
	})
	if errors.Is(err, natsd.ErrSecondKey) {
		err = fmt.Errorf("%w; give --replace for a new one, or withdraw it with credentials remove", err)
	}
	if err == nil {
		_, err = file.Write(append(seed, '\n'))
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		// A file without a key would stand in the way of the next try.
		return fmt.Errorf("cannot write a key to %s: %w", c.Out, errors.Join(err, os.Remove(c.Out)))
	}
	if err := durable.SyncFolder(filepath.Dir(c.Out)); err != nil {
		return fmt.Errorf("cannot write a key to %s: %w", c.Out, err)
	}
	_, err = fmt.Fprintf(out, "Wrote the key of host %s to %s.\n", c.Host, c.Out)
	return err
}
