package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// waitingHost chooses a host that waits for approval.
type waitingHost struct {
	siteOperator
	Host string `arg:"" help:"Name of the host, as hosts --waiting shows it."`
	Key  string `help:"Key of the host, if several machines wait under one name." placeholder:"KEY"`
}

// decide sends what a person has decided on the host.
func (c *waitingHost) decide(ctx context.Context, out io.Writer, log *slog.Logger, send func(*client.Client, context.Context, string, string, string) error, done string) error {
	api, err := c.open(ctx, log)
	if err != nil {
		return err
	}
	defer api.done()
	all, err := api.WaitingHosts(ctx, c.Tenant)
	if err != nil {
		return err
	}
	host, err := c.choose(all)
	if err != nil {
		return err
	}
	if err := send(api.Client, ctx, c.Tenant, host.Host, host.PublicKey); err != nil {
		return err
	}
	return c.Output.say(out, host, "Host %s (from %s, key %s) %s", host.Host, host.From, host.PublicKey, done)
}

// choose returns the host that is meant.
func (c *waitingHost) choose(all []v1.WaitingHost) (v1.WaitingHost, error) {
	all = slices.DeleteFunc(all, func(h v1.WaitingHost) bool {
		return h.Host != c.Host || c.Key != "" && h.PublicKey != c.Key
	})
	switch {
	case len(all) == 0 && c.Key != "":
		return v1.WaitingHost{}, fmt.Errorf("no host %.200q waits for approval with the key %.100q; see osupgrade-agent hosts --waiting", c.Host, c.Key)
	case len(all) == 0:
		return v1.WaitingHost{}, fmt.Errorf("no host %.200q waits for approval; see osupgrade-agent hosts --waiting", c.Host)
	case len(all) > 1:
		keys := make([]string, len(all))
		for i, h := range all {
			keys[i] = h.PublicKey + " from " + h.From
		}
		return v1.WaitingHost{}, misusedf("%d machines wait under the name %s; choose one with --key: %s", len(all), c.Host, strings.Join(keys, ", "))
	}
	return all[0], nil
}

// approveHostCommand lets a host in.
type approveHostCommand struct{ waitingHost }

// Help describes the command.
func (c *approveHostCommand) Help() string {
	return "Compare the key with the one that worker join printed on the host: a name proves nothing."
}

// Run implements the command.
func (c *approveHostCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	return c.decide(ctx, out, log, (*client.Client).ApproveHost, "is approved: its worker connects within a minute or two.")
}

// refuseHostCommand ends its wait.
type refuseHostCommand struct{ waitingHost }

// Run implements the command.
func (c *refuseHostCommand) Run(ctx context.Context, out io.Writer, log *slog.Logger) error {
	return c.decide(ctx, out, log, (*client.Client).RefuseHost, "is refused: it cannot join with this key and join token.")
}

// waiting lists the hosts that wait for approval.
func (c *hostsCommand) waiting(ctx context.Context, out io.Writer, api *client.Client) error {
	all, err := api.WaitingHosts(ctx, c.Tenant)
	if err != nil {
		return err
	}
	return c.Output.show(out, all, func(to *terminal) error {
		if len(all) == 0 {
			to.line("No host waits for approval.")
			return nil
		}
		var t table
		t.add("HOST", "APPLICATION", "LABELS", "FROM", "SINCE", "UNTIL", "KEY")
		for _, h := range all {
			t.add(h.Host, h.Application, labelsLine(h.Labels), h.From, c.format().at(h.At), c.format().at(h.Expires), h.PublicKey)
		}
		t.print(to)
		return nil
	})
}

// adviseApprovals says which hosts wait for approval.
func adviseApprovals(state v1.State) []advice {
	if state.WaitingHosts == 0 || len(state.FirstWaiting) == 0 {
		return nil
	}
	names := make([]string, len(state.FirstWaiting))
	for i, h := range state.FirstWaiting {
		names[i] = fmt.Sprintf("%s (from %s)", h.Host, h.From)
	}
	what := fmt.Sprintf("%s for approval: %s", text.Count(state.WaitingHosts, "host waits", "hosts wait"), text.ListOf(names, state.WaitingHosts, len(names)))
	return []advice{{what, command("hosts", "--waiting")}, {"to let in the first of them", command("approve-host", state.FirstWaiting[0].Host)}}
}
