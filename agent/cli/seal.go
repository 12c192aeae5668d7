//go:build !worker

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// credentialsFolder is the variable in which systemd names the folder of a unit's
// credentials.
const credentialsFolder = "CREDENTIALS_DIRECTORY" //nolint:gosec // the name of a variable

// sealCommand changes what opens the strongbox of a site.
type sealCommand struct {
	Status     sealStatusCommand     `cmd:"" help:"Show what opens the strongbox, and whether it is present."`
	KeyFile    sealKeyFileCommand    `cmd:"" name:"key-file" help:"Open it by a key file."`
	Credential sealCredentialCommand `cmd:"" help:"Open it by a systemd credential, which can be bound to the TPM."`
	Passphrase sealPassphraseCommand `cmd:"" help:"Open it by a passphrase, which a person types after each start."`
	Rotate     sealRotateCommand     `cmd:"" help:"Seal the secrets with a new key."`
	Reset      sealResetCommand      `cmd:"" help:"Give up the secrets of a strongbox that nobody can open."`
}

// Help describes the command.
func (c *sealCommand) Help() string {
	return `The strongbox seals the secrets that a site must be able to read again: those that sign webhooks,
and the private key of the authority of osupgrade-agent init. It is made with the first of them, and
opened by a key file in the folder of the site. These commands are for root and the user of the
site on its machine, whether the site runs or not. A command that is killed leaves a strongbox that opens as before, or as was asked for.`
}

// opener is the common part of the commands that open the strongbox.
type opener struct {
	Current string `help:"File with what opens the strongbox now; - is standard input (default: what the site itself uses, or ask at the terminal)." placeholder:"FILE"`
}

// current returns what opens the strongbox now, in base64; empty if the site opens it by
// itself.
func (o opener) current(state v1.Strongbox, person *console) (string, error) {
	passphrase := state.Way == string(strongbox.Passphrase)
	if state.Sealed == "" {
		return "", nil
	}
	if o.Current == "" && (!passphrase || !person.terminal()) {
		return "", fmt.Errorf("%s; or give --current FILE", state.Sealed)
	}
	var secret []byte
	var err error
	if passphrase {
		secret, err = readPassphrase("passphrase of the strongbox", "current", cmp.Or(o.Current, "-"), person)
	} else {
		secret, err = readKey("current", o.Current, person)
	}
	return base64.StdEncoding.EncodeToString(secret), err
}

// readKey reads a key from a file; "-" is standard input.
func readKey(option, file string, person *console) (key []byte, err error) {
	if file == "-" {
		key, err = io.ReadAll(io.LimitReader(person.in, maxToken+1))
	} else {
		key, err = readSecret(option, file)
	}
	if err != nil {
		return nil, err
	}
	if err := strongbox.CheckKey(file, key); err != nil {
		return nil, fmt.Errorf("%s: %w", option, err)
	}
	return key, nil
}

// sealing is the common part of the commands that change what opens the strongbox.
type sealing struct {
	siteData
	opener
}

// rewrap changes what opens the strongbox, and prints what follows.
func (c *sealing) rewrap(ctx context.Context, log *slog.Logger, person *console, out io.Writer, to v1.Rewrap, told string) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	before, err := api.Strongbox(ctx)
	if err == nil {
		to.Current, err = c.current(before, person)
	}
	if err != nil {
		return answered(err)
	}
	now, err := api.RewrapStrongbox(ctx, to)
	if err != nil {
		return answered(err)
	}
	_, _ = fmt.Fprintf(out, "The strongbox is opened by %s. %s\n", now.Opener, told)
	if before.Opener != "" && before.Opener != now.Opener {
		_, _ = fmt.Fprintf(out, "Backups from before are opened by %s.\n", before.Opener)
		if strings.HasPrefix(before.Opener, "the key file "+site.StrongboxFolder(c.Data)) {
			_, _ = fmt.Fprintln(out, "That file is removed: such backups need your copy of it.")
		}
	}
	return nil
}

