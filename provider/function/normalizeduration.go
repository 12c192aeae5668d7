package function

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/function"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

type normalizeDuration struct{ named }

func newNormalizeDuration() function.Function { return normalizeDuration{"normalize_duration"} }

// Definition describes the function.
func (normalizeDuration) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "The canonical form of a length of time",
		MarkdownDescription: "Writes a length of time in the one form that the API gives back: days, hours, minutes and seconds, none of them needlessly. " +
			"So `240m` becomes `4h` and `28h18s` becomes `1d4h18s`. A day is 24 hours.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "text", MarkdownDescription: "The length, such as `240m`."},
		},
		Return: function.StringReturn{},
	}
}

// Run calculates.
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
