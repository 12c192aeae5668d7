package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/natsd"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// credentialsCommand makes what a client or a host proves itself with. It
// works on the site's folder, also while the site runs.
type credentialsCommand struct {
	Token tokenCommand `cmd:"" help:"Make a token for the REST API and print it."`
	Host  keyCommand   `cmd:"" help:"Make a key for a host and write it to a file."`
}

// tokenCommand makes a token.
type tokenCommand struct {
	Data   string   `help:"The site's folder." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`
	Tenant string   `help:"Tenant that it is good for; * for all." required:""`
	Name   string   `help:"Whom it stands for; runs that it starts bear this name." required:""`
	Allow  []string `help:"What it allows: read, write, start." default:"read,write,start" enum:"read,write,start"`
}

// Run implements the command.
func (c *tokenCommand) Run(out io.Writer) error {
	if c.Tenant != api.AnyTenant && !v1.ValidName(c.Tenant) {
		return fmt.Errorf("tenant: %q is not the name of a tenant; use %s, or * for all", c.Tenant, v1.NamePattern)
	}
	tokens, err := site.OpenTokens(c.Data)
	if err != nil {
		return err
	}
	token := api.Token{Name: c.Name, Tenant: c.Tenant}
	for _, right := range c.Allow {
		token.Allow = append(token.Allow, api.Right(right))
	}
	text, err := tokens.Add(token)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, text)
	return err
}

// keyCommand makes a host's key.
type keyCommand struct {
	Data   string `help:"The site's folder." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`
	Tenant string `help:"Tenant that the host belongs to." required:""`
	Host   string `help:"Name of the host." required:""`
	Out    string `help:"File to write the key to; bring it to the host and keep it nowhere else." required:"" type:"path" placeholder:"FILE"`
}

// Run implements the command.
func (c *keyCommand) Run(out io.Writer) error {
	if !v1.ValidName(c.Tenant) {
		return fmt.Errorf("tenant: %q is not the name of a tenant; use %s", c.Tenant, v1.NamePattern)
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
	seed, err := hosts.Add(natsd.Identity{Tenant: c.Tenant, Host: c.Host})
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
