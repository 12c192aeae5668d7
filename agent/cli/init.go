//go:build !worker

package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// initCommand makes the first admin of a site, and the certificate of one that has none
// from elsewhere.
type initCommand struct {
	Data string `help:"The site's folder." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`
	opener
	Name []string `help:"Name or address by which hosts and operators reach the site; repeatable (default: the machine's host name)." placeholder:"NAME"`
}

// Help describes the command.
func (c *initCommand) Help() string {
	return `The first admin is the user admin of all tenants; its password is printed once, and osupgrade-agent login
logs it in. If the site has a user, none is made.

The certificate is signed by an authority that is made for this site and kept in its folder. serve uses both by
itself, and renews the certificate before it expires. Run the command again to change the names: the authority
stays. It is not needed if you have certificates of your own (serve --tls-cert, --nats-tls-cert, --ca-file).`
}

// Run implements the command.
func (c *initCommand) Run(ctx context.Context, out io.Writer, person *console) error {
	if err := c.check(); err != nil {
		return misused(err)
	}
	if err := readable(c.Data); err != nil {
		return err
	}
	files := site.Authority(c.Data)
	box := openBox(c.Data, nil)
	if err := c.open(box, person); err != nil {
		return err
	}
	// Who works on the site itself reaches it by these.
	var made bool
	err := recorded(c.Data, v1.AuditRecord{Action: "init", Object: "site", Detail: "a certificate for " + strings.Join(c.Name, ", ")}, func(*v1.AuditRecord) (err error) {
		made, err = files.Make(slices.Concat(c.Name, []string{"localhost", "127.0.0.1", "::1"}), time.Now(), box)
		return err
	})
	if err != nil {
		return err
	}
	ca, err := site.ReadCA(c.Data, "")
	if err != nil {
		return err
	}
	fingerprint, err := v1.Fingerprint(ca)
	if err != nil {
		return err
	}
	if made {
		_, _ = fmt.Fprintf(out, "Made the authority of the site: %s, SHA-256 %s.\n", files.CA, fingerprint)
	}
	_, _ = fmt.Fprintf(out, "Made a certificate for %s: %s. serve presents it unless tls-cert or nats-tls-cert name another, and renews it.\n"+
		"Operators and Terraform trust the site by %s; hosts that join are told.\n", strings.Join(c.Name, ", "), files.Cert, files.CA)
	password, err := firstAdmin(ctx, c.Data)
	if err != nil || password == "" {
		return err
	}
	_, err = fmt.Fprintf(out, "Made the first user: %s, password %s. It is shown once, and may do everything: log in with osupgrade-agent login --user %s.\n", adminName, password, adminName)
	return err
}

// check validates the names.
func (c *initCommand) check() error {
	if len(c.Name) == 0 {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("name: cannot read the machine's name: %w", err)
		}
		c.Name = []string{name}
	}
	for _, name := range c.Name {
		if net.ParseIP(name) == nil && !names.ValidHost(name) {
			return fmt.Errorf("name: %.200q is neither the name of a machine nor an address; use one such as site.example or 192.0.2.10, without a port", name)
		}
	}
	return nil
}
