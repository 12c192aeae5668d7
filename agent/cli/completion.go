package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/cli/shell"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// completionCommand prints a script that completes the command line in a shell.
type completionCommand struct {
	Shell string `arg:"" help:"The shell: bash, zsh or fish." enum:"bash,zsh,fish"`
}

// Help describes the command.
func (c *completionCommand) Help() string {
	return `The script completes commands, flags, words and files. It also completes the names of hosts, runs,
stages, environments and tenants, labels and roles where a context, OSUPGRADE_TOKEN or the flags typed so far let it ask the site. Load it in each new shell, by a line
in ~/.bashrc (bash 4.4 or later), ~/.zshrc (after compinit) or ~/.config/fish/config.fish:

    source <(osupgrade-agent completion bash)
    source <(osupgrade-agent completion zsh)
    osupgrade-agent completion fish | source

The script calls osupgrade-agent, so an upgrade of the program needs no new one.`
}

// Run implements the command.
func (c *completionCommand) Run(out io.Writer) error {
	_, err := io.WriteString(out, shell.Script(c.Shell, programName))
	return err
}

// completeCommand is what the script calls with the words typed so far.
type completeCommand struct {
	Words []string `arg:"" optional:""`
}

// Run implements the command.
func (c *completeCommand) Run(ctx context.Context, parsed *kong.Context, out io.Writer, program version, dial dialer, known *sites) error {
	_, err := io.WriteString(out, shell.Complete(parsed.Model.Node, c.Words, func(what string, given map[string]string) []shell.Word {
		if what == "contexts" {
			return known.words()
		}
		ctx, stop := context.WithTimeout(ctx, completionLimit)
		defer stop()
		silent := &sites{store: known.store, run: tokenPrinter(ctx, &console{in: strings.NewReader(""), err: io.Discard})}
		api, tenant, err := siteOf(given, program, dial, silent)
		if err != nil {
			return nil
		}
		defer api.Close()
		return namesOf(ctx, api, tenant, what)
	}))
	return err
}

// completionLimit is how long a site may take to answer: somebody waits at the keyboard.
const completionLimit = time.Second

// siteOf reads which site and tenant a command would call, from its flags and variables.
func siteOf(given map[string]string, program version, dial dialer, known *sites) (*client.Client, string, error) {
	var to struct {
		connection
		Tenant string `env:"OSUPGRADE_TENANT"`
	}
	parser, err := kong.New(&to, kong.Bind(program, dial, known), kong.Resolvers(known), kong.NamedMapper("path", kong.MapperFunc(pathMapper)))
	if err == nil {
		err = withoutEmptyPaths(parser)
	}
	if err != nil {
		return nil, "", err
	}
	var args []string
	for _, f := range parser.Model.Flags {
		if value, ok := given[f.Name]; ok && !f.IsBool() {
			args = append(args, "--"+f.Name+"="+value)
		}
	}
	if _, err := parser.Parse(args); err != nil {
		return nil, "", err
	}
	api, err := to.client()
	return api, to.Tenant, err
}

// words are the names of the contexts.
func (s *sites) words() []shell.Word {
	set, err := s.store.Load()
	if err != nil {
		return nil // What cannot be completed can be typed.
	}
	var all []shell.Word
	for _, name := range set.Names() {
		all = append(all, shell.Word{Text: name, Help: set.Contexts[name].Endpoint})
	}
	return all
}

// namesOf returns the names of a kind, as the tag complete has it. A site that does not
// answer has none: what cannot be completed can be typed.
func namesOf(ctx context.Context, api *client.Client, tenant, what string) []shell.Word {
	var names []shell.Word
	add := func(name, help string) { names = append(names, shell.Word{Text: name, Help: help}) }
	switch what {
	case "hosts":
		hosts, _, _ := api.HostNames(ctx, tenant, v1.Selector{})
		for _, name := range hosts {
			add(name, "")
		}
	case "labels", "roles":
		hosts, _ := api.LabelledHosts(ctx, tenant)
		for _, word := range distinct(what, hosts) {
			add(word, "")
		}
	case "runs":
		runs, _ := api.Runs(ctx, tenant, v1.RunFilter{})
		for _, r := range runs {
			add(fmt.Sprint(r.ID), headline(timeFlags{}.format(), r))
		}
	case "stages":
		runs, _ := allUnderWay(ctx, api, tenant)
		for _, s := range stagesOf(runs) {
			add(s.Name, s.Phase)
		}
	case "environments":
		environments, _ := api.EnvironmentStatuses(ctx, tenant)
		for _, e := range environments {
			add(e.Name, e.Status)
		}
	case "releases":
		releases, _ := api.Releases(ctx, tenant)
		for _, r := range releases {
			add(r.Name, r.Version)
		}
	case "tenants":
		statuses, _ := api.Statuses(ctx)
		for _, s := range statuses {
			add(s.Tenant, "")
		}
	case "calendars":
		calendars, _ := api.CalendarStates(ctx, tenant)
		for _, c := range calendars {
			add(c.Name, c.Host)
		}
	case "objects":
		return objectWords(ctx, api, tenant)
	case "webhooks":
		webhooks, _ := api.Webhooks(ctx, tenant)
		for _, w := range webhooks {
			add(w.Name, "")
		}
	}
	return names
}

// stagesOf returns the stages of some runs, each name once.
func stagesOf(runs []v1.Run) (all []v1.RunStage) {
	for _, r := range runs {
		for _, s := range r.Stages {
			if !slices.ContainsFunc(all, func(other v1.RunStage) bool { return other.Name == s.Name }) {
				all = append(all, s)
			}
		}
	}
	return all
}

// distinct returns each label, as KEY=VALUE, or each role that a host has, once and in order.
func distinct(what string, hosts []v1.Host) []string {
	found := map[string]bool{}
	for _, h := range hosts {
		if what == "roles" {
			found[h.Role] = true
			continue
		}
		for key, value := range h.Labels {
			found[key+"="+value] = true
		}
	}
	delete(found, "")
	return slices.Sorted(maps.Keys(found))
}
