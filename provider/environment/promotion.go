package environment

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wayback"
)

// promotion is how far an environment has come to a release.
type promotion struct {
	Release    types.String   `tfsdk:"release"`
	Was        types.String   `tfsdk:"was"`
	Since      types.Int64    `tfsdk:"since"`
	Last       types.Int64    `tfsdk:"last"`
	HostsHave  types.Int64    `tfsdk:"hosts_have"`
	Hosts      types.Int64    `tfsdk:"hosts"`
	StepsDone  []string       `tfsdk:"steps_done"`
	WayBack    *wayback.Model `tfsdk:"way_back"`
	RolledBack *rolledBack    `tfsdk:"rolled_back"`
}

// rolledBack is the run that has rolled back the release.
type rolledBack struct {
	RunID  types.Int64  `tfsdk:"run_id"`
	At     types.String `tfsdk:"at"`
	By     types.String `tfsdk:"by"`
	Reason types.String `tfsdk:"reason"`
}

func promotionFromAPI(p *v1.Promotion) *promotion {
	if p == nil {
		return nil
	}
	m := &promotion{
		Release: conversion.Text(p.Release), Was: conversion.Text(p.Was), Since: types.Int64Value(int64(p.Since)), Last: types.Int64Value(int64(p.Last)),
		HostsHave: types.Int64Value(int64(p.Hosts.Has)), Hosts: types.Int64Value(int64(p.Hosts.Of)),
		StepsDone: append([]string{}, p.StepsDone...), WayBack: wayback.Of(p.WayBack),
	}
	if back := p.RolledBack; back != nil {
		m.RolledBack = &rolledBack{types.Int64Value(int64(back.Run)), conversion.Time(&back.At), conversion.Text(back.By), conversion.Text(back.Reason)}
	}
	return m
}

func promotionAttribute() schema.Attribute {
	return tenantobject.ComputedObject("How far the environment has come to a release, over all its runs; null if no run has gone to one.", map[string]schema.Attribute{
		"release":    tenantobject.ComputedText("The release to which its last run of all hosts went."),
		"was":        tenantobject.ComputedText("The release to which the environment went before; null if there is none."),
		"since":      tenantobject.ComputedNumber("The id of the first run to the release."),
		"last":       tenantobject.ComputedNumber("The id of the newest run to it."),
		"hosts_have": tenantobject.ComputedNumber("How many hosts have the release."),
		"hosts":      tenantobject.ComputedNumber("How many hosts would take part in a run now."),
		"steps_done": schema.ListAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: "The stages whose steps are done."},
		"way_back":   tenantobject.ComputedObject("Until when the release can be rolled back; null if the rollout has no point of no return.", wayback.Attributes(tenantobject.ComputedText)),
		"rolled_back": tenantobject.ComputedObject("The run that has rolled back the release; null while none has.", map[string]schema.Attribute{
			"run_id": tenantobject.ComputedNumber("The id of the run."),
			"at":     tenantobject.ComputedText("When it was opened (RFC 3339)."),
			"by":     tenantobject.ComputedText("Who started it."),
			"reason": tenantobject.ComputedText("Why."),
		}),
	})
}
