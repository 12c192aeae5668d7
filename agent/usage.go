package main

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// misuse is an error about what was typed, found before anything was done or
// asked of a server: a command that fails with it ends with exitUsage.
type misuse struct{ error }

// Unwrap lets errors.Is and errors.As see what is wrong.
func (m misuse) Unwrap() error { return m.error }

// misused says that an error is about what was typed; nil stays nil.
func misused(err error) error {
	if err == nil {
		return nil
	}
	return misuse{err}
}

func misusedf(format string, args ...any) error { return misuse{fmt.Errorf(format, args...)} }

// wrongFlags tells of the problems of a request in words of the command line,
// where each field is a flag.
func wrongFlags(problems v1.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, p := range problems {
		texts[i] = "--" + p.String()
	}
	return misused(errors.New(strings.Join(texts, "; ")))
}

// checkAddress checks that text is an address to listen on.
func checkAddress(name, text string) error {
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	switch {
	case text == "":
		return fmt.Errorf("%s is empty; use an address and a port from 0 to 65535", name)
	case err != nil:
		return fmt.Errorf("%s %q is not host:port; use an address and a port from 0 to 65535", name, text)
	}
	return nil
}

// checkName checks the name of something, such as a tenant.
func checkName(field, text, what string) error {
	if v1.ValidName(text) {
		return nil
	}
	return fmt.Errorf("%s: %.200q is not the name of %s; %s", field, text, what, v1.NameForm)
}

// hyphenated is how the parser tells of a negative number: it takes it for a
// flag.
var hyphenated = regexp.MustCompile(`^--([a-z-]+): expected \S+ value but got "(-[0-9]+)"`)

// explainUse tells what is wrong with arguments that could not be parsed.
func explainUse(err error) string {
	if found := hyphenated.FindStringSubmatch(err.Error()); found != nil {
		return fmt.Sprintf("--%s: %s is not possible; no flag takes a number below 0", found[1], found[2])
	}
	return err.Error()
}
