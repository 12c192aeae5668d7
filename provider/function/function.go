// Package function has the provider's functions: next_windows, in_window, parse_ics and
// normalize_duration. They compute with the same code as the agent.
//
// The functions are pure and need neither a server nor a provider configuration,
// so they work in terraform console, check blocks and terraform test. They never
// read the site's time zone: site-local means UTC unless it is an argument.
package function

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/schedule/window"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
)

// All lists the functions.
func All() []func() function.Function {
	return []func() function.Function{newNextWindows, newInWindow, newNormalizeDuration, newParseICS}
}

// named implements Metadata.
type named string

// Metadata sets the function's name.
func (n named) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = string(n)
}

// Positions of the common arguments of next_windows and in_window.
const (
	windowsAt int64 = iota
	calendarsAt
	instantAt
)

func windowsParameter() function.Parameter {
	return function.DynamicParameter{
		Name: "windows", AllowNullValue: true,
		MarkdownDescription: "The maintenance windows: a list of objects with the attributes of `maintenance_windows` of `osupgrade_config`, " +
			"such as `osupgrade_config.acme.maintenance_windows`. `[]` or `null` means none.",
	}
}

func calendarsParameter() function.Parameter {
	return function.DynamicParameter{
		Name: "calendars", AllowNullValue: true,
		MarkdownDescription: "The calendars: a list of objects with the attributes `name`, `kind` and `events` or `ics` of `osupgrade_calendar`, " +
			"such as `[osupgrade_calendar.christmas]`, or a map of them by name. `[]` or `null` means none. One with a `url` is refused, because only the site knows its events.",
	}
}

func siteParameter() function.Parameter {
	return function.StringParameter{
		Name:                "site_timezone",
		MarkdownDescription: "The IANA name of the site's time zone, used for `site-local`; `UTC` by default. Give at most one.",
	}
}

type nextWindows struct{ named }

func newNextWindows() function.Function { return nextWindows{"next_windows"} }

// Definition defines the function.
func (nextWindows) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The next spans in which a run may be in progress",
		MarkdownDescription: "Computes the spans in which a run may be in progress from a given instant on, with the rules of `osupgrade-agent`. " +
			"The first span may begin before that instant. Windows and events of calendars of kind `allow` open; a freeze wins over both. " +
			"The function looks ten years ahead.\n\n" +
			"Each span is an object: `start` and `end` are RFC 3339 in UTC; `length` is elapsed time; " +
			"`sources` lists what opens the span (`window` is an index into the windows, `calendar` a name, `event` an index into its events, `summary` the summary of the event); " +
			"`cuts` lists the freezes in the window (`calendar`, `summary`, `from`, `to`); " +
			"`start_moved` and `end_moved` report whether a change of the clock moves the start or end.",
		Parameters: []function.Parameter{
			windowsParameter(), calendarsParameter(),
			function.StringParameter{Name: "from", MarkdownDescription: "The instant to look ahead from (RFC 3339), such as `timestamp()`."},
			function.Int64Parameter{Name: "count", MarkdownDescription: "The largest number of spans, from `1` to `1000`."},
		},
		VariadicParameter: siteParameter(),
		Return:            function.ListReturn{ElementType: spanType},
	}
}

// Run computes the result.
func (nextWindows) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var windows, calendars types.Dynamic
	var text string
	var count int64
	var zones []string
	if resp.Error = req.Arguments.Get(ctx, &windows, &calendars, &text, &count, &zones); resp.Error != nil {
		return
	}
	if count < 1 || count > v1.MaxWindowsListed {
		resp.Error = function.NewArgumentFuncError(instantAt+1, fmt.Sprintf("%d is out of range; use 1 to %d", count, v1.MaxWindowsListed))
		return
	}
	from, failure := instant(text)
	if failure != nil {
		resp.Error = failure
		return
	}
	schedule, failure := scheduleOf(ctx, windows, calendars, zones, instantAt+2)
	if failure != nil {
		resp.Error = failure
		return
	}
	resp.Error = resp.Result.Set(ctx, spans(v1.Windows(schedule, from, from.Add(window.Horizon), int(count))))
}