// sealKeyFileCommand has a key file open the strongbox.
type sealKeyFileCommand struct {
	sealing
	File string `help:"The key file, such as one on another disk; it is created if needed (default: a new one in the folder of the site)." type:"path" placeholder:"FILE"`
}

// Run implements the command.
func (c *sealKeyFileCommand) Run(ctx context.Context, out io.Writer, person *console, log *slog.Logger) error {
	if c.File != "" {
		if path, err := filepath.Abs(c.File); err == nil {
			c.File = path
		}
		if _, err := os.Stat(c.File); err == nil {
			if _, err := readSecret("file", c.File); err != nil {
				return err
			}
		}
	}
	return c.rewrap(ctx, log, person, out, v1.Rewrap{Way: string(strongbox.KeyFile), File: c.File}, "It is in no backup: keep a copy of it elsewhere.")
}

// sealCredentialCommand has a credential of systemd open the strongbox.
type sealCredentialCommand struct {
	sealing
	Name string `help:"Name of the credential." default:"osupgrade-strongbox" placeholder:"NAME"`
	Key  string `help:"File with the content of the credential; - is standard input." default:"-" placeholder:"FILE"`
}

// Help describes the command.
func (c *sealCredentialCommand) Help() string {
	return `systemd keeps the credential encrypted by the TPM of the machine, by a key of the machine, or by both, and
gives it to the site at each start. It is in plain text on no disk:

    head -c 32 /dev/urandom | systemd-creds encrypt --with-key=host+tpm2 --name=osupgrade-strongbox - /etc/credstore.encrypted/osupgrade-strongbox
    systemd-creds decrypt /etc/credstore.encrypted/osupgrade-strongbox - | sudo -u osupgrade osupgrade-agent seal credential
    mkdir -p /etc/systemd/system/osupgrade-agent.service.d
    printf '[Service]\nLoadCredentialEncrypted=osupgrade-strongbox:/etc/credstore.encrypted/osupgrade-strongbox\n' >/etc/systemd/system/osupgrade-agent.service.d/strongbox.conf
    systemctl daemon-reload
    systemctl restart osupgrade-agent

A machine without a TPM takes --with-key=host.`
}

// Run implements the command.
func (c *sealCredentialCommand) Run(ctx context.Context, out io.Writer, person *console, log *slog.Logger) error {
	if c.Current == "-" && c.Key == "-" {
		return misused(errors.New("--current and --key cannot both be read from standard input"))
	}
	if c.Key == "-" && person.terminal() {
		return misused(errors.New("--key: a key is not typed; pipe it from systemd-creds decrypt, see osupgrade-agent seal credential --help"))
	}
	key, err := readKey("key", c.Key, person)
	if err != nil {
		return err
	}
	return c.rewrap(ctx, log, person, out, v1.Rewrap{Way: string(strongbox.Credential), Name: c.Name, Secret: base64.StdEncoding.EncodeToString(key)},
		fmt.Sprintf("The unit of the site needs LoadCredentialEncrypted=%s; without it the site is sealed after its next start.", c.Name))
}

// sealPassphraseCommand has a passphrase open the strongbox.
type sealPassphraseCommand struct {
	sealing
	PassphraseFile string `help:"File with the new passphrase (default: ask at the terminal, or read standard input)." type:"path" placeholder:"FILE"`
}

