package cli

import (
	"context"
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
	operator
	Reason string `help:"Why; it is stored with the run." required:""`
}

// asks has a person confirm what a request costs the run under way, if there is one.
// A request without a reason is refused before that.
func (c *asking) asks(ctx context.Context, confirm *confirming, person *console, cost func(v1.Run) string) error {
	if confirm.Yes || strings.TrimSpace(c.Reason) == "" {
		return nil
	}
	api, err := c.client()
	if err != nil {
		return err
	}
	current, err := underWay(ctx, api, c.Tenant)
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
	body.Reason = c.Reason
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
	return func(r v1.Run) string { return fmt.Sprintf("Run %d %s.", r.ID, words) }
}

// pauseCommand pauses the run under way.
type pauseCommand struct {
	asking
}

// Run implements the command.
func (c *pauseCommand) Run(ctx context.Context, out io.Writer) error {
	return c.do(ctx, out, "pause", v1.Ask{}, (*client.Client).Pause, isNow("is paused: hosts that have started are finished, and no other host starts until you resume it"))
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
	Now bool `help:"End the run at once, without waiting for hosts that are being upgraded: they stay out of service until they report, are released or are deleted."`
}

// Help is the longer text of --help.
func (c *abortCommand) Help() string {
	return "No further host is touched, and the run ends once the hosts that are being upgraded have answered or timed out. " +
		"If the run is already aborting, --now ends it at once."
}

// Run implements the command.
func (c *abortCommand) Run(ctx context.Context, person *console, out io.Writer) error {
	if err := c.asks(ctx, &c.confirming, person, func(r v1.Run) string { return costOfAbort(r, c.Now) }); err != nil {
		return err
	}
	return c.do(ctx, out, "abort", v1.Ask{Now: c.Now}, (*client.Client).Abort, c.aborted)
}

// aborted returns the sentence about a run that was aborted.
func (c *abortCommand) aborted(r v1.Run) string {
	switch {
	case r.Finished():
		return fmt.Sprintf("Run %d has ended as %s.%s", r.ID, headline(c.format(), r), toRelease(r))
	case r.EndsBy == nil:
		return fmt.Sprintf("Run %d is aborting: no further host is touched.", r.ID)
	}
	return fmt.Sprintf("Run %d is aborting: no further host is touched. It ends once the hosts that have started have answered or timed out, by %s at the latest. "+
		"To end it now: %s", r.ID, c.format().at(*r.EndsBy), withReason("abort", "--now"))
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
		return fmt.Sprintf("Stage %s of run %d is approved.", c.Stage, r.ID)
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
		"Releasing a host that is locked, because it reboots by itself, frees its lock."
}

// Run implements the command.
func (c *releaseCommand) Run(ctx context.Context, person *console, out io.Writer) error {
	if err := c.asks(ctx, &c.confirming, person, func(r v1.Run) string { return costOfHost(r, c.Host, "Releasing") }); err != nil {
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
