package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// auditCommand shows or exports the audit log of a tenant.
type auditCommand struct {
	siteAPI
	timeFlags
	Tenant string  `help:"Tenant whose audit log to read; * for what concerns all tenants." required:"" env:"OSUPGRADE_TENANT"`
	Output string  `help:"Output format: text, json (a list), jsonl (a record a line, as it is stored) or syslog (RFC 5424)." default:"text" enum:"text,json,jsonl,syslog" short:"o"`
	By     string  `help:"Only what this user, approle, token or host did." placeholder:"NAME"`
	Object string  `help:"Only what was done to this object, such as config, calendar/holidays or run/57, or to all objects of a kind, such as calendar." placeholder:"OBJECT"`
	Since  string  `help:"Only records of this time or later, such as 2026-11-21 (midnight in UTC) or 2026-11-21T01:00:00Z." placeholder:"TIME"`
	Until  string  `help:"Only records before this time." placeholder:"TIME"`
	Limit  int     `help:"Show at most this many records, the newest ones." default:"50"`
	After  *uint64 `help:"All records after the one with this number; 0 for all that are kept." placeholder:"SEQ"`
	Follow bool    `help:"Print new records as they come." short:"f"`
}

// Help describes the command.
func (c *auditCommand) Help() string {
	return `It needs the role admin; on the machine of the site, root and the site's user need no token. The command fails if records were changed or are missing, and names
them; --after 0 checks all records.

To export the log, remember the number of the last record that you have: --after SEQ --follow continues after it.`
}

// Validate implements kong's hook.
func (c *auditCommand) Validate() error {
	if c.Limit < 1 || c.Limit > v1.MaxAudit {
		return fmt.Errorf("--limit: %d is out of range; use 1 to %d", c.Limit, v1.MaxAudit)
	}
	if c.Follow && c.Output == "json" {
		return errors.New("--output: a list has no end with --follow; use jsonl")
	}
	return nil
}

// followEach is how often it is looked for new records.
const followEach = 2 * time.Second

