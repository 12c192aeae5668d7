//go:build !worker

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/otlp"
)

// serveCommand runs a site. Each of its flags is also a key of the config
// file.
type serveCommand struct {
	Config      kong.ConfigFlag `help:"YAML file with the flags below as keys. Environment variables override the file, and flags override both." type:"path" placeholder:"FILE"`
	PrintConfig bool            `help:"Print the effective values and exit."`

	Data          string   `help:"Folder for all data of the site." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`
	Site          string   `help:"Name of this site." default:"local" env:"OSUPGRADE_SITE"`
	Timezone      string   `help:"Time zone of this site, an IANA name, for site-local windows." default:"UTC" env:"OSUPGRADE_TIMEZONE"`
	Tenants       []string `help:"Tenants of this site, in addition to those created by osupgrade-agent tenant add." env:"OSUPGRADE_TENANTS" placeholder:"NAME,..."`
	Checks        string   `help:"Folder of the scripts that checks and hooks of a rollout may run at the site (default: none)." type:"path" env:"OSUPGRADE_SITE_CHECKS" placeholder:"DIR"`
	NewsScripts   string   `help:"Folder of the scripts to run for each news message of any tenant (default: none)." type:"path" env:"OSUPGRADE_NEWS_SCRIPTS" placeholder:"DIR"`
	AllowLocal    []string `help:"Local addresses (of this machine, or link-local) that the webhooks, calendars, checks and hooks of tenants may reach from the site; any allows all (default: none)." env:"OSUPGRADE_ALLOW_LOCAL" placeholder:"IP:PORT,..."`
	Listen        string   `help:"Where the REST API listens." default:"127.0.0.1:4646" env:"OSUPGRADE_LISTEN"`
	TLSCert       string   `help:"Certificate of the REST API, PEM; needed beyond loopback (default: the one made by osupgrade-agent init)." type:"path" env:"OSUPGRADE_TLS_CERT" placeholder:"FILE"`
	TLSKey        string   `help:"Private key of --tls-cert, PEM." type:"path" env:"OSUPGRADE_TLS_KEY" placeholder:"FILE"`
	NATSListen    string   `help:"Where workers connect." name:"nats-listen" default:"127.0.0.1:4222" env:"OSUPGRADE_NATS_LISTEN"`
	NATSTLSCert   string   `help:"Certificate that workers see, PEM; needed beyond loopback (default: the one made by osupgrade-agent init)." name:"nats-tls-cert" type:"path" env:"OSUPGRADE_NATS_TLS_CERT" placeholder:"FILE"`
	NATSTLSKey    string   `help:"Private key of --nats-tls-cert, PEM." name:"nats-tls-key" type:"path" env:"OSUPGRADE_NATS_TLS_KEY" placeholder:"FILE"`
	CAFile        string   `help:"Certificates by which joining hosts are to trust this site, PEM (default: those made by osupgrade-agent init)." name:"ca-file" type:"path" env:"OSUPGRADE_CA_FILE" placeholder:"FILE"`
	ClientCAFile  string   `help:"CA certificates, PEM: a client certificate that they signed identifies a user of the REST API (default: none; clients are not asked for one)." name:"client-ca-file" type:"path" env:"OSUPGRADE_CLIENT_CA_FILE" placeholder:"FILE"`
	ClientCRLFile string   `help:"Revocation lists of these CAs, PEM or DER." name:"client-crl-file" type:"path" env:"OSUPGRADE_CLIENT_CRL_FILE" placeholder:"FILE"`
	// PassphraseFD has no variable: who sets one for all commands would have each read it.
	PassphraseFD int `help:"Read the passphrase of the strongbox from this file descriptor at the start; 0 is standard input." name:"passphrase-fd" default:"-1" placeholder:"N"`
	tracesFlags
}

// tracesFlags say where traces are sent. All else of them is in the variables of
// OpenTelemetry, as in any other program.
type tracesFlags struct {
	OTLPEndpoint string `help:"Send traces of requests and runs to the OpenTelemetry collector at this URL, over OTLP/HTTP. The other OTEL_* variables apply, too (default: no traces)." name:"otlp-endpoint" env:"OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL"`
}

// traces returns where traces are sent; nil means nowhere.
func (f tracesFlags) traces() (*otlp.Config, error) { return otlp.Configure(f.OTLPEndpoint, os.Getenv) }

