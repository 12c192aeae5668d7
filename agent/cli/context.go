package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/contexts"
)

// contextCommand are the commands for the sites that a person works with.
type contextCommand struct {
	Add    addContextCommand    `cmd:"" help:"Add a context: the address of a site, your tenant there, and where your token is."`
	Use    useContextCommand    `cmd:"" help:"Choose the context of all commands that name no other."`
	List   listContextsCommand  `cmd:"" help:"List the contexts, with * at the current one."`
	Show   showContextCommand   `cmd:"" help:"Show a context, without its token."`
	Delete deleteContextCommand `cmd:"" help:"Delete a context and the token of its login."`
}

// addContextCommand adds a context.
type addContextCommand struct {
	Name           string   `arg:"" help:"Name of the context, such as that of the site."`
	Endpoint       string   `help:"Address of the REST API." required:"" placeholder:"URL"`
	Tenant         string   `help:"Tenant to act on." placeholder:"NAME"`
	CAFile         string   `help:"Certificates to trust, PEM (default: the system's)." name:"ca-file" type:"path" placeholder:"FILE"`
	User           string   `help:"User who logs in. The token of osupgrade-agent login is kept for this context." placeholder:"NAME" xor:"proof"`
	TokenFile      string   `help:"File with the token." type:"path" placeholder:"FILE" xor:"proof"`
	TokenCommand   string   `help:"Program that prints the token, such as that of a password store. It is run without a shell by each command that needs the token." placeholder:"PROGRAM" xor:"proof"`
	TokenArg       []string `help:"Argument of --token-command (repeatable)." sep:"none" placeholder:"TEXT"`
	ClientCertFile string   `help:"Client certificate, PEM." name:"client-cert-file" type:"path" placeholder:"FILE" xor:"proof"`
	ClientKeyFile  string   `help:"Private key of --client-cert-file, PEM." name:"client-key-file" type:"path" placeholder:"FILE"`
	Replace        bool     `help:"Replace the context of this name, if there is one."`
}

// Help describes the command.
func (c *addContextCommand) Help() string {
	return `The contexts are in $XDG_CONFIG_HOME/osupgrade/contexts.yaml (default: ~/.config), which only you may read. It names
tokens and contains none. A command uses the context of --context, of the variable OSUPGRADE_CONTEXT, or of context use.
Its other flags and the variables OSUPGRADE_* override the values of the context. With an address from --endpoint or
OSUPGRADE_ENDPOINT a command uses no context, because a token belongs to its site.`
}

// Run implements the command.
func (c *addContextCommand) Run(ctx context.Context, out io.Writer, known *sites) error {
	if err := checkName("name", c.Name, "a context"); err != nil {
		return misused(err)
	}
	added := contexts.Context{
		Endpoint: c.Endpoint, Tenant: c.Tenant, CAFile: c.CAFile, User: c.User,
		TokenFile: c.TokenFile, ClientCertFile: c.ClientCertFile, ClientKeyFile: c.ClientKeyFile,
	}
	if c.TokenCommand != "" {
		added.TokenCommand = append([]string{c.TokenCommand}, c.TokenArg...)
	} else if len(c.TokenArg) > 0 {
		return misusedf("--token-arg is for --token-command, which is missing")
	}
	if err := added.Check(); err != nil {
		return misused(err)
	}
	if _, err := client.New(client.Options{Endpoint: c.Endpoint, Token: "none"}); err != nil {
		return misused(err)
	}
	isFirst := false
	err := known.store.Change(ctx, func(set *contexts.Set) error {
		if _, exists := set.Contexts[c.Name]; exists && !c.Replace {
			return fmt.Errorf("there is a context %s already; to replace it, add --replace", c.Name)
		}
		set.Contexts[c.Name], isFirst = added, set.Current == ""
		return known.store.DropToken(c.Name)
	})
	if err != nil {
		return err
	}
	next := ""
	if isFirst {
		next += " To use it: osupgrade-agent context use " + c.Name
	}
	if c.User != "" {
		next += " To log in: osupgrade-agent login --context " + c.Name
	}
	_, err = fmt.Fprintf(out, "Context %s is kept in %s.%s\n", c.Name, known.store.Path(), next)
	return err
}

