//go:build !worker

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/strongbox"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// credentialsFolder is the variable in which systemd names the folder of a unit's
// credentials.
const credentialsFolder = "CREDENTIALS_DIRECTORY" //nolint:gosec // the name of a variable

// sealCommand changes what opens the strongbox of a site.
type sealCommand struct {
	Status     sealStatusCommand     `cmd:"" help:"Show what opens the strongbox, and whether that is there."`
	KeyFile    sealKeyFileCommand    `cmd:"" name:"key-file" help:"Have a key file open it."`
	Credential sealCredentialCommand `cmd:"" help:"Have a credential of systemd open it, which that can seal by the TPM."`
	Passphrase sealPassphraseCommand `cmd:"" help:"Have a passphrase open it, which a person types after each start."`
	Rotate     sealRotateCommand     `cmd:"" help:"Make a new key that seals the secrets."`
	Reset      sealResetCommand      `cmd:"" help:"Give up the secrets of a strongbox that nobody can open any more."`
}

// Help describes the command.
func (c *sealCommand) Help() string {
	return `The strongbox seals the secrets that a site must be able to read again: those that sign webhooks,
and the private key of the authority of osupgrade-agent init. It is made with the first of them, and
opened by a key file in the folder of the site. These commands work on that folder, also while the
site runs. A command that is killed leaves a strongbox that opens as before, or as was asked for.`
}

// opener is the common part of the commands that open the strongbox.
type opener struct {
	Current string `help:"File with what opens the strongbox now; - is standard input (default: what the site uses itself, or the terminal is asked)." placeholder:"FILE"`
}

// openBox opens the strongbox of a site as that does.
func openBox(data string, at func(string)) *strongbox.Box {
	return strongbox.Open(strongbox.Options{Dir: site.StrongboxFolder(data), Credentials: os.Getenv(credentialsFolder), At: at})
}

// open opens a strongbox that does not open by itself.
func (o opener) open(box *strongbox.Box, person *console) error {
	_, err := o.secret(box, person)
	return err
}

// secret opens a strongbox that does not open by itself, and returns with what.
func (o opener) secret(box *strongbox.Box, person *console) (secret []byte, err error) {
	sealed := box.Sealed()
	switch {
	case sealed == nil:
		return nil, nil
	case o.Current == "" && (box.Way() != strongbox.Passphrase || !person.terminal()):
		return nil, fmt.Errorf("%w; or give --current FILE", sealed)
	case box.Way() == strongbox.Passphrase:
		file := o.Current
		if file == "" {
			file = "-"
		}
		secret, err = readPassphrase("passphrase of the strongbox", "current", file, person)
	default:
		secret, err = readKey("current", o.Current, person)
	}
	if err != nil {
		return nil, err
	}
	if err := box.Unseal(secret); errors.Is(err, strongbox.ErrWrong) {
		return nil, fmt.Errorf("current: it does not open the strongbox; that takes %s", box.Opener())
	} else if err != nil {
		return nil, err
	}
	return secret, nil
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
func (c *sealing) rewrap(person *console, out io.Writer, target strongbox.Target, told string) error {
	if err := readable(c.Data); err != nil {
		return err
	}
	box := openBox(c.Data, crashPoint("seal"))
	if err := c.open(box, person); err != nil {
		return err
	}
	before := box.Opener()
	err := recorded(c.Data, v1.AuditRecord{Action: "seal", Object: "strongbox", Detail: "by " + string(target.Way)}, func(*v1.AuditRecord) error { return box.Rewrap(target) })
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "The strongbox is opened by %s. %s\n", box.Opener(), told)
	if before != "" && before != box.Opener() {
		_, _ = fmt.Fprintf(out, "Backups from before are opened by %s.\n", before)
		if strings.HasPrefix(before, "the key file "+site.StrongboxFolder(c.Data)) {
			_, _ = fmt.Fprintln(out, "That file is removed: such backups need your copy of it.")
		}
	}
	return nil
}

// sealKeyFileCommand has a key file open the strongbox.
type sealKeyFileCommand struct {
	sealing
	File string `help:"The key file, such as one on another disk; it is made if it is not there (default: a new one in the folder of the site)." type:"path" placeholder:"FILE"`
}

// Run implements the command.
func (c *sealKeyFileCommand) Run(out io.Writer, person *console) error {
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
	return c.rewrap(person, out, strongbox.Target{Way: strongbox.KeyFile, File: c.File}, "It is in no backup: keep a copy of it elsewhere.")
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
func (c *sealCredentialCommand) Run(out io.Writer, person *console) error {
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
	return c.rewrap(person, out, strongbox.Target{Way: strongbox.Credential, Name: c.Name, Secret: key},
		fmt.Sprintf("The unit of the site needs LoadCredentialEncrypted=%s; without it the site is sealed after its next start.", c.Name))
}

// sealPassphraseCommand has a passphrase open the strongbox.
type sealPassphraseCommand struct {
	sealing
	PassphraseFile string `help:"File with the new passphrase (default: the terminal is asked, or standard input read)." type:"path" placeholder:"FILE"`
}

// Run implements the command.
func (c *sealPassphraseCommand) Run(out io.Writer, person *console) error {
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
	return c.rewrap(person, out, target, "The site is sealed after each start until osupgrade-agent unseal is given it. Nobody can open it without.")
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
func (c *sealRotateCommand) Run(out io.Writer, person *console) error {
	if err := readable(c.Data); err != nil {
		return err
	}
	box := openBox(c.Data, crashPoint("seal"))
	secret, err := c.secret(box, person)
	if err != nil {
		return err
	}
	if err := recorded(c.Data, v1.AuditRecord{Action: "rotate", Object: "strongbox"}, func(*v1.AuditRecord) error { return box.Rotate(secret) }); err != nil {
		return err
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
func (c *sealResetCommand) Run(out io.Writer, person *console) error {
	if err := readable(c.Data); err != nil {
		return err
	}
	lock, err := durable.LockFolder(filepath.Join(c.Data, "store", "lock"), "osupgrade-agent seal reset")
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("data: no site has run in %s", c.Data)
	}
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := c.confirm(person, "gives up the secrets of all webhooks, and of the site's authority"); err != nil {
		return err
	}
	var aside []string
	err = recorded(c.Data, v1.AuditRecord{Action: "reset", Object: "strongbox"}, func(*v1.AuditRecord) (err error) {
		aside, err = strongbox.Reset(site.StrongboxFolder(c.Data), time.Now())
		return err
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "The strongbox is put aside: %s.\n", strings.Join(aside, ", "))
	return err
}

// sealStatusCommand shows what opens the strongbox.
type sealStatusCommand struct{ siteData }

// Run implements the command.
func (c *sealStatusCommand) Run(out io.Writer) error {
	box := openBox(c.Data, nil)
	opener, sealed := box.Opener(), box.Sealed()
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
	case box.Way() == strongbox.Passphrase:
		_, err := fmt.Fprintln(out, "A site is sealed after each start until osupgrade-agent unseal is given it; /readyz tells whether it is.")
		return err
	case box.Way() == strongbox.Credential && os.Getenv(credentialsFolder) == "":
		_, err := fmt.Fprintln(out, "Only the unit of the site has it.")
		return err
	}
	return sealed
}
