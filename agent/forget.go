package main

import (
	"context"
	"fmt"
	"io"
)

// forgetCommand makes the site forget a host that is gone for good.
type forgetCommand struct {
	operator
	Host string `arg:"" help:"Name of the host, as hosts shows it."`
}

// Run implements the command.
func (c *forgetCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	if err := api.DeleteHost(ctx, c.Tenant, c.Host); err != nil {
		return err
	}
	if c.Output == "json" {
		return c.json(out, map[string]string{"tenant": c.Tenant, "forgotten": c.Host})
	}
	_, err = fmt.Fprintf(out, "Host %s of tenant %s is forgotten. It comes back when its worker does; remove its key to keep it out.\n", c.Host, c.Tenant)
	return err
}
