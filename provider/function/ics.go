package function

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
)

type parseICS struct{ named }

func newParseICS() function.Function { return parseICS{"parse_ics"} }

// Definition defines the function.
func (parseICS) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The events of an iCalendar text",
		MarkdownDescription: "Converts an iCalendar text (RFC 5545) to events, with the rules of `osupgrade-agent`, so that a configuration can select or change them before " +
			"it declares a calendar. To declare all of a text as it is, use `ics` of `osupgrade_calendar`.\n\n" +
			"The result is an object: `events` has the attributes of `events` of `osupgrade_calendar`, and `left_out` says which events of the text never happen or are " +
			"earlier revisions of others, at most 20. Moved and cancelled occurrences of a recurring event are in `exdate`, moved ones also as events. " +
			"A time without a zone is `site-local`. A text that cannot be read is an error with the line and the property; it has at most 1 MiB and 1,000 events.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "text", MarkdownDescription: "The iCalendar text, such as `file(\"holidays.ics\")`."},
		},
		Return: function.ObjectReturn{AttributeTypes: map[string]attr.Type{
			"events":   types.ListType{ElemType: eventType},
			"left_out": types.ListType{ElemType: types.StringType},
		}},
	}
}

var eventType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"summary": types.StringType, "start": types.StringType, "end": types.StringType, "duration": types.StringType,
	"timezone": types.StringType, "all_day": types.BoolType, "rrule": types.StringType,
	"rdate": types.ListType{ElemType: types.StringType}, "exdate": types.ListType{ElemType: types.StringType},
}}

// event is the Terraform model of an event.
type event struct {
	Summary  types.String `tfsdk:"summary"`
	Start    types.String `tfsdk:"start"`
	End      types.String `tfsdk:"end"`
	Duration types.String `tfsdk:"duration"`
	Timezone types.String `tfsdk:"timezone"`
	AllDay   types.Bool   `tfsdk:"all_day"`
	RRule    types.String `tfsdk:"rrule"`
	RDate    []string     `tfsdk:"rdate"`
	ExDate   []string     `tfsdk:"exdate"`
}

// parsedICS is the Terraform model of the result.
type parsedICS struct {
	Events  []event  `tfsdk:"events"`
	LeftOut []string `tfsdk:"left_out"`
}

// Run computes the result.
func (parseICS) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error != nil {
		return
	}
	events, leftOut, found := v1.EventsOf(text)
	if len(found) > 0 {
		resp.Error = function.NewArgumentFuncError(0, strings.Join(told(found), "\n"))
		return
	}
	result := parsedICS{Events: []event{}, LeftOut: told(leftOut)}
	for _, e := range events {
		result.Events = append(result.Events, event{
			Summary: conversion.Text(e.Summary), Start: types.StringValue(e.Start), End: conversion.Text(e.End), Duration: conversion.Text(e.Duration),
			Timezone: types.StringValue(e.Timezone), AllDay: types.BoolValue(e.AllDay), RRule: conversion.Text(e.RRule), RDate: e.RDate, ExDate: e.ExDate,
		})
	}
	resp.Error = resp.Result.Set(ctx, result)
}

// told says where in the text each problem is, and what it is.
func told(problems v1.Problems) []string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.Message
		if at, below := strings.CutPrefix(p.Field, "ics."); below {
			lines[i] = at + ", " + p.Message
		}
	}
	return lines
}
