package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// applyCommand writes what files declare.
type applyCommand struct {
	siteOperator
	files
	DryRun bool `help:"Show what would change, have the site check it, and write nothing."`
}

// Help is the longer text of --help.
func (c *applyCommand) Help() string {
	return "A file has up to ten members: config, rollout, and by name calendars, environments, budgets, releases, policies, users, approles and webhooks. Instead of ics, a calendar may have ics-file, the path of an .ics file, relative to the folder of this file. " +
		"The password of a new user is read from the file named in password-file, the secret of a new webhook from secret-file. To change them later, use password, credentials user or webhook add. " +
		"Each object is written as a whole. An object that no " +
		"file mentions stays as it is; one that is null is deleted. Freezes are written first, and what may start a run last. " +
		"If somebody else changes an object meanwhile, it is not overwritten: the command stops and says what was written."
}

// Run implements the command.
func (c *applyCommand) Run(ctx context.Context, stdin io.Reader, out io.Writer, log *slog.Logger) error {
	want, err := c.read(stdin)
	if err != nil {
		return err
	}
	api, err := c.openByToken(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	site, err := readSiteIntent(ctx, api.Client, c.Tenant, want.Keys())
	if err != nil {
		return err
	}
	changes, err := site.compare(ctx, want)
	if err != nil {
		return err
	}
	if c.Output == asText {
		if err := showChanges(out, changes); err != nil {
			return err
		}
	}
	warnings, err := site.validateAll(ctx, changes, want)
	if err != nil {
		return fmt.Errorf("nothing was written; the site refuses it:\n%w", err)
	}
	if c.Output == asText {
		showPlaced(newTerminal(out), warnings)
	}
	todo, done := changing(changes), 0
	if !c.DryRun {
		var told []warning
		done, told, err = site.writeAll(ctx, todo, want)
		before := len(warnings)
		if warnings = once(append(warnings, told...)); c.Output == asText {
			showPlaced(newTerminal(out), warnings[before:])
		}
	}
	if err != nil && c.Output == asText { // What was written stands in the error.
		return err
	}
	if printed := c.Output.say(out, appliedJSON(c.DryRun, changes, todo[:done], warnings), "%s", applied(c.DryRun, todo)); printed != nil {
		return printed
	}
	return err
}

// showChanges prints each object with what changes in it.
func showChanges(out io.Writer, changes []intent.ObjectChange) error {
	var b strings.Builder
	for _, s := range changes {
		fmt.Fprintf(&b, "%s: %s\n", s.Key, map[intent.Action]string{
			intent.Create: "new", intent.Change: "changed", intent.Delete: "deleted", intent.Keep: "unchanged",
		}[s.Action])
		for line := range strings.Lines(s.Diff) {
			b.WriteString("  " + line)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// applied is the last line of apply.
func applied(dryRun bool, todo []intent.ObjectChange) string {
	switch {
	case len(todo) == 0:
		return "Nothing to write: the site has it all."
	case dryRun:
		return "Nothing was written, because of --dry-run. It would be written in this order: " + keyList(todo) + "."
	}
	return "Written, in this order: " + keyList(todo) + "."
}

// appliedChange is a change of apply in JSON.
type appliedChange struct {
	Object  string `json:"object"`
	Name    string `json:"name,omitempty"`
	Action  string `json:"action"`
	Written bool   `json:"written"`
	Diff    string `json:"diff,omitempty"`
}

func appliedJSON(dryRun bool, changes, written []intent.ObjectChange, warnings []warning) map[string]any {
	list := make([]appliedChange, len(changes))
	for i, s := range changes {
		list[i] = appliedChange{Object: string(s.Key.Kind), Name: s.Key.Name, Action: string(s.Action), Diff: s.Diff}
		for _, w := range written {
			list[i].Written = list[i].Written || w.Key == s.Key
		}
	}
	return map[string]any{"dry-run": dryRun, "changes": list, "warnings": warnings}
}

// getCommand prints what a site has: a table, or what apply reads.
type getCommand struct {
	siteAPI
	timeFlags
	Tenant string   `help:"Tenant to act on." required:"" env:"OSUPGRADE_TENANT" complete:"tenants"`
	What   []string `arg:"" optional:"" help:"What to print: config, rollout, calendars, environments, budgets, releases, policies, users, approles or webhooks, or one of them, such as calendar/NAME (default: config, rollout, and all calendars, environments, budgets and releases)." complete:"objects"`
	Output format   `help:"Output format: text (a table for all of a kind, or else YAML), json or yaml." default:"text" short:"o" placeholder:"text|json|yaml"`
}

// Help is the longer text of --help.
func (c *getCommand) Help() string {
	return "apply -f reads the YAML or JSON that it prints. It never prints a password or a secret."
}

// Validate implements kong's hook.
func (c *getCommand) Validate() error { return c.Output.given() }

// Run implements the command.
func (c *getCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	asked, err := parseKeys(orIntent(c.What))
	if err != nil {
		return err
	}
	api, err := c.openByToken(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	if len(asked.keys) == 0 && len(asked.all) == 1 && c.Output == asText {
		return c.list(ctx, out, api, asked.all[0])
	}
	keys, err := asked.find(ctx, api.Client, c.Tenant)
	if err != nil {
		return err
	}
	site, err := readSiteIntent(ctx, api.Client, c.Tenant, keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, exists := site.etags[key]; len(c.What) > 0 && !exists {
			return lacks(ctx, api.Client, c.Tenant, key)
		}
	}
	if len(keys) == 0 {
		if err := api.knows(ctx, c.Tenant); err != nil {
			return err
		}
	}
	return c.Output.show(out, site.has, func(to *terminal) error {
		if err := c.noteFetched(ctx, to, site); err != nil {
			return err
		}
		text, err := site.has.Encode(document.YAML)
		to.print(string(text))
		return err
	})
}

// orIntent is what is meant by nothing.
func orIntent(what []string) []string {
	if len(what) == 0 {
		return []string{"config", "rollout", "calendars", "environments", "budgets", "releases"}
	}
	return what
}

// list prints all objects of a kind as a table.
func (c *getCommand) list(ctx context.Context, out io.Writer, api *siteClient, k kind) error {
	rows, err := k.list(ctx, api.Client, c.Tenant)
	if err == nil && len(rows) == 0 {
		err = api.knows(ctx, c.Tenant)
	}
	if err != nil {
		return err
	}
	to := newTerminal(out)
	if len(rows) == 0 {
		to.linef("Tenant %s has no %s.", c.Tenant, k.plural)
		return to.err
	}
	t := table{}
	t.add(k.head...)
	for _, row := range rows {
		t.add(row...)
	}
	t.print(to)
	return to.err
}

// noteFetched prints how old the calendars with a URL are, as comments.
func (c *getCommand) noteFetched(ctx context.Context, to *terminal, site *siteIntent) error {
	if !slices.ContainsFunc(slices.Collect(maps.Values(site.has.Calendars)), func(declared v1.Calendar) bool { return declared.URL != "" }) {
		return nil
	}
	states, err := site.api.CalendarStates(ctx, c.Tenant)
	for _, state := range states {
		if _, shown := site.has.Calendars[state.Name]; shown {
			to.line("# " + fetched(c.format(), state))
		}
	}
	return err
}

// validateCommand checks files.
type validateCommand struct {
	connection
	files
	Server bool   `help:"Ask the site to check it too; needs a token and a tenant."`
	Tenant string `help:"Tenant to act on, for --server." env:"OSUPGRADE_TENANT" complete:"tenants"`
}

// Help is the longer text of --help.
func (c *validateCommand) Help() string {
	return "Without --server it needs neither a site nor a token, and checks every key, type and value by the rules of this version."
}

// Run implements the command.
func (c *validateCommand) Run(ctx context.Context, stdin io.Reader, out io.Writer) error {
	want, err := c.read(stdin)
	if err != nil {
		return err
	}
	changes := intent.Compare(intent.Intent{}, want)
	if !c.Server {
		_, err = fmt.Fprintf(out, "Valid: %s.\n", keyList(changes))
		return err
	}
	if c.Tenant == "" {
		return misusedf("--server needs a tenant; set --tenant or OSUPGRADE_TENANT")
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	site := &siteIntent{api: api, tenant: c.Tenant}
	warnings, err := site.validateAll(ctx, changes, want)
	if err != nil {
		return fmt.Errorf("the site refuses it:\n%w", err)
	}
	showPlaced(newTerminal(out), warnings)
	_, err = fmt.Fprintf(out, "Valid, also for the site: %s.\n", keyList(changes))
	return err
}
