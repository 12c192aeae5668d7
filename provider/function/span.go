package function

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
)

// span is a window ahead as Terraform has it.
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
			Start: attribute.Time(&w.Start), End: attribute.Time(&w.End), Length: types.StringValue(w.Length),
			Sources: make([]source, len(w.Sources)), Cuts: make([]cut, len(w.Cuts)),
			StartMoved: types.BoolValue(w.StartMoved), EndMoved: types.BoolValue(w.EndMoved),
		}
		for n, s := range w.Sources {
			list[i].Sources[n] = source{number(s.Window), attribute.Text(s.Calendar), number(s.Event), attribute.Text(s.Summary)}
		}
		for n, c := range w.Cuts {
			list[i].Cuts[n] = cut{attribute.Text(c.Calendar), attribute.Text(c.Summary), attribute.Time(&c.From), attribute.Time(&c.To)}
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
