package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// statusCommand shows a tenant's state and its newest run.
type statusCommand struct {
	operator
}

// Run implements the command.
func (c *statusCommand) Run(ctx context.Context, out io.Writer) error {
	api, err := c.client()
	if err != nil {
		return err
	}
	state, err := api.State(ctx, c.Tenant, "")
	if err != nil {
		return err
	}
	runs, err := api.Runs(ctx, c.Tenant, v1.RunFilter{})
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return c.json(out, map[string]any{"state": state, "runs": runs})
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row(table, "tenant", c.Tenant)
	row(table, "status", state.Status)
	row(table, "next window", nextWindow(state))
	if state.Frozen != nil {
		row(table, "frozen", fmt.Sprintf("by %s until %s", state.Frozen.Calendar, state.Frozen.To.Format(time.RFC3339)))
	}
	if m := state.LastMissed; m != nil {
		row(table, "last missed", fmt.Sprintf("the window of %s: %s", m.Start.Format(time.RFC3339), m.Reason))
	}
	if state.WaitingFor != nil {
		row(table, "waiting for", fmt.Sprintf("%s since %s", state.WaitingFor.Detail, state.WaitingFor.Since.Format(time.RFC3339)))
	}
	row(table, "hosts", fmt.Sprint(len(state.ScheduledWorkers)))
	if len(runs) > 0 {
		showRun(table, runs[0])
	}
	return table.Flush()
}

func row(table io.Writer, name, value string) {
	_, _ = fmt.Fprintf(table, "%s:\t%s\n", name, value)
}

func nextWindow(s v1.State) string {
	switch {
	case s.NextUpgradeAt == nil:
		return "none is configured"
	case s.NextUpgradeIn == "0s":
		return "is open now"
	default:
		return fmt.Sprintf("opens at %s, in %s", s.NextUpgradeAt.Format(time.RFC3339), s.NextUpgradeIn)
	}
}

func showRun(table io.Writer, r v1.Run) {
	row(table, "run", fmt.Sprintf("%d, %s", r.ID, headline(r)))
	row(table, "begun", r.OpenedAt.Format(time.RFC3339)+" by "+beginner(r))
	if !r.Finished() {
		row(table, "not after", r.NotAfter.Format(time.RFC3339))
	}
	if r.RetryOf != 0 {
		row(table, "retry of", fmt.Sprintf("run %d", r.RetryOf))
	}
	if r.Paused != "" {
		row(table, "paused", r.Paused)
	}
	if r.WaitingFor != nil {
		row(table, "waiting for", fmt.Sprintf("%s since %s", r.WaitingFor.Detail, r.WaitingFor.Since.Format(time.RFC3339)))
	}
	if r.ExpectedEnd != nil {
		row(table, "expected end", r.ExpectedEnd.Format(time.RFC3339))
	}
	if r.Forecast != "" {
		row(table, "forecast", r.Forecast)
	}
	showStages(table, r)
	for _, h := range r.Hosts {
		row(table, "  "+h.Hostname, hostLine(h))
	}
}

// showStages prints the stages of a run that has more than one.
func showStages(table io.Writer, r v1.Run) {
	if len(r.Stages) < 2 {
		return
	}
	for _, g := range r.Stages {
		row(table, "  stage "+g.Name, fmt.Sprintf("%s: %d of %d upgraded, %d failed, %d out of service (at most %d)",
			g.Phase, g.Upgraded, g.Hosts, g.Failed, g.OutOfService, g.MaxUnavailable))
	}
}

// headline is a run's phase, or its result and why.
func headline(r v1.Run) string {
	if r.Result == "" {
		return r.Phase
	}
	if strings.HasPrefix(r.Reason, r.Result+" ") { // Such as "aborted by ann: fire drill".
		return r.Reason
	}
	return r.Result + ": " + r.Reason
}

func beginner(r v1.Run) string {
	if r.Trigger == "manual" {
		text := "hand (" + r.RequestedBy + ")"
		if r.RequestReason != "" {
			text += ": " + r.RequestReason
		}
		return text
	}
	return "its window"
}

func hostLine(h v1.RunHost) string {
	text := h.Status
	for _, more := range []string{h.Error, h.Note} {
		if more != "" {
			text += ": " + more
		}
	}
	if h.Slot != nil && h.Error != "" {
		text += fmt.Sprintf("; holds a slot since %s: %s", h.Slot.Format(time.RFC3339), h.SlotReason)
	}
	if h.Progress != "" {
		text += " (" + h.Progress + ")"
	}
	return text
}
