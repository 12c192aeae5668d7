// Package dev runs a whole site in one process, with simulated hosts: the
// quickest way to see an upgrade, and the agent that acceptance tests run
// against.
//
// Everything but the hosts is real, credentials included.
package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/otlp"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Defaults of a site with simulated hosts.
const (
	Tenant      = "demo"
	Application = "os-upgrade-simulated"
	SiteName    = "dev"
)

// Options say how many hosts there are and where.
type Options struct {
	// Dir holds all data; a site that is started again on it goes on where it was.
	Dir string
	// Tenant is the name of the one tenant; empty is Tenant.
	Tenant string
	// Hosts is how many simulated hosts there are: h01, h02, ...
	Hosts int
	// Labels are the labels of hosts, by the name of the host.
	Labels map[string]map[string]string
	// ActionTime is how long one simulated action takes.
	ActionTime time.Duration
	// Listen is where the REST API listens; empty is any free port of
	// loopback.
	Listen string
	// Zone is the site's time zone; nil is UTC.
	Zone *time.Location
	// Traces says where the spans of requests and runs are sent; nil means nowhere.
	Traces  *otlp.Config
	Version string
	// Log takes the log lines; nil drops them.
	Log *slog.Logger
}

// Dev is a running site with simulated hosts.
type Dev struct {
	// Endpoint, Token and Tenant are what a client needs.
	Endpoint, Token, Tenant string

	*site.Site

	stop  context.CancelFunc
	parts sync.WaitGroup
	lost  chan error
	log   *slog.Logger
}

// Start starts the site and its hosts and returns once the API answers and all
// hosts are online. It runs until Close; ctx is only for the start.
func Start(ctx context.Context, o Options) (*Dev, error) {
	o = withDefaults(o)
	local, err := dial.Parse([]string{dial.Any})
	if err != nil {
		return nil, err
	}
	s, err := site.Open(ctx, site.Options{
		Name: SiteName, Zone: o.Zone, Dir: o.Dir, Tenants: []string{o.Tenant}, API: site.Endpoint{Listen: o.Listen},
		Checks: filepath.Join(o.Dir, "checks"), Local: local, Traces: o.Traces,
		Holder: "osupgrade-agent dev", Version: o.Version, Log: o.Log,
	})
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.Background())
	d := &Dev{Endpoint: "http://" + s.Address(), Tenant: o.Tenant, Site: s, stop: stop, lost: make(chan error, 1), log: o.Log}
	if err := d.start(ctx, running, o); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func withDefaults(o Options) Options {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Tenant == "" {
		o.Tenant = Tenant
	}
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func (d *Dev) start(ctx, running context.Context, o Options) (err error) {
	if d.Token, err = ownToken(d.Tokens, filepath.Join(o.Dir, "token"), o.Tenant); err != nil {
		return err
	}
	for i := range o.Hosts {
		h, err := d.openHost(ctx, o, hostName(i))
		if err != nil {
			return err
		}
		d.parts.Go(func() {
			if err := h.live(running); err != nil && running.Err() == nil {
				d.fail(err)
			}
		})
	}
	d.parts.Go(func() {
		select {
		case err := <-d.Site.Failed():
			d.fail(err)
		case <-running.Done():
		}
	})
	return d.gather(ctx, o.Hosts)
}

// hostName is the name of the i-th host, from 0.
func hostName(i int) string { return fmt.Sprintf("h%02d", i+1) }

// HasHost reports whether one of so many simulated hosts has this name.
func HasHost(hosts int, name string) bool {
	for i := range hosts {
		if hostName(i) == name {
			return true
		}
	}
	return false
}

// fail notes the first part that stops by itself, and logs each.
func (d *Dev) fail(err error) {
	d.log.Error("a part of the agent has stopped", "error", err)
	select {
	case d.lost <- err:
	default:
	}
}

// gather waits until the controller has heard of all hosts.
func (d *Dev) gather(ctx context.Context, want int) error {
	controller := d.Controller(d.Tenant)
	changed, stop, err := controller.Watch(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for {
		hosts, err := controller.Hosts(ctx, v1.HostFilter{})
		if err != nil {
			return err
		}
		online := 0
		for _, h := range hosts {
			if h.Online {
				online++
			}
		}
		if online >= want {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-d.lost:
			return err
		case <-changed:
		}
	}
}

// ownToken returns the token of this folder, which the first start makes.
func ownToken(tokens *principal.Tokens, path, tenant string) (string, error) {
	if kept, err := os.ReadFile(path); err == nil {
		return string(kept), nil
	}
	token, err := tokens.Add(principal.Token{Name: "dev", Tenant: tenant, Allow: []access.Role{access.Admin}})
	if err != nil {
		return "", err
	}
	return token, durable.WriteFile(path, []byte(token), 0o600)
}

// WriteEnv writes the file that a shell sources before it runs Terraform. It holds the
// token, so only its owner may read it.
func (d *Dev) WriteEnv(path string) error {
	text := fmt.Sprintf("export OSUPGRADE_ENDPOINT=%s\nexport OSUPGRADE_TOKEN=%s\nexport OSUPGRADE_TENANT=%s\n", d.Endpoint, d.Token, d.Tenant)
	return durable.WriteFile(path, []byte(text), 0o600)
}

// example is a configuration to begin with.
const example = `# A configuration to begin with; change it as you like:
#   osupgrade-agent apply -f FILE
config:
  worker-applications:
    - name: ` + Application + `
  maintenance-windows:
    - days-of-week: Saturday, Sunday
      start-time: "01:00"
      timezone: site-local
      duration: 4h
rollout:
  stages:
    - name: canary
      match:
        hosts: [h01]
    - name: rest
      max-unavailable: 50%
`

// WriteExample writes a configuration to begin with, unless the file exists.
func WriteExample(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return durable.WriteFile(path, []byte(example), 0o600)
}

// Failed delivers the error of the site or a host that has stopped by itself; the
// Dev must then be closed.
func (d *Dev) Failed() <-chan error { return d.lost }

// Close stops the hosts and then the site.
func (d *Dev) Close() error {
	d.stop()
	d.parts.Wait()
	return d.Site.Close()
}
