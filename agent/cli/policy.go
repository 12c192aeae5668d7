package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// policyCommand are the commands for the policies of a tenant.
type policyCommand struct {
	List   listPoliciesCommand `cmd:"" help:"List the policies of the tenant with their rules."`
	Show   showPolicyCommand   `cmd:"" help:"Print a policy in the form that policy put reads."`
	Put    putPolicyCommand    `cmd:"" help:"Write a policy: rules that users, approles and tokens can have in addition to roles."`
	Remove removePolicyCommand `cmd:"" help:"Remove a policy. It then allows nothing to those who still name it."`
}

// policyName is the argument of most of them.
type policyName struct {
	siteOperator
	Name string `arg:"" help:"Name of the policy."`
}

// listPoliciesCommand lists the policies.
type listPoliciesCommand struct{ siteOperator }

// Run implements the command.
func (c *listPoliciesCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	all, err := api.Policies(ctx, c.Tenant)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		err = api.knows(ctx, c.Tenant)
	}
	if err != nil {
		return err
	}
	if c.Output == asJSON {
		return c.json(out, all)
	}
	if len(all) == 0 {
		_, err = fmt.Fprintf(out, "Tenant %s has no policies. To make one: osupgrade-agent policy put NAME --file FILE\n", c.Tenant)
		return err
	}
	to := newTerminal(out)
	for _, p := range all {
		to.linef("%s (%s)", p.Name, text.Count(len(p.RestAPI.Rules), "rule", "rules"))
		for _, rule := range p.RestAPI.Rules {
			to.line("  " + ruleLine(rule))
		}
	}
	return to.err
}

// ruleLine says in a line what a rule allows and rejects.
func ruleLine(rule v1.PolicyRule) string {
	words := map[string][]string{}
	for operation, word := range rule.Operations {
		words[word] = append(words[word], operation)
	}
	parts := []string{rule.Path + ":"}
	for _, word := range []string{"allow", "reject"} {
		if operations := words[word]; len(operations) > 0 {
			slices.Sort(operations)
			parts = append(parts, word+" "+strings.Join(operations, ", "))
		}
	}
	if rule.Description != "" {
		parts = append(parts, "("+rule.Description+")")
	}
	return strings.Join(parts, " ")
}

// showPolicyCommand prints a policy.
type showPolicyCommand struct{ policyName }

// Run implements the command.
func (c *showPolicyCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	p, err := api.Policy(ctx, c.Tenant, c.Name)
	if err != nil {
		return err
	}
	if c.Output == asJSON {
		return c.json(out, p)
	}
	_, body, err := v1.Encode(document.YAML, p)
	if err == nil {
		_, err = out.Write(body)
	}
	return err
}

// putPolicyCommand writes a policy.
type putPolicyCommand struct {
	policyName
	File   string `help:"File with the rules in YAML or JSON, as policy show prints them; - is standard input." short:"f" required:"" placeholder:"FILE"`
	DryRun bool   `help:"Ask the site to check the policy, and write nothing."`
}

// Run implements the command.
func (c *putPolicyCommand) Run(ctx context.Context, stdin io.Reader, out io.Writer, log *slog.Logger) error {
	body, err := c.read(stdin)
	if err != nil {
		return err
	}
	p, err := v1.DecodePolicy(document.YAML, body)
	if err != nil {
		return misused(fmt.Errorf("%s: %w", c.File, err))
	}
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	if err := api.PutPolicy(ctx, c.Tenant, c.Name, p, c.DryRun); err != nil {
		return err
	}
	did := "written"
	if c.DryRun {
		did = "right; nothing was written"
	}
	if c.Output == asJSON {
		return c.json(out, map[string]any{"tenant": c.Tenant, "policy": c.Name, "written": !c.DryRun})
	}
	_, err = fmt.Fprintf(out, "Policy %s of tenant %s is %s.\n", c.Name, c.Tenant, did)
	return err
}

// read returns the text of the file.
func (c *putPolicyCommand) read(stdin io.Reader) ([]byte, error) {
	if c.File == "-" {
		return io.ReadAll(io.LimitReader(stdin, v1.MaxBody+1))
	}
	return os.ReadFile(c.File)
}

// removePolicyCommand removes a policy.
type removePolicyCommand struct {
	policyName
	Force bool `help:"Remove it even if a user, an approle or a token names it."`
}

// Run implements the command.
func (c *removePolicyCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	if err := api.DeletePolicy(ctx, c.Tenant, c.Name, c.Force); err != nil {
		return err
	}
	if c.Output == asJSON {
		return c.json(out, map[string]string{"tenant": c.Tenant, "removed": c.Name})
	}
	_, err = fmt.Fprintf(out, "Policy %s of tenant %s is removed.\n", c.Name, c.Tenant)
	return err
}
