package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// passwordCommand changes the password of the user who is logged in.
type passwordCommand struct {
	connection
	timeFlags
	CurrentFile string `help:"File with the current password (default: ask at the terminal, or read a line of standard input)." type:"path" placeholder:"FILE"`
	NewFile     string `help:"File with the new password (default: ask at the terminal, or read a line of standard input)." type:"path" placeholder:"FILE"`
}

// Help describes the command.
func (c *passwordCommand) Help() string {
	return `Log in first (osupgrade-agent login). You need no role. Your token stays valid; all your other logins end, and
the command lists them. A password is never an argument: every user of the machine could read it there.
Without a terminal, the first line of standard input is the current password, and the second line is the new one.`
}

// Run implements the command.
func (c *passwordCommand) Run(ctx context.Context, out io.Writer, person *console) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	defer api.Close()
	var change v1.PasswordChange
	if change.Current, change.Password, err = c.passwords(person); err != nil {
		return err
	}
	changed, err := api.ChangePassword(ctx, change)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(out, "The password of %s is changed.\n", changed.Name); err != nil {
		return err
	}
	at := c.format()
	for _, t := range changed.Withdrawn {
		used := "never used"
		if t.LastUsed != nil {
			used = "last used " + at.at(*t.LastUsed)
		}
		if _, err = fmt.Fprintf(out, "Its login %.12s of %s has ended (%s).\n", t.ID, at.at(t.CreationTime), used); err != nil {
			return err
		}
	}
	return nil
}

// passwords reads the current password and the new one.
func (c *passwordCommand) passwords(person *console) (current, next string, err error) {
	lines := bufio.NewReader(io.LimitReader(person.in, maxToken))
	read := func(what, option, file string) (string, error) {
		if file != "" || person.terminal() {
			text, err := readPassphrase(what, option, cmp.Or(file, "-"), person)
			return string(text), err
		}
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		text, err := oneLine(what, option, line)
		return string(text), err
	}
	if current, err = read("current password", "current-file", c.CurrentFile); err != nil {
		return "", "", err
	}
	if next, err = read("new password", "new-file", c.NewFile); err != nil {
		return "", "", err
	}
	if c.NewFile == "" {
		err = askAgain(person, "new password", "new-file", []byte(next))
	}
	return current, next, err
}

// askAgain asks a person at a terminal once more for a password that nobody could see.
func askAgain(person *console, what, option string, first []byte) error {
	if !person.terminal() {
		return nil
	}
	again, err := readPassphrase(what+" again", option, "-", person)
	if err == nil && !bytes.Equal(again, first) {
		err = errors.New("nothing was changed: the new passwords differ")
	}
	return err
}
