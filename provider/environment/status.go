package environment

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wayback"
)

// Status is what an environment is doing, as data sources show it.
type Status struct {
	Name          types.String   `tfsdk:"name"`
	Hosts         types.Int64    `tfsdk:"hosts"`
	Outdated      types.Int64    `tfsdk:"outdated"`
	Missed        types.Int64    `tfsdk:"missed"`
	Status        types.String   `tfsdk:"status"`
	Needs         []string       `tfsdk:"needs"`
	RunID         types.Int64    `tfsdk:"run_id"`
	Result        types.String   `tfsdk:"result"`
	WayBack       *wayback.Model `tfsdk:"way_back"`
	Promotion     *promotion     `tfsdk:"promotion"`
	NextUpgradeAt types.String   `tfsdk:"next_upgrade_at"`
	SkippedWindow *skippedWindow `tfsdk:"skipped_window"`
}

type skippedWindow struct {
	Start  types.String `tfsdk:"start"`
	End    types.String `tfsdk:"end"`
	By     types.String `tfsdk:"by"`
	Reason types.String `tfsdk:"reason"`
}

// StatusFromAPI returns the attributes of the server's answer.
func StatusFromAPI(e v1.EnvironmentStatus) Status {
	s := Status{
		Name: conversion.Text(e.Name), Status: conversion.Text(e.Status),
		Hosts: types.Int64Value(int64(e.Hosts)), Outdated: types.Int64Value(int64(e.Outdated)), Missed: types.Int64Value(int64(e.Missed)),
		Needs: append([]string{}, e.Needs...), RunID: types.Int64Null(), Result: types.StringNull(), NextUpgradeAt: conversion.Time(e.NextUpgradeAt),
		Promotion: promotionFromAPI(e.Promotion), SkippedWindow: skippedFromAPI(e.SkippedWindow),
	}
	if r := e.Run; r != nil {
		s.RunID, s.Result, s.WayBack = types.Int64Value(int64(r.ID)), conversion.Text(r.Result), wayback.Of(r.WayBack)
	}
	return s
}

func skippedFromAPI(w *v1.SkippedWindow) *skippedWindow {
	if w == nil {
		return nil
	}
	return &skippedWindow{Start: conversion.Time(&w.Start), End: conversion.Time(&w.End), By: conversion.Text(w.By), Reason: conversion.Text(w.Reason)}
}

// StatusAttributes are the attributes of a Status but for the name.
func StatusAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"hosts":           tenantobject.ComputedNumber("How many of its hosts would take part in a run now."),
		"outdated":        tenantobject.ComputedNumber("On how many of them an upgrade would change something."),
		"missed":          tenantobject.ComputedNumber("How many of them missed an upgrade."),
		"status":          tenantobject.ComputedText("What the environment is doing: `idle`, `waiting`, `preparing`, `upgrading`, `rebooting`, `verifying`, `paused` or `aborting`."),
		"needs":           needsAttribute(),
		"run_id":          tenantobject.ComputedNumber("The id of its newest run; null if there was none."),
		"result":          tenantobject.ComputedText("The result of that run; null until it ends."),
		"way_back":        tenantobject.ComputedObject("Until when that run could be rolled back; null if its rollout has no point of no return.", wayback.Attributes(tenantobject.ComputedText)),
		"promotion":       promotionAttribute(),
		"next_upgrade_at": tenantobject.ComputedText("When its next window that is not skipped opens (RFC 3339); null if none will open."),
		"skipped_window":  skippedAttribute(),
	}
}

func skippedAttribute() schema.Attribute {
	return tenantobject.ComputedObject("Its window that is open or opens next, if somebody has skipped it; null otherwise.", map[string]schema.Attribute{
		"start":  tenantobject.ComputedText("When the window opens (RFC 3339)."),
		"end":    tenantobject.ComputedText("When the window closes (RFC 3339)."),
		"by":     tenantobject.ComputedText("Who has skipped it."),
		"reason": tenantobject.ComputedText("Why."),
	})
}

func needsAttribute() schema.Attribute {
	return schema.ListAttribute{
		ElementType: types.StringType, Computed: true,
		MarkdownDescription: "What needs a person, the most urgent first, such as `approval`, `resume`, `hosts`, `failed` or `missed`; empty if nothing does.",
	}
}
