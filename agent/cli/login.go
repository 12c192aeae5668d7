package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/contexts"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// loginCommand logs a user in.
type loginCommand struct {
	connection
	User         string `help:"Name of the user." required:"" placeholder:"NAME"`
	Tenant       string `help:"Tenant of the user, or * for a user of all tenants; needed if several tenants have a user of that name."`
	PasswordFile string `help:"File with the password (default: ask at the terminal, or read standard input)." type:"path" placeholder:"FILE"`
}

// Help describes the command.
func (c *loginCommand) Help() string {
	return `In a context it keeps a token for this context, valid for 12 hours. --user is then the user of the context
unless you give another one, which becomes the user of the context. Without a context it prints the token for OSUPGRADE_TOKEN:

    export OSUPGRADE_TOKEN=$(osupgrade-agent login --user ann)

The password is never an argument: every user of the machine could read it there.`
}

// Run implements the command.
func (c *loginCommand) Run(ctx context.Context, out io.Writer, person *console) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	if proof := c.used.otherProof(); proof != "" {
		return fmt.Errorf("context %s gets in by %s, not by a login; to change that: osupgrade-agent context add %[1]s --replace; to print a token: osupgrade-agent login --endpoint %s --user %s",
			c.used.name, proof, c.used.Endpoint, c.User)
	}
	password, err := c.password(person)
	if err != nil {
		return err
	}
	session, err := client.Login(ctx, options, v1.Login{Username: c.User, Password: password, Tenant: c.Tenant})
	if err != nil {
		return err
	}
	if c.used.name == "" {
		_, err = fmt.Fprintln(out, session.Token)
		return err
	}
	if err := c.keep(ctx, session.Token); err != nil {
		return err
	}
	warnOverrides(person)
	// The output may become OSUPGRADE_TOKEN, which overrides the context.
	_, err = fmt.Fprintf(person.err, "Logged in to context %s as %s.\n", c.used.name, c.User)
	return err
}

// keep keeps the token for the context.
func (c *loginCommand) keep(ctx context.Context, token string) error {
	return c.known.store.Change(ctx, func(set *contexts.Set) error {
		now, err := set.Find(c.used.name)
		if err == nil && (now.Endpoint != c.used.Endpoint || (usedContext{Context: now}).otherProof() != "") {
			err = fmt.Errorf("context %s was replaced meanwhile; log in again", c.used.name)
		}
		if err != nil {
			return err
		}
		now.User = c.User
		set.Contexts[c.used.name] = now
		return c.known.store.KeepToken(c.used.name, token)
	})
}

// password reads the password.
func (c *loginCommand) password(person *console) (string, error) {
	file := c.PasswordFile
	if file == "" {
		file = "-"
	}
	password, err := readPassphrase(fmt.Sprintf("password of %.63s", c.User), "password-file", file, person)
	return string(password), err
}

// readPassphrase reads what nobody may see from a file: "-" asks the terminal, or reads
// standard input where there is none. what it is begins a question; option is the name of the
// option that names the file.
func readPassphrase(what, option, file string, person *console) ([]byte, error) {
	var text []byte
	var err error
	switch {
	case file != "-":
		text, err = readSecret(option, file)
	case person.terminal():
		text, err = askHidden(person, strings.ToUpper(what[:1])+what[1:]+": ")
	default:
		text, err = io.ReadAll(io.LimitReader(person.in, maxToken))
	}
	if err != nil {
		return nil, err
	}
	return oneLine(what, option, text)
}

// oneLine takes the end of the line off.
func oneLine(what, option string, text []byte) ([]byte, error) {
	if text = bytes.TrimRight(text, "\r\n"); len(text) == 0 {
		return nil, fmt.Errorf("the %s is empty; type it, or give --%s", what, option)
	}
	return text, nil
}

// askHidden asks a person for a line that the terminal does not show.
func askHidden(person *console, question string) ([]byte, error) {
	file, ok := person.in.(*os.File)
	if !ok {
		return nil, errors.New("there is no terminal to ask at")
	}
	fd := int(file.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("cannot ask: %w", err)
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, &hidden); err != nil {
		return nil, fmt.Errorf("cannot ask: %w", err)
	}
	defer func() {
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, before)
		_, _ = fmt.Fprintln(person.err)
	}()
	_, _ = fmt.Fprint(person.err, question)
	text, err := bufio.NewReader(person.in).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("cannot read the password: %w", err)
	}
	return text, nil
}
