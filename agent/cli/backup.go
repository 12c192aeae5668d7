//go:build !worker

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// siteData is the folder of a site.
type siteData struct {
	Data string `help:"The site's folder." default:"/var/lib/osupgrade" type:"path" env:"OSUPGRADE_DATA"`
}

// backupCommand copies a site.
type backupCommand struct {
	siteData
	Out string `help:"File to write the backup to; it must not exist." required:"" type:"path" placeholder:"FILE"`
}

// Help describes the command.
func (c *backupCommand) Help() string {
	return `The site may run meanwhile: it makes the copy itself, of each stream as it is at one
instant, and hosts and clients notice nothing. Run the command on the site's machine, as
the site's user. If the site does not run, the command reads its folder.

The backup is a tar file with the logs, the configuration, the history, the audit log, the
hosts, and the keys and tokens that the site accepts; keep it as safe as the folder itself. It is checked
before it gets its name: every sum and every record. The configuration file of
osupgrade-agent serve, certificates and check scripts are not in it. Nor is what opens its
secrets, those of webhooks and of the site's authority (osupgrade-agent seal --help).

To use it, see osupgrade-agent restore --help.`
}

// Run implements the command.
func (c *backupCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := site.Backup(ctx, c.Data, c.Out, log); err != nil {
		return err
	}
	// Not before: the backup would have the note of itself, and nothing of its end.
	logs := site.OpenAudit(c.Data)
	err := logs.Keep(byMachine(v1.AuditRecord{Action: "backup", Object: "site", Detail: "to " + c.Out}))
	if err = errors.Join(err, logs.Close()); err != nil {
		return fmt.Errorf("the backup %s is made, but that is not in the audit log: %w", c.Out, err)
	}
	if _, err = fmt.Fprintf(out, "Wrote a backup of %s to %s and checked it.\n", c.Data, c.Out); err != nil {
		return err
	}
	if opener := openBox(c.Data, nil).Opener(); opener != "" {
		_, err = fmt.Fprintf(out, "Its secrets are opened by %s, which is not in it: keep a copy of that elsewhere.\n", opener)
	}
	return err
}

// skipped is how many records may be lost.
type skipped struct {
	Skip uint64 `help:"How many records may be lost that no host has told of. So many numbers of runs are left out, so that none is given out twice." default:"1000"`
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
	File           string `arg:"" help:"The backup, a file of osupgrade-agent backup." type:"path"`
	KeyFile        string `help:"The key file that opens the secrets in the backup, if the site had one of its own." type:"path" xor:"secrets" placeholder:"FILE"`
	WithoutSecrets bool   `help:"Go on without the secrets in the backup: what opens them is lost." xor:"secrets"`
}

// Help describes the command.
func (c *restoreCommand) Help() string {
	return `The folder must have no site in it. Stop the old site first, wherever it is, and never
start it again: two sites of the same hosts contradict each other.

What has happened since the backup is lost. The restored logs therefore get a new
identity, and go on beyond all numbers that may have been given out. Start the site as
before; its hosts connect by themselves, and tell it from their journals what they have
done: none upgrades twice in a run, and none ignores a command. A host that worked for a
run that the backup does not know says so, and waits for osupgrade-agent release.

  systemctl stop osupgrade-agent
  mv /var/lib/osupgrade /var/lib/osupgrade.old
  osupgrade-agent restore /backup/site-2026-11-21.tar --data /var/lib/osupgrade
  systemctl start osupgrade-agent

The secrets in a backup are sealed. A site that has sealed any by a key file of its own has that in
credentials/strongbox-*.key of its folder: give a copy of it with --key-file. Without one, each
webhook needs its secret again, and the site a new authority that each host is told of.

A run that was under way in the backup goes on, unless its end has passed. ETags from
before are refused with 412; Terraform reads anew by itself.`
}

// Run implements the command.
func (c *restoreCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := site.Restore(ctx, c.File, c.Data, site.Secrets{KeyFile: c.KeyFile, Without: c.WithoutSecrets}, c.Skip, out, log); err != nil {
		return err
	}
	if err := recordedForAll(c.Data, v1.AuditRecord{Action: "restore", Object: "site", Detail: "from " + c.File + "; what was done after that backup is not in this log"}); err != nil {
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
	return `A site stops all commands when its log is damaged, or is older than its hosts know it:
somebody put back a copy of its folder, or started a clone of its machine. It says so in
status, on /readyz and in its log, with the hosts that know more.

If you have a newer backup, restore that. Otherwise stop the site and run this command. It
accepts what is there, gives each log a new identity, and has it go on beyond all numbers
that hosts have told of. Then start the site; its hosts tell it from their journals what
they have done, as after osupgrade-agent restore.

  systemctl stop osupgrade-agent
  osupgrade-agent recover --data /var/lib/osupgrade
  systemctl start osupgrade-agent

Records that are damaged themselves cannot be accepted: restore a backup.`
}

// Run implements the command.
func (c *recoverCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	if err := c.check(); err != nil {
		return err
	}
	if err := site.Recover(ctx, c.Data, c.Skip, out, log); err != nil {
		return err
	}
	if err := recordedForAll(c.Data, v1.AuditRecord{Action: "recover", Object: "site", Detail: "the logs are accepted as they are"}); err != nil {
		return fmt.Errorf("the site is recovered, but that is not in the audit log: %w", err)
	}
	_, err := fmt.Fprintf(out, "Recovered %s. Start the site: osupgrade-agent serve --data %s\n", c.Data, c.Data)
	return err
}