// contextName is the argument of some of them.
type contextName struct {
	Name string `arg:"" help:"Name of the context, as context list shows it." complete:"contexts"`
}

// useContextCommand chooses the current context.
type useContextCommand struct{ contextName }

// Run implements the command.
func (c *useContextCommand) Run(ctx context.Context, out io.Writer, person *console, known *sites) error {
	var used contexts.Context
	err := known.store.Change(ctx, func(set *contexts.Set) (err error) {
		if used, err = set.Find(c.Name); err == nil {
			set.Current = c.Name
		}
		return err
	})
	if err != nil {
		return err
	}
	of := ""
	if used.Tenant != "" {
		of = ", tenant " + used.Tenant
	}
	warnOverrides(person, contextVariable)
	_, err = fmt.Fprintf(out, "Commands use context %s: %s%s.\n", c.Name, used.Endpoint, of)
	return err
}

// overriding are the variables that override values of a context.
var overriding = []string{endpointVariable, "OSUPGRADE_TENANT", "OSUPGRADE_TOKEN", "OSUPGRADE_TOKEN_FILE", "OSUPGRADE_CA_CERT_FILE", "OSUPGRADE_CLIENT_CERT_FILE", "OSUPGRADE_DATA"}

// warnOverrides tells of the variables that override the current context.
func warnOverrides(person *console, more ...string) {
	set := slices.DeleteFunc(append(more, overriding...), func(name string) bool { return strings.TrimSpace(os.Getenv(name)) == "" })
	if len(set) > 0 {
		_, _ = fmt.Fprintf(person.err, "warning: variables of this shell override the context: %s\n", strings.Join(set, ", "))
	}
}

// shownContext is a context in JSON.
type shownContext struct {
	Name string `json:"name"`
	// Current tells that commands use it that name no other.
	Current bool `json:"current"`
	contexts.Context
}

// proof says how a context gets in.
func (s shownContext) proof() string {
	switch {
	case s.TokenFile != "":
		return "token of " + s.TokenFile
	case len(s.TokenCommand) > 0:
		return "token by " + strings.Join(s.TokenCommand, " ")
	case s.User != "":
		return "login of " + s.User
	case s.ClientCertFile != "":
		return "certificate " + s.ClientCertFile
	}
	return ""
}

// shown returns all contexts, sorted by name.
func (s *sites) shown() ([]shownContext, error) {
	set, err := s.store.Load()
	if err != nil {
		return nil, err
	}
	current := cmp.Or(os.Getenv(contextVariable), set.Current)
	all := []shownContext{}
	for _, name := range set.Names() {
		all = append(all, shownContext{Name: name, Current: name == current, Context: set.Contexts[name]})
	}
	return all, nil
}

// listContextsCommand lists the contexts.
type listContextsCommand struct{ listOutput }

// Run implements the command.
func (c *listContextsCommand) Run(out io.Writer, person *console, known *sites) error {
	all, err := known.shown()
	if err != nil {
		return err
	}
	err = c.Output.show(out, all, func(to *terminal) error {
		if len(all) == 0 {
			to.line("There are no contexts. To add one: osupgrade-agent context add NAME --endpoint URL --tenant TENANT --user USER")
			return nil
		}
		var t table
		t.add("", "NAME", "ENDPOINT", "TENANT", "AS")
		for _, one := range all {
			mark := ""
			if one.Current {
				mark = "*"
			}
			t.add(mark, one.Name, one.Endpoint, one.Tenant, one.proof())
		}
		t.print(to)
		return nil
	})
	if len(all) > 0 {
		warnOverrides(person)
	}
	return err
}

// showContextCommand shows a context.
type showContextCommand struct {
	listOutput
	Name string `arg:"" optional:"" help:"Name of the context (default: the current one)." complete:"contexts"`
}

