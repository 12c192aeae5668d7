package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// serveCommand runs a site. Each of its flags is also a key of the config
// file.
type serveCommand struct {
	Config      kong.ConfigFlag `help:"YAML file with the flags below as keys." type:"path" placeholder:"FILE"`
	PrintConfig bool            `help:"Print the effective values and exit."`

	Data        string   `help:"Folder for all that the site keeps." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`
	Site        string   `help:"Name of this site." default:"local" env:"OSUPGRADE_SITE"`
	Timezone    string   `help:"Time zone of this site, an IANA name; site-local windows go by it." default:"UTC" env:"OSUPGRADE_TIMEZONE"`
	Tenants     []string `help:"Names of the tenants served here." required:"" env:"OSUPGRADE_TENANTS" placeholder:"NAME,..."`
	Checks      string   `help:"Folder of the scripts that a rollout's checks and hooks at the site may name (default: none may be named)." type:"path" env:"OSUPGRADE_SITE_CHECKS" placeholder:"DIR"`
	Listen      string   `help:"Where the REST API listens." default:"127.0.0.1:4646" env:"OSUPGRADE_LISTEN"`
	TLSCert     string   `help:"Certificate of the REST API, PEM; needed beyond loopback." type:"path" env:"OSUPGRADE_TLS_CERT" placeholder:"FILE"`
	TLSKey      string   `help:"Its private key, PEM." type:"path" env:"OSUPGRADE_TLS_KEY" placeholder:"FILE"`
	NATSListen  string   `help:"Where workers connect to the log." name:"nats-listen" default:"127.0.0.1:4222" env:"OSUPGRADE_NATS_LISTEN"`
	NATSTLSCert string   `help:"Certificate of the log, PEM; needed beyond loopback." name:"nats-tls-cert" type:"path" env:"OSUPGRADE_NATS_TLS_CERT" placeholder:"FILE"`
	NATSTLSKey  string   `help:"Its private key, PEM." name:"nats-tls-key" type:"path" env:"OSUPGRADE_NATS_TLS_KEY" placeholder:"FILE"`
}

// Run implements the command.
func (c *serveCommand) Run(ctx context.Context, parsed *kong.Context, out io.Writer, log *slog.Logger) error {
	if c.PrintConfig {
		return printConfig(out, parsed)
	}
	zone, err := c.check()
	if err != nil {
		return err
	}
	s, err := site.Open(ctx, site.Options{
		Name: c.Site, Zone: zone, Dir: c.Data, Tenants: c.Tenants, Checks: c.Checks,
		API:    site.Endpoint{Listen: c.Listen, CertFile: c.TLSCert, KeyFile: c.TLSKey},
		NATS:   site.Endpoint{Listen: c.NATSListen, CertFile: c.NATSTLSCert, KeyFile: c.NATSTLSKey},
		Holder: "osupgrade-agent serve", Log: log, At: crashPoint("site"),
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "Site %s is ready: REST API at %s, log at %s, tenants %s.\n",
		c.Site, s.Address(), s.NATSAddress(), strings.Join(c.Tenants, ", "))
	return errors.Join(wait(ctx, s.Failed()), s.Close())
}

// check tells what is wrong with the values, and returns the site's zone.
func (c *serveCommand) check() (*time.Location, error) {
	switch {
	case len(c.Tenants) == 0:
		return nil, fmt.Errorf("tenants is empty; name at least one")
	case c.Listen == "":
		return nil, fmt.Errorf("listen is empty; use an address and a port, such as 127.0.0.1:4646")
	case c.NATSListen == "":
		return nil, fmt.Errorf("nats-listen is empty; use an address and a port, such as 127.0.0.1:4222")
	}
	for i, tenant := range c.Tenants {
		if !v1.ValidName(tenant) {
			return nil, fmt.Errorf("tenants: %q is not the name of a tenant; use %s", tenant, v1.NamePattern)
		}
		if slices.Contains(c.Tenants[:i], tenant) {
			return nil, fmt.Errorf("tenants: %q stands there twice", tenant)
		}
	}
	if !v1.ValidName(c.Site) {
		return nil, fmt.Errorf("site: %q is not the name of a site; use %s", c.Site, v1.NamePattern)
	}
	zone, err := window.ParseZone(c.Timezone)
	if err != nil {
		return nil, fmt.Errorf("timezone: %w", err)
	}
	if zone == (window.Zone{}) {
		return nil, fmt.Errorf("timezone: %q is what this value is to decide; use an IANA name such as Europe/Stockholm, or UTC", c.Timezone)
	}
	return zone.Location(time.UTC), nil
}
