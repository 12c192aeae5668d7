package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// unsealCommand opens the strongbox of a sealed site.
type unsealCommand struct {
	connection
	PassphraseFile string `help:"File with the passphrase (default: ask at the terminal, or read standard input)." type:"path" placeholder:"FILE"`
}

// Help describes the command.
func (c *unsealCommand) Help() string {
	return `A site whose strongbox is opened by a passphrase (osupgrade-agent seal passphrase) is sealed after
each start: its REST API answers 503 "strongbox sealed", webhooks wait, and runs continue. This command
gives it the passphrase, and needs no token. The passphrase is never an argument, which every user
of the machine could read.`
}

// Run implements the command.
func (c *unsealCommand) Run(ctx context.Context, out io.Writer, person *console) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	file := c.PassphraseFile
	if file == "" {
		file = "-"
	}
	passphrase, err := readPassphrase("passphrase of the strongbox", "passphrase-file", file, person)
	if err != nil {
		return err
	}
	if err := client.Unseal(ctx, options, string(passphrase)); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, "The site is open.")
	return err
}