// Run implements the command.
func (c *sealPassphraseCommand) Run(ctx context.Context, out io.Writer, person *console, log *slog.Logger) error {
	if c.Current == "-" && c.PassphraseFile == "" {
		return misused(errors.New("--current - needs --passphrase-file: both cannot be read from standard input"))
	}
	file := c.PassphraseFile
	if file == "" {
		file = "-"
	}
	passphrase, err := readPassphrase("new passphrase", "passphrase-file", file, person)
	if err != nil {
		return err
	}
	target := strongbox.Target{Way: strongbox.Passphrase, Secret: passphrase}
	if err := target.Check(); err != nil {
		return misused(err)
	}
	if file == "-" && person.terminal() {
		again, err := readPassphrase("new passphrase again", "passphrase-file", file, person)
		if err != nil {
			return err
		}
		if !bytes.Equal(again, passphrase) {
			return errors.New("nothing was changed: the two passphrases differ")
		}
	}
	return c.rewrap(ctx, log, person, out, v1.Rewrap{Way: string(target.Way), Secret: base64.StdEncoding.EncodeToString(passphrase)}, "The site is sealed after each start until osupgrade-agent unseal is given it. Nobody can open it without.")
}

// sealRotateCommand makes a new data key.
type sealRotateCommand struct{ sealing }

// Help describes the command.
func (c *sealRotateCommand) Help() string {
	return `Do it if somebody may have read the memory of the site or its keys. The site seals all its secrets with
the new key when it starts next; the old keys stay in the strongbox, for what is in backups. What
opens the strongbox stays the same.`
}

// Run implements the command.
func (c *sealRotateCommand) Run(ctx context.Context, out io.Writer, person *console, log *slog.Logger) error {
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
	if err := api.RotateStrongbox(ctx, v1.CurrentSecret{Current: current}); err != nil {
		return answered(err)
	}
	_, err = fmt.Fprintln(out, "The strongbox has a new key. Restart the site: it then seals its secrets with that.")
	return err
}

// sealResetCommand gives a strongbox up.
type sealResetCommand struct {
	siteData
	confirming
}

// Help describes the command.
func (c *sealResetCommand) Help() string {
	return `The site must be stopped. The files of the strongbox are put aside, and can be put back by their old
names if what opens them is found. Each webhook then needs its secret again. The authority of
osupgrade-agent init cannot sign any more: the certificate of the site is good until it expires.`
}

// Run implements the command.
func (c *sealResetCommand) Run(ctx context.Context, out io.Writer, person *console, log *slog.Logger) error {
	api, err := c.openPrepared(ctx, log, func() error {
		if _, err := os.Stat(filepath.Join(c.Data, "store")); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("data: no site has run in %s", c.Data)
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer api.done()
	if !api.stopped {
		return errors.New("the site runs; stop it first")
	}
	if err := c.confirm(person, "gives up the secrets of all webhooks, and of the site's authority"); err != nil {
		return err
	}
	reset, err := api.ResetStrongbox(ctx)
	if err != nil {
		return answered(err)
	}
	_, err = fmt.Fprintf(out, "The strongbox is put aside: %s.\n", strings.Join(reset.Aside, ", "))
	return err
}

// sealStatusCommand shows what opens the strongbox.
type sealStatusCommand struct{ siteData }

// Run implements the command.
func (c *sealStatusCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	state, err := api.Strongbox(ctx)
	if err != nil {
		return answered(err)
	}
	opener, sealed := state.Opener, error(nil)
	if state.Sealed != "" {
		sealed = errors.New(state.Sealed)
	}
	switch {
	case opener == "" && sealed == nil:
		_, err := fmt.Fprintln(out, "Nothing was sealed yet.")
		return err
	case opener == "": // It cannot be read.
		return sealed
	}
	if _, err := fmt.Fprintf(out, "The strongbox is opened by %s.\n", opener); err != nil {
		return err
	}
	switch {
	case state.Way == string(strongbox.Passphrase):
		_, err := fmt.Fprintln(out, "A site is sealed after each start until osupgrade-agent unseal is given it; /readyz tells whether it is.")
		return err
	case state.Way == string(strongbox.Credential) && os.Getenv(credentialsFolder) == "":
		_, err := fmt.Fprintln(out, "Only the unit of the site has it.")
		return err
	}
	return sealed
}
