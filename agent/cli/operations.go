package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// operation is a method of the client that asks something of a run.
type operation func(api *client.Client, ctx context.Context, tenant string, body v1.Ask) (v1.Run, error)

// asking is the common part of the commands that ask something of the run under
// way.
type asking struct {
	reasoned
	environmentFlag
}

// reasoned is the common part of the commands that need a reason.
type reasoned struct {
	operator
	Reason string `help:"Why; it is stored with the run." required:""`
}

// asks lets a person confirm what a request costs the run under way, if there is one. A wrong request
// is refused before that. If several runs may be meant, it asks nothing: the site refuses.
func (c *reasoned) asks(ctx context.Context, confirm *confirming, person *console, of v1.Selector, cost func(v1.Run) string) error {
	if confirm.Yes || strings.TrimSpace(c.Reason) == "" || len(of.Validate()) > 0 {
		return nil
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	current, err := underWay(ctx, api, c.Tenant, of)
	if err != nil || current == nil {
		return err
	}
	return confirm.confirm(person, cost(*current))
}

// do asks, and prints the result: done returns the sentence about the run.
func (c *asking) do(ctx context.Context, out io.Writer, what string, body v1.Ask, ask operation, done func(v1.Run) string) error {
	if strings.TrimSpace(c.Reason) == "" {
		return misusedf("--reason is empty; say why: it is stored with the run")
	}
	body.Reason, body.Environment = c.Reason, c.Environment
	if wrong := body.Validate(what); len(wrong) > 0 {
		return misused(wrong)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	answer, err := ask(api, ctx, c.Tenant, body)
	if err != nil {
		return c.format().refusal(err)
	}
	return c.Output.say(out, answer, "%s", done(answer))
}

// isNow returns the sentence about the run after the operation.
func isNow(words string) func(v1.Run) string {
	return func(r v1.Run) string { return fmt.Sprintf("Run %d%s %s.", r.ID, ofEnvironment(r), words) }
}

// environmentOf is the name of the environment of a run.
func environmentOf(r v1.Run) string { return cmp.Or(r.Environment, v1.DefaultEnvironment) }

// ofEnvironment says of which environment a run is; empty for default.
func ofEnvironment(r v1.Run) string {
	if r.Environment == "" {
		return ""
	}
	return " of " + r.Environment
}

// pauseCommand pauses the run under way.
type pauseCommand struct {
	asking
}

// Run implements the command.
func (c *pauseCommand) Run(ctx context.Context, out io.Writer) error {
	return c.do(ctx, out, "pause", v1.Ask{}, (*client.Client).Pause, paused)
}

// paused returns the sentence about a run that was paused.
func paused(r v1.Run) string {
	words := "is paused: hosts that have started are finished, and no other host starts until you resume it"
	if step := stepInProgress(r); step != "" {
		words = "is paused: step " + step + " is finished, and no host and no other step starts until you resume it"
	}
	return isNow(words)(r)
}

// resumeCommand resumes it.
type resumeCommand struct {
	asking
	ResetFailures bool `help:"Reset the failure count: hosts that have failed so far no longer count against max-failures."`
}

// Run implements the command.
func (c *resumeCommand) Run(ctx context.Context, out io.Writer) error {
	words := "continues; the hosts that have failed still count against max-failures"
	if c.ResetFailures {
		words = "continues; its failure count is reset"
	}
	return c.do(ctx, out, "resume", v1.Ask{ResetFailures: c.ResetFailures}, (*client.Client).Resume, isNow(words))
}

// abortCommand aborts it.
type abortCommand struct {
	asking
	confirming
	All bool `help:"Abort the runs of all environments. If one cannot be aborted, the others still are, and the exit code is 1."`
	Now bool `help:"End the run at once, without waiting for hosts that are being upgraded: they stay out of service until they report, are released or are deleted. A step in progress is left as it is."`
}

// Help is the longer text of --help.
func (c *abortCommand) Help() string {
	return "No further host is touched and no further step begins, and the run ends once the hosts that are being upgraded, or the step in progress, have answered or timed out. " +
		"If the run is already aborting, --now ends it at once."
}

// Run implements the command.
func (c *abortCommand) Run(ctx context.Context, person *console, out io.Writer) error {
	if c.All {
		return c.abortAll(ctx, person, out)
	}
	if err := c.asks(ctx, &c.confirming, person, v1.Selector{Environments: c.environments()}, func(r v1.Run) string { return costOfAbort(r, c.Now) }); err != nil {
		return err
	}
	return c.do(ctx, out, "abort", v1.Ask{Now: c.Now}, (*client.Client).Abort, func(r v1.Run) string {
		return c.aborted(r, cmp.Or(r.Environment, c.Environment))
	})
}

// Validate implements kong's hook.
func (c *abortCommand) Validate() error {
	if c.All && c.Environment != "" {
		return errors.New("--all aborts the runs of all environments; leave out --environment, or --all")
	}
	return c.operator.Validate()
}

// abortAll aborts the runs of all environments.
func (c *abortCommand) abortAll(ctx context.Context, person *console, out io.Writer) error {
	body := v1.Ask{Reason: c.Reason, All: true, Now: c.Now}
	if wrong := body.Validate("abort"); len(wrong) > 0 {
		return wrongFlags(wrong)
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	if !c.Yes {
		current, err := allUnderWay(ctx, api, c.Tenant)
		if err != nil {
			return err
		}
		if err := c.confirm(person, costOfAll(current)); err != nil {
			return err
		}
	}
	runs, err := api.AbortAll(ctx, c.Tenant, body)
	if err != nil {
		return c.format().refusal(err)
	}
	return c.Output.show(out, runs, func(to *terminal) error {
		if len(runs) == 0 {
			to.line("No run is in progress.")
		}
		for _, r := range runs {
			in := r.Environment
			if len(runs) > 1 {
				in = environmentOf(r)
			}
			to.line(c.aborted(r, in))
		}
		return nil
	})
}

// aborted returns the sentence about a run that was aborted. in is the environment that its commands
// name; empty for none.
func (c *abortCommand) aborted(r v1.Run, in string) string {
	switch {
	case r.Finished():
		return fmt.Sprintf("Run %d%s has ended as %s.%s", r.ID, ofEnvironment(r), headline(c.format(), r), toRelease(r))
	case r.EndsBy == nil:
		return fmt.Sprintf("Run %d%s is aborting: no further host is touched.", r.ID, ofEnvironment(r))
	}
	ends := "the hosts that have started have answered or timed out"
	if step := stepInProgress(r); step != "" {
		ends = "step " + step + " is finished or has timed out"
	}
	return fmt.Sprintf("Run %d%s is aborting: no further host is touched. It ends once %s, by %s at the latest. "+
		"To end it now: %s", r.ID, ofEnvironment(r), ends, c.format().at(*r.EndsBy), inEnvironment(in, withReason("abort", "--now")))
}

// toRelease says how to free the slots that the hosts of a run hold; empty when none
// does.
func toRelease(r v1.Run) string {
	for _, h := range r.Hosts {
		if h.Slot != nil {
			return " To stop waiting for a host that will not answer: " + withReason("release", h.Hostname)
		}
	}
	return ""
}

// approveCommand approves a stage.
type approveCommand struct {
	asking
	Stage string `arg:"" help:"Name of the stage." complete:"stages"`
}

// Run implements the command.
func (c *approveCommand) Run(ctx context.Context, out io.Writer) error {
	return c.do(ctx, out, "approve", v1.Ask{Stage: c.Stage}, (*client.Client).Approve, func(r v1.Run) string {
		said := fmt.Sprintf("Stage %s of run %d%s is approved.", c.Stage, r.ID, ofEnvironment(r))
		if step := stepInProgress(r); step != "" && step != c.Stage {
			said += " It does not begin before step " + step + " is done."
		}
		return said
	})
}

// releaseCommand frees a slot by force.
type releaseCommand struct {
	asking
	confirming
	Host string `arg:"" help:"Name of the host, as status shows it." complete:"hosts"`
}

// Help is the longer text of --help.
func (c *releaseCommand) Help() string {
	return "A host that is silent, unhealthy or being upgraded holds a slot: it counts as out of service, and other hosts wait for it. " +
		"Release it only if it may stay as it is: another host then goes down in its place. " +
		"Releasing a host that holds no slot, such as one that hangs while it prepares, removes it from the run. " +
		"You can release any host during a run, and after the run a host that still holds a slot. " +
		"You release one host at a time, because each takes the place of another that goes down: there is no --label and no --role. " +
		"Releasing a host that is locked, because it reboots by itself, frees its lock. " +
		"The site finds the run of the host, so that --environment is not needed."
}

// Run implements the command.
func (c *releaseCommand) Run(ctx context.Context, person *console, out io.Writer) error {
	if err := c.asks(ctx, &c.confirming, person, v1.Selector{Hosts: []string{c.Host}}, func(r v1.Run) string { return costOfHost(r, c.Host, "Releasing") }); err != nil {
		return err
	}
	return c.do(ctx, out, "release", v1.Ask{Host: c.Host}, (*client.Client).Release, c.released)
}

// released returns the sentence about a release. While no run is under way, the
// run is the newest one, which has ended: the host still held a slot of it.
func (c *releaseCommand) released(r v1.Run) string {
	switch {
	case r.ID == 0:
		return fmt.Sprintf("The lock of host %s is free, and the host is left as it is.", c.Host)
	case r.Finished():
		return fmt.Sprintf("The slot of host %s is free, and the host is left as it is. No run is in progress.", c.Host)
	}
	return fmt.Sprintf("Host %s is released: run %d neither waits for it nor touches it.", c.Host, r.ID)
}