// Run implements the command.
func (c *showContextCommand) Run(out io.Writer, known *sites) error {
	all, err := known.shown()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(one shownContext) bool { return one.Name == c.Name || c.Name == "" && one.Current })
	switch {
	case i < 0 && c.Name == "":
		return errors.New("there is no current context; name one, or choose one with osupgrade-agent context use")
	case i < 0:
		set, err := known.store.Load()
		if err == nil {
			_, err = set.Find(c.Name)
		}
		return err
	}
	one := all[i]
	return c.Output.show(out, one, func(to *terminal) error {
		var f facts
		f.add("context", one.Name)
		f.add("endpoint", one.Endpoint)
		f.add("tenant", one.Tenant)
		f.add("ca-file", one.CAFile)
		f.add("as", one.proof())
		f.print(to)
		return nil
	})
}

// deleteContextCommand deletes a context.
type deleteContextCommand struct{ contextName }

// Run implements the command.
func (c *deleteContextCommand) Run(ctx context.Context, out io.Writer, known *sites) error {
	wasCurrent := false
	err := known.store.Change(ctx, func(set *contexts.Set) error {
		if _, err := set.Find(c.Name); err != nil {
			return err
		}
		maps.DeleteFunc(set.Contexts, func(name string, _ contexts.Context) bool { return name == c.Name })
		if wasCurrent = set.Current == c.Name; wasCurrent {
			set.Current = ""
		}
		return known.store.DropToken(c.Name)
	})
	if err != nil {
		return err
	}
	now := ""
	if wasCurrent {
		now = " It was the current one, so now there is none."
	}
	_, err = fmt.Fprintf(out, "Context %s is deleted.%s\n", c.Name, now)
	return err
}

// sites are the contexts of whoever runs the program.
type sites struct {
	store contexts.Store
	// run runs a program that prints a token.
	run func(words []string) ([]byte, error)
	// warnings is where people are warned; nil where nobody reads it. warned tells that they were.
	warnings io.Writer
	warned   bool
	// login is the context whose login the command has used; empty if it has used none.
	login string
}

// The variables that choose a site.
const (
	contextVariable  = "OSUPGRADE_CONTEXT"
	endpointVariable = "OSUPGRADE_ENDPOINT"
)

// choice is what a command line and the environment say of the site to call.
type choice struct {
	// flag and variable name a context, the others an address.
	flag, variable                 string
	endpointFlag, endpointVariable string
}

// of returns the name of the context to use, by the current one; empty if there is none. An
// address that is given together with a name may be that of another site.
func (c choice) of(current string) (string, error) {
	const twice = "%s names a site by context %s, and %s names it by an address; leave one of them out"
	switch {
	case c.flag != "" && c.endpointFlag != "":
		return "", fmt.Errorf(twice, "--context", c.flag, "--endpoint")
	case c.endpointFlag != "":
		return "", nil
	case c.flag != "" && c.endpointVariable != "":
		return "", fmt.Errorf(twice, "--context", c.flag, "the variable "+endpointVariable)
	case c.flag != "":
		return c.flag, nil
	case c.variable != "" && c.endpointVariable != "":
		return "", fmt.Errorf(twice, "the variable "+contextVariable, c.variable, "the variable "+endpointVariable)
	case c.endpointVariable != "":
		return "", nil
	case c.variable != "":
		return c.variable, nil
	}
	return current, nil
}

// usedContext is the context of a command. Its name is empty if the command uses none.
type usedContext struct {
	name string
	contexts.Context
	// several tells that there are others.
	several bool
	// typed tells that a flag of the command names it.
	typed bool
}

// of returns the context of a command.
func (s *sites) of(parsed *kong.Context) (usedContext, error) {
	asked := choice{
		flag: typedFlag(parsed, "context"), variable: os.Getenv(contextVariable),
		endpointFlag: typedFlag(parsed, "endpoint"), endpointVariable: os.Getenv(endpointVariable),
	}
	// Only a command that may use a context fails because of the file.
	if name, err := asked.of("any"); err != nil || name == "" {
		return usedContext{}, misused(err)
	}
	set, err := s.store.Load()
	if err != nil {
		return usedContext{}, err
	}
	name, err := asked.of(set.Current)
	if err != nil || name == "" {
		return usedContext{}, misused(err)
	}
	found, err := set.Find(name)
	return usedContext{name: name, Context: found, several: len(set.Contexts) > 1, typed: asked.flag != ""}, misused(err)
}

