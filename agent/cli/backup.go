//go:build !worker

package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// backupCommand copies a site.
type backupCommand struct {
	siteData
	Out string `help:"File to write the backup to; it must not exist." required:"" type:"path" placeholder:"FILE"`
}

// Help describes the command.
func (c *backupCommand) Help() string {
	return `Run the command on the site's machine, as the site's user. A running site makes the copy itself,
and hosts and clients notice nothing. If the site is stopped, the command reads its folder.

The backup is a tar file with the logs, the configuration, the history, the audit log, the
hosts, and the keys and tokens that the site accepts. Keep it as safe as the folder itself. Every checksum and
every record is verified before the file gets its name. It does not contain the configuration file of
osupgrade-agent serve, certificates and check scripts, nor what opens the secrets of webhooks and of the
site's CA (osupgrade-agent seal --help).

To use it, see osupgrade-agent restore --help.`
}

// Run implements the command.
func (c *backupCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := site.Backup(ctx, c.Data, c.Out, log); err != nil {
		return err
	}
	// Not before: the backup would have the note of itself, and nothing of its end.
	opener, err := c.made(ctx, log)
	if err != nil {
		return fmt.Errorf("the backup %s is made, but that is not in the audit log: %w", c.Out, err)
	}
	if _, err = fmt.Fprintf(out, "Wrote a backup of %s to %s and checked it.\n", c.Data, c.Out); err != nil {
		return err
	}
	if opener != "" {
		_, err = fmt.Fprintf(out, "The backup does not contain %s, which opens its secrets: keep a copy of that elsewhere.\n", opener)
	}
	return err
}

// made keeps a record of the backup, and returns what opens its secrets.
func (c *backupCommand) made(ctx context.Context, log *slog.Logger) (opener string, err error) {
	if err := c.record(ctx, log, v1.AuditRecord{Action: "backup", Object: "site", Detail: "to " + c.Out}, false); err != nil {
		return "", err
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return "", err
	}
	defer api.done()
	state, err := api.Strongbox(ctx)
	return state.Opener, answered(err)
}

// skipped is how many records may be lost.
type skipped struct {
	Skip uint64 `help:"How many run numbers to skip, so that none is used twice: more than the records that may be lost and that no host knows of." default:"1000"`
}

func (s skipped) check() error {
	if s.Skip > site.MaxSkip {
		return misusedf("skip: %d is too many; use at most %d", s.Skip, site.MaxSkip)
	}
	return nil
}

// restoreCommand puts a backup in place.
type restoreCommand struct {
	siteData
	skipped
	File           string `arg:"" help:"The backup: a file written by osupgrade-agent backup." type:"path"`
	KeyFile        string `help:"Key file that opens the secrets in the backup, if the site used one." type:"path" xor:"secrets" placeholder:"FILE"`
	WithoutSecrets bool   `help:"Restore without the secrets in the backup, because what opens them is lost." xor:"secrets"`
}

// Help describes the command.
func (c *restoreCommand) Help() string {
	return `The folder must not contain a site. Stop the old site first, wherever it is, and never
start it again: two sites with the same hosts give contradicting commands.

What happened since the backup is lost. The restored site therefore skips run numbers, so that none is
used twice. Start the site as before. Its hosts reconnect by themselves and report from their journals what
they have done: no host upgrades twice in a run, and none misses a command. A host that took part in a
run that the backup does not contain says so, and waits for osupgrade-agent release.

  systemctl stop osupgrade-agent
  mv /var/lib/osupgrade /var/lib/osupgrade.old
  osupgrade-agent restore /backup/site-2026-11-21.tar --data /var/lib/osupgrade
  systemctl start osupgrade-agent

The secrets in a backup are sealed. If a key file opened them, it was credentials/strongbox-*.key in the
folder of the site: give a copy of it with --key-file. Without it, each webhook needs its secret again, and
the site needs a new CA, which each host must trust.

A run that was in progress in the backup continues, unless its time is over. ETags from
before are refused with 412; Terraform reads the objects again by itself.`
}

// Run implements the command.
func (c *restoreCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := site.Restore(ctx, c.File, c.Data, site.Secrets{KeyFile: c.KeyFile, Without: c.WithoutSecrets}, c.Skip, out, log); err != nil {
		return err
	}
	if err := c.record(ctx, log, v1.AuditRecord{Action: "restore", Object: "site", Detail: "from " + c.File + "; what was done after that backup is not in this log"}, true); err != nil {
		return fmt.Errorf("the site is restored, but that is not in the audit log: %w", err)
	}
	_, err := fmt.Fprintf(out, "Restored %s to %s. Start the site: osupgrade-agent serve --data %s\n", c.File, c.Data, c.Data)
	return err
}

// recoverCommand accepts the logs of a site.
type recoverCommand struct {
	siteData
	skipped
}

// Help describes the command.
func (c *recoverCommand) Help() string {
	return `A site sends no more commands when its log is damaged, or when its hosts remember more than its log does:
somebody copied back an old folder, or started a clone of the machine. status, /readyz and the log messages
say so, and name the hosts that remember more.

If you have a newer backup, restore it. Otherwise stop the site and run this command. It accepts the log as
it is, and skips run numbers, so that none is used twice. Then start the site. Its hosts report from their
journals what they have done, as after osupgrade-agent restore.

  systemctl stop osupgrade-agent
  osupgrade-agent recover --data /var/lib/osupgrade
  systemctl start osupgrade-agent

Damaged records cannot be accepted: restore a backup instead.`
}

// Run implements the command.
func (c *recoverCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := site.Recover(ctx, c.Data, c.Skip, out, log); err != nil {
		return err
	}
	if err := c.record(ctx, log, v1.AuditRecord{Action: "recover", Object: "site", Detail: "the logs are accepted as they are"}, true); err != nil {
		return fmt.Errorf("the site is recovered, but that is not in the audit log: %w", err)
	}
	_, err := fmt.Fprintf(out, "Recovered %s. Start the site: osupgrade-agent serve --data %s\n", c.Data, c.Data)
	return err
}