// Run implements the command.
func (c *serveCommand) Run(ctx context.Context, parsed *kong.Context, files *configFiles, out io.Writer, log *slog.Logger, program version, person *console) error {
	if c.PrintConfig {
		return printConfig(out, parsed, files)
	}
	zone, err := c.check()
	if err != nil {
		return misused(err)
	}
	local, err := dial.Parse(c.AllowLocal)
	if err != nil {
		return misused(fmt.Errorf("allow-local: %w", err))
	}
	traces, err := c.traces()
	if err != nil {
		return misused(err)
	}
	if err := errors.Join(checkScripts("checks", c.Checks), checkScripts("news-scripts", c.NewsScripts)); err != nil {
		return err
	}
	supervised, err := newSupervision(log)
	if err != nil {
		return err
	}
	reload := make(chan struct{}, 1)
	defer hangups(func() {
		select {
		case reload <- struct{}{}:
		default: // One reload is due already.
		}
	})()
	passphrase, err := c.passphrase(person)
	if err != nil {
		return err
	}
	s, err := site.Open(ctx, site.Options{
		Credentials: os.Getenv(credentialsFolder), Passphrase: passphrase,
		Name: c.Site, Zone: zone, Dir: c.Data, Tenants: c.Tenants, Checks: c.Checks, NewsScripts: c.NewsScripts, Local: local,
		API:    site.Endpoint{Listen: c.Listen, CertFile: c.TLSCert, KeyFile: c.TLSKey},
		NATS:   site.Endpoint{Listen: c.NATSListen, CertFile: c.NATSTLSCert, KeyFile: c.NATSTLSKey},
		CAFile: c.CAFile, ClientCAFile: c.ClientCAFile, ClientCRLFile: c.ClientCRLFile, Traces: traces,
		Holder: "osupgrade-agent serve", Version: string(program), Log: log, At: crashPoint("site"),
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "Site %s is ready: REST API at %s, hosts connect at %s, %s.\n", c.Site, s.Address(), s.NATSAddress(), served(s.Tenants()))
	running, stop := context.WithCancel(ctx)
	defer stop()
	return errors.Join(c.run(ctx, s, reload, supervised.site(running, s), log), supervised.service.Stopping(), s.Close())
}

// served says which tenants a site serves, and how to make the first.
func served(tenants []string) string {
	if len(tenants) == 0 {
		return "no tenants yet: create the first with osupgrade-agent tenant add NAME"
	}
	return "tenants " + strings.Join(tenants, ", ")
}

// passphrase reads that of the strongbox, if it is given at the start.
func (c *serveCommand) passphrase(person *console) ([]byte, error) {
	switch {
	case c.PassphraseFD < 0:
		return nil, nil
	case c.PassphraseFD == 0:
		return readPassphrase("passphrase of the strongbox", "passphrase-fd", "-", person)
	}
	file := os.NewFile(uintptr(c.PassphraseFD), "passphrase-fd")
	if file == nil {
		return nil, fmt.Errorf("passphrase-fd: %d is not a file descriptor", c.PassphraseFD)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxToken))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("passphrase-fd: cannot read from file descriptor %d: %w", c.PassphraseFD, err)
	}
	return oneLine("passphrase of the strongbox", "passphrase-fd", text)
}

// run waits until ctx ends, a part of the site has stopped, or the program was replaced,
// and reads the certificates again whenever it is asked to.
func (c *serveCommand) run(ctx context.Context, s *site.Site, reload, replaced <-chan struct{}, log *slog.Logger) error {
	for {
		select {
		case <-reload:
			log.Info("SIGHUP: the files of the certificates were read; restart the site to change anything else", "certificates", s.Reload())
		case <-replaced:
			log.Info("the program was replaced and no run is in progress: ending, so that systemd starts the new one")
			return nil
		case <-ctx.Done():
			return nil
		case err := <-s.Failed():
			return err
		}
	}
}

// check validates the values and returns the site's time zone.
func (c *serveCommand) check() (*time.Location, error) {
	if err := errors.Join(checkAddress("listen", c.Listen), checkAddress("nats-listen", c.NATSListen)); err != nil {
		return nil, err
	}
	for i, tenant := range c.Tenants {
		if err := checkName("tenants", tenant, "a tenant"); err != nil {
			return nil, err
		}
		if slices.Contains(c.Tenants[:i], tenant) {
			return nil, fmt.Errorf("tenants: %q is listed twice", tenant)
		}
	}
	if err := checkName("site", c.Site, "a site"); err != nil {
		return nil, err
	}
	zone, err := window.ParseZone(c.Timezone)
	if err != nil {
		return nil, fmt.Errorf("timezone: %w", err)
	}
	if zone == (window.Zone{}) {
		return nil, fmt.Errorf("timezone: %q cannot be the time zone of the site itself; use an IANA name such as Europe/Stockholm, or UTC", c.Timezone)
	}
	return zone.Location(time.UTC), nil
}

// checkAddress checks that text is an address to listen on.
func checkAddress(name, text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case text == "":
		return fmt.Errorf("%s is empty; use an address and a port from 0 to 65535", name)
	case err != nil:
		return fmt.Errorf("%s %q is not host:port; use an address and a port from 0 to 65535", name, text)
	}
	return nil
}

// site tells systemd that a site is ready, feeds the watchdog for as long as the loops
// of its controllers answer, and returns a channel that delivers when the program was
// replaced and no run is under way.
func (s *supervision) site(ctx context.Context, running *site.Site) <-chan struct{} {
	replaced := make(chan struct{}, 1)
	if s.service == nil {
		return replaced
	}
	s.tell(s.service.Ready())
	go s.service.Watch(ctx, running.Alive, s.hung)
	go func() {
		looks := time.NewTicker(s.service.Beat())
		defer looks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-looks.C:
			}
			if s.files.Replaced() != "" && running.Idle(ctx) == nil {
				replaced <- struct{}{}
				return
			}
		}
	}()
	return replaced
}