// typedFlag returns the value of a flag that was typed; empty if it was not.
func typedFlag(parsed *kong.Context, name string) string {
	for _, p := range parsed.Path {
		if p.Flag != nil && p.Flag.Name == name && !p.Resolved {
			return fmt.Sprint(parsed.FlagValue(p.Flag))
		}
	}
	return ""
}

// Validate implements kong.Resolver.
func (s *sites) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver: the current context, its tenant and its user stand for flags
// that are missing.
func (s *sites) Resolve(parsed *kong.Context, path *kong.Path, flag *kong.Flag) (any, error) {
	byName := flag.Name == "context" && os.Getenv(contextVariable) == ""
	byTenant := flag.Name == "tenant" && slices.Contains(flag.Envs, "OSUPGRADE_TENANT") && os.Getenv("OSUPGRADE_TENANT") == ""
	byUser := flag.Name == "user" && path.Node() != nil && path.Node().Name == "login"
	if !byName && !byTenant && !byUser || !hasFlag(parsed, "context") {
		return nil, nil
	}
	used, err := s.of(parsed)
	switch {
	case err != nil && flag.Required:
		return nil, contextError{err}
	case err != nil: // A command that needs a site says so itself.
		return nil, nil //nolint:nilerr // see above
	case byName && used.name != "":
		return used.name, nil
	case byTenant && used.Tenant != "":
		return used.Tenant, nil
	case byUser && used.User != "":
		return used.User, nil
	}
	return nil, nil
}

// contextError is what is wrong with the context of a command, before the command is called.
type contextError struct{ error }

// Unwrap lets errors.AsType see what is wrong.
func (e contextError) Unwrap() error { return e.error }

func hasFlag(parsed *kong.Context, name string) bool {
	return slices.ContainsFunc(parsed.Flags(), func(f *kong.Flag) bool { return f.Name == name })
}

// tokenPrinter runs programs that print a token. They may ask a person, and never read what is
// the input of the command.
func tokenPrinter(ctx context.Context, person *console) func(words []string) ([]byte, error) {
	return func(words []string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // the operator's own program
		cmd.Stderr = person.err
		if person.terminal() {
			cmd.Stdin = person.in
		}
		return cmd.Output()
	}
}

// token returns the token of a context; empty if the context has a certificate.
func (s *sites) token(used usedContext) (string, error) {
	switch {
	case used.TokenFile != "":
		text, err := readSecret("token-file", used.TokenFile)
		return string(text), inContext(used.name, err)
	case len(used.TokenCommand) > 0:
		text, err := s.run(used.TokenCommand)
		if err == nil && strings.TrimSpace(string(text)) == "" {
			err = errors.New("it printed no token")
		}
		if err != nil {
			err = fmt.Errorf("token-command: %s: %w", used.TokenCommand[0], err)
		}
		return string(text), inContext(used.name, err)
	case used.User != "":
		s.login = used.name
		text, err := readSecret("token", s.store.TokenPath(used.name))
		if errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("context %s: %s is not logged in; run %s", used.name, used.User, loginTo(used.name))
		}
		return string(text), inContext(used.name, err)
	}
	return "", nil
}

// warnOfToken warns once that the token of the variable is used instead of what the context has.
func (s *sites) warnOfToken(used usedContext) {
	proof := shownContext{Context: used.Context}.proof()
	if s.warnings == nil || s.warned || proof == "" {
		return
	}
	s.warned = true
	_, _ = fmt.Fprintf(s.warnings, "warning: OSUPGRADE_TOKEN overrides the %s of context %s; to use the context, unset OSUPGRADE_TOKEN\n", proof, used.name)
}

// loginTo is the command that logs in.
func loginTo(name string) string { return "osupgrade-agent login --context " + name }

// inContext says of an error which context it is about.
func inContext(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("context %s: %w", name, err)
}

// otherProof says how the context gets in, if not by a login; empty if nothing speaks against one.
func (u usedContext) otherProof() string {
	if len(u.Proofs()) == 0 || u.User != "" {
		return ""
	}
	return u.Proofs()[0]
}

// expired is what to do about a login that the site refuses; empty if the error is another one.
func (s *sites) expired(err error) string {
	if s.login == "" || !client.HasStatus(err, 401) {
		return ""
	}
	return "; to log in again: " + loginTo(s.login)
}
