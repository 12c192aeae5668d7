package function

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

type nextWindows struct{ named }

func newNextWindows() function.Function { return nextWindows{"next_windows"} }

// Definition describes the function.
func (nextWindows) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The spans ahead in which a run may be under way",
		MarkdownDescription: "Calculates the spans in which a run may be under way, as `osupgrade-agent` does, from a given instant on; " +
			"the first may have begun before. What windows and calendars of kind `allow` open counts together, and a freeze wins over both. " +
			"Looks ten years ahead.\n\n" +
			"Each span is an object: `start` and `end` as RFC 3339 in UTC, `length` in elapsed time, " +
			"`sources` that open it (`window` is an index of the windows, `calendar` a name, `event` an index of its events, `summary` that of the event), " +
			"`cuts` of freezes into the window (`calendar`, `summary`, `from`, `to`), " +
			"and `start_moved` and `end_moved`, whether a change of the clock moves its start or end.",
		Parameters: []function.Parameter{
			windowsParameter(), calendarsParameter(),
			function.StringParameter{Name: "from", MarkdownDescription: "The instant to look ahead from, as RFC 3339, such as `timestamp()`."},
			function.Int64Parameter{Name: "count", MarkdownDescription: "How many spans, from `1` to `1000`; fewer when there are no more."},
		},
		VariadicParameter: siteParameter(),
		Return:            function.ListReturn{ElementType: spanType},
	}
}

// Run calculates.
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
	plan, failure := planOf(ctx, windows, calendars, zones, instantAt+2)
	if failure != nil {
		resp.Error = failure
		return
	}
	resp.Error = resp.Result.Set(ctx, spans(v1.Windows(plan, from, from.Add(window.Horizon), int(count))))
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
