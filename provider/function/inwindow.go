package function

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

type inWindow struct{ named }

func newInWindow() function.Function { return inWindow{"in_window"} }

// Definition describes the function.
func (inWindow) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Whether a run may be under way at an instant",
		MarkdownDescription: "Tells whether a run may be under way at an instant, as `osupgrade-agent` decides it: " +
			"a window or an event of a calendar of kind `allow` is open, and no freeze is on. A start belongs to its span, an end does not.",
		Parameters: []function.Parameter{
			windowsParameter(), calendarsParameter(),
			function.StringParameter{Name: "at", MarkdownDescription: "The instant, as RFC 3339, such as `timestamp()`."},
		},
		VariadicParameter: siteParameter(),
		Return:            function.BoolReturn{},
	}
}

// Run calculates.
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
	plan, failure := planOf(ctx, windows, calendars, zones, instantAt+1)
	if failure != nil {
		resp.Error = failure
		return
	}
	_, open := plan.Current(at)
	resp.Error = resp.Result.Set(ctx, open)
}
