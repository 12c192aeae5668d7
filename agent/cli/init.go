//go:build !worker

package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// initCommand makes the first admin of a site, and the certificate of one that has none
// from elsewhere.
type initCommand struct {
	siteData
	opener
	Name []string `help:"Name or address by which hosts and operators reach the site (repeatable; default: the machine's host name)." placeholder:"NAME"`
}

// Help describes the command.
func (c *initCommand) Help() string {
	return `The first admin is the user admin, for all tenants. Its password is printed once; log in with it by
osupgrade-agent login. If the site already has a user, none is created.

The certificate is signed by a CA that is created for this site and kept in its folder. serve uses both by
itself, and renews the certificate before it expires. To change the names, run the command again: the CA
stays. You need no such certificate if you have your own (serve --tls-cert, --nats-tls-cert, --ca-file).`
}

// Run implements the command.
func (c *initCommand) Run(ctx context.Context, out io.Writer, person *console, log *slog.Logger) error {
	if err := c.check(); err != nil {
		return misused(err)
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	state, err := api.Strongbox(ctx)
	if err != nil {
		return answered(err)
	}
	current, err := c.current(state, person)
	if err != nil {
		return err
	}
	made, err := api.CertifySite(ctx, v1.NewSiteCertificate{Names: c.Name, Current: current})
	if err != nil {
		return answered(err)
	}
	fingerprint, err := v1.Fingerprint([]byte(made.CA))
	if err != nil {
		return err
	}
	if made.NewAuthority {
		_, _ = fmt.Fprintf(out, "Made the authority of the site: %s, SHA-256 %s.\n", made.CAFile, fingerprint)
	}
	_, _ = fmt.Fprintf(out, "Made a certificate for %s: %s. serve presents it unless tls-cert or nats-tls-cert name another, and renews it.\n"+
		"Operators and Terraform trust the site by %s; hosts that join learn that by themselves.\n", strings.Join(c.Name, ", "), made.CertFile, made.CAFile)
	password, err := firstAdmin(ctx, api.Client)
	if err != nil || password == "" {
		return answered(err)
	}
	_, err = fmt.Fprintf(out, "Made the first user: %s, password %s. The password is shown only once, and this user may do everything. Log in with osupgrade-agent login --user %s.\n", adminName, password, adminName)
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