var (
	spanType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"start": types.StringType, "end": types.StringType, "length": types.StringType,
		"sources": types.ListType{ElemType: sourceType}, "cuts": types.ListType{ElemType: cutType},
		"start_moved": types.BoolType, "end_moved": types.BoolType,
	}}
	sourceType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"window": types.Int64Type, "calendar": types.StringType, "event": types.Int64Type, "summary": types.StringType,
	}}
	cutType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"calendar": types.StringType, "summary": types.StringType, "from": types.StringType, "to": types.StringType,
	}}
)

// span is the Terraform model of a span.
type span struct {
	Start      types.String `tfsdk:"start"`
	End        types.String `tfsdk:"end"`
	Length     types.String `tfsdk:"length"`
	Sources    []source     `tfsdk:"sources"`
	Cuts       []cut        `tfsdk:"cuts"`
	StartMoved types.Bool   `tfsdk:"start_moved"`
	EndMoved   types.Bool   `tfsdk:"end_moved"`
}

type source struct {
	Window   types.Int64  `tfsdk:"window"`
	Calendar types.String `tfsdk:"calendar"`
	Event    types.Int64  `tfsdk:"event"`
	Summary  types.String `tfsdk:"summary"`
}

type cut struct {
	Calendar types.String `tfsdk:"calendar"`
	Summary  types.String `tfsdk:"summary"`
	From     types.String `tfsdk:"from"`
	To       types.String `tfsdk:"to"`
}

func spans(windows []v1.Window) []span {
	list := make([]span, len(windows))
	for i, w := range windows {
		list[i] = span{
			Start: conversion.Time(&w.Start), End: conversion.Time(&w.End), Length: types.StringValue(w.Length),
			Sources: make([]source, len(w.Sources)), Cuts: make([]cut, len(w.Cuts)),
			StartMoved: types.BoolValue(w.StartMoved), EndMoved: types.BoolValue(w.EndMoved),
		}
		for n, s := range w.Sources {
			list[i].Sources[n] = source{number(s.Window), conversion.Text(s.Calendar), number(s.Event), conversion.Text(s.Summary)}
		}
		for n, c := range w.Cuts {
			list[i].Cuts[n] = cut{conversion.Text(c.Calendar), conversion.Text(c.Summary), conversion.Time(&c.From), conversion.Time(&c.To)}
		}
	}
	return list
}

func number(n *int) types.Int64 {
	if n == nil {
		return types.Int64Null()
	}
	return types.Int64Value(int64(*n))
}

type inWindow struct{ named }

func newInWindow() function.Function { return inWindow{"in_window"} }

// Definition defines the function.
func (inWindow) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Whether a run may be in progress at an instant",
		MarkdownDescription: "Reports whether a run may be in progress at an instant, with the rules of `osupgrade-agent`: " +
			"a window or an event of a calendar of kind `allow` is open, and no freeze is in force. A span includes its start and excludes its end.",
		Parameters: []function.Parameter{
			windowsParameter(), calendarsParameter(),
			function.StringParameter{Name: "at", MarkdownDescription: "The instant (RFC 3339), such as `timestamp()`."},
		},
		VariadicParameter: siteParameter(),
		Return:            function.BoolReturn{},
	}
}

// Run computes the result.
func (inWindow) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var windows, calendars types.Dynamic
	var text string
	var zones []string
	if resp.Error = req.Arguments.Get(ctx, &windows, &calendars, &text, &zones); resp.Error != nil {
		return
	}
	at, failure := instant(text)
	if failure != nil {
		resp.Error = failure
		return
	}
	schedule, failure := scheduleOf(ctx, windows, calendars, zones, instantAt+1)
	if failure != nil {
		resp.Error = failure
		return
	}
	_, open := schedule.Current(at)
	resp.Error = resp.Result.Set(ctx, open)
}

type normalizeDuration struct{ named }

func newNormalizeDuration() function.Function { return normalizeDuration{"normalize_duration"} }

// Definition defines the function.
func (normalizeDuration) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The canonical form of a duration",
		MarkdownDescription: "Returns the canonical form of a duration, which is the form that the API returns: days, hours, minutes and seconds, without zeros. " +
			"`240m` becomes `4h`, and `28h18s` becomes `1d4h18s`. A day is 24 hours.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "text", MarkdownDescription: "The duration, such as `240m`."},
		},
		Return: function.StringReturn{},
	}
}

// Run computes the result.
func (normalizeDuration) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var text string
	if resp.Error = req.Arguments.Get(ctx, &text); resp.Error != nil {
		return
	}
	length, err := window.ParseDuration(text)
	if err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, window.FormatDuration(length))
}