// Run implements the command.
func (c *auditCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	filter := v1.AuditFilter{After: c.After, By: c.By, Object: c.Object, Limit: c.Limit}
	var errs [2]error
	filter.Since, errs[0] = readTime("--since", c.Since, time.UTC)
	filter.Until, errs[1] = readTime("--until", c.Until, time.UTC)
	if err := errors.Join(append(errs[:], wrongFlags(filter.Validate()))...); err != nil {
		return misused(err)
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	var damage []v1.AuditDamage
	show := c.printer(out)
	for first := true; ; first = false {
		read, err := readAudit(ctx, api.Client, c.Tenant, filter)
		if err != nil {
			return err
		}
		if first && len(read.Records) == 0 {
			if err := api.knows(ctx, c.Tenant); err != nil {
				return err
			}
		}
		if first || len(read.Records) > 0 {
			if err := show(read); err != nil {
				return err
			}
		}
		damage = append(damage, read.Damage...)
		if !c.Follow {
			break
		}
		if n := len(read.Records); n > 0 {
			filter.After = &read.Records[n-1].Seq
		} else if filter.After == nil {
			filter.After = &read.Last
		}
		if len(damage) > 0 {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(followEach):
		}
	}
	return damaged(damage)
}

// damaged returns what of a log is not as it was written; nil if all is.
func damaged(all []v1.AuditDamage) error {
	if len(all) == 0 {
		return nil
	}
	messages := make([]string, len(all))
	for i, d := range all {
		messages[i] = visible(d.Message)
	}
	return fmt.Errorf("the audit log is not as it was written: %s", strings.Join(messages, "; "))
}

// readAudit reads records; with after, all of them, of as many answers as it takes.
func readAudit(ctx context.Context, api *client.Client, tenant string, filter v1.AuditFilter) (v1.AuditLog, error) {
	if filter.After == nil {
		return api.Audit(ctx, tenant, filter)
	}
	filter.Limit = v1.MaxAudit
	all, err := api.Audit(ctx, tenant, filter)
	for next := all; err == nil && len(next.Records) == v1.MaxAudit; {
		filter.After = &next.Records[v1.MaxAudit-1].Seq
		if next, err = api.Audit(ctx, tenant, filter); err == nil {
			all.Records, all.Damage = append(all.Records, next.Records...), append(all.Damage, next.Damage...)
		}
	}
	return all, err
}

// printer returns what prints records in the format that is wanted.
func (c *auditCommand) printer(out io.Writer) func(v1.AuditLog) error {
	lines := func(line func(v1.AuditLog, v1.AuditRecord) (string, error)) func(v1.AuditLog) error {
		return func(read v1.AuditLog) error {
			for _, r := range read.Records {
				text, err := line(read, r)
				if err == nil {
					_, err = fmt.Fprintln(out, text)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	switch c.Output {
	case "json":
		return func(read v1.AuditLog) error { return printJSON(out, read.Records) }
	case "jsonl":
		return lines(func(_ v1.AuditLog, r v1.AuditRecord) (string, error) {
			text, err := json.Marshal(r)
			return string(text), err
		})
	case "syslog":
		return lines(func(read v1.AuditLog, r v1.AuditRecord) (string, error) { return audit.Syslog(read.Site, r), nil })
	}
	return func(read v1.AuditLog) error {
		to := newTerminal(out)
		listAudit(to, c.format(), read, c.Tenant)
		return to.err
	}
}

// auditColours are those of the results.
var auditColours = map[string]string{v1.AuditDone: green, v1.AuditRefused: yellow, v1.AuditFailed: red, v1.AuditUnknown: red}

func listAudit(to *terminal, at timeFormat, read v1.AuditLog, tenant string) {
	if len(read.Records) == 0 {
		to.linef("The audit log of tenant %s has no such record.", tenant)
		return
	}
	var t table
	t.add("SEQ", "AT", "WHO", "FROM", "ACTION", "OBJECT", "RESULT", "MORE")
	for _, r := range read.Records {
		var more []string
		for _, text := range []string{r.Detail, r.Reason, r.Error} {
			if text != "" {
				more = append(more, text)
			}
		}
		if r.Omitted > 0 {
			more = append(more, fmt.Sprintf("%d more that were refused before are not in the log", r.Omitted))
		}
		from, _, _ := strings.Cut(r.From, "]")
		if at := strings.LastIndexByte(r.From, ':'); at > 0 && from == r.From {
			from = r.From[:at]
		}
		t.addIn(map[int]string{6: auditColours[r.Result]}, fmt.Sprint(r.Seq), at.at(r.At), visible(audit.Sender(r)), visible(strings.TrimPrefix(from, "[")),
			visible(r.Action), visible(r.Object), visible(r.Result), visible(strings.Join(more, "; ")))
	}
	t.print(to)
}

// historyCommand shows how an object came to be what it is.
type historyCommand struct {
	siteAPI
	timeFlags
	Tenant string `help:"Tenant of the object; * for users and approles of all tenants." required:"" env:"OSUPGRADE_TENANT"`
	Output format `help:"Output format: text or json." default:"text" short:"o" placeholder:"text|json"`
	Object string `arg:"" help:"The object: config, rollout, calendar/NAME, environment/NAME, budget/NAME, release/NAME, user/NAME or approle/NAME."`
	Limit  int    `help:"Show at most this many changes, the newest ones." default:"10"`
}

// Help describes the command.
func (c *historyCommand) Help() string {
	return `It shows the changes in the audit log, newest last: who made each, the revisions before and after, and the lines that were
removed (-) and added (+). It needs a token with the role admin.`
}

// Validate implements kong's hook.
func (c *historyCommand) Validate() error {
	if c.Limit < 1 {
		return fmt.Errorf("--limit: %d is out of range; use 1 or more", c.Limit)
	}
	kind, name, named := strings.Cut(c.Object, "/")
	switch {
	case (kind == "config" || kind == "rollout") && !named:
	case (kind == "calendar" || kind == "environment" || kind == "budget" || kind == "release" || kind == "user" || kind == "approle") && name != "":
	default:
		return fmt.Errorf("%.100q is no object that has a history; use config, rollout, calendar/NAME, environment/NAME, budget/NAME, release/NAME, user/NAME or approle/NAME", c.Object)
	}
	return nil
}

// Run implements the command.
func (c *historyCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	var all uint64
	read, err := readAudit(ctx, api.Client, c.Tenant, v1.AuditFilter{After: &all, Object: c.Object})
	if err != nil {
		return err
	}
	changes := []v1.AuditRecord{}
	for _, r := range read.Records {
		if r.Result != v1.AuditRefused {
			changes = append(changes, r)
		}
	}
	changes = changes[max(0, len(changes)-c.Limit):]
	if len(changes) == 0 && c.Tenant != audit.AllTenants {
		if _, err := api.State(ctx, c.Tenant, ""); err != nil { // Such as that there is no such tenant.
			return err
		}
	}
	if c.Output == asJSON {
		return printJSON(out, changes)
	}
	at := c.format()
	to := newTerminal(out)
	if len(changes) == 0 {
		to.linef("The audit log of tenant %s has no change of %s.", c.Tenant, c.Object)
	}
	for i, r := range changes {
		if i > 0 {
			to.line("")
		}
		showChange(to, at, r)
	}
	for _, d := range read.Damage {
		to.linef("The audit log is not as it was written: %s.", visible(d.Message))
	}
	return to.err
}

// showChange prints a change with its diff.
func showChange(to *terminal, at timeFormat, r v1.AuditRecord) {
	revision := "revision " + r.After
	switch {
	case r.Before == "" && r.After == "": // By a command on the site's machine, or nobody knows.
		revision = strings.TrimRight(r.Action+", "+r.Detail, ", ")
	case r.Action == "delete":
		revision = "deleted, was revision " + r.Before
	case r.Before != "":
		revision += ", was " + r.Before
	default:
		revision += ", new"
	}
	if r.Result != v1.AuditDone {
		revision += ", " + r.Result
	}
	to.line(to.paint(bold, visible(fmt.Sprintf("%s  %s by %s from %s: %s", at.at(r.At), r.Object, audit.Sender(r), r.From, revision))))
	for line := range strings.Lines(r.Diff) {
		line = strings.TrimRight(line, "\n")
		colour := ""
		switch {
		case strings.HasPrefix(line, "+"):
			colour = green
		case strings.HasPrefix(line, "-"):
			colour = red
		}
		to.line("  " + to.paint(colour, visible(line)))
	}
}
