package run

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"

	rules "github.com/osupgrade/terraform-provider-osupgrade/agent/window"
)

// sameLength plans the prior value when the configured one is another spelling
// of it: 240m instead of 4h must not start a run.
type sameLength struct{}

func (sameLength) Description(context.Context) string {
	return "Another spelling of the same length is no change."
}

func (s sameLength) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

func (sameLength) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || req.PlanValue.IsUnknown() {
		return
	}
	prior, errPrior := rules.ParseDuration(req.StateValue.ValueString())
	planned, errPlanned := rules.ParseDuration(req.PlanValue.ValueString())
	if errPrior == nil && errPlanned == nil && prior == planned {
		resp.PlanValue = req.StateValue
	}
}
