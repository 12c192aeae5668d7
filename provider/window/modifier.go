package window

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

var asIs = basetypes.ObjectAsOptions{}

// KeepSpelling is a plan modifier of a list of windows: it plans the prior
// value when that means the same as the configuration, so that another order
// or spelling is no change. It acts on the whole list, since Terraform accepts
// a planned value that equals the prior one only as a whole (terraform.md
// 4.6).
func KeepSpelling() planmodifier.List { return keepSpelling{} }

type keepSpelling struct{}

func (keepSpelling) Description(context.Context) string {
	return "Another order or spelling of the same windows is no change."
}

func (k keepSpelling) MarkdownDescription(ctx context.Context) string { return k.Description(ctx) }

func (keepSpelling) PlanModifyList(ctx context.Context, req planmodifier.ListRequest, resp *planmodifier.ListResponse) {
	if req.StateValue.IsNull() || req.PlanValue.IsNull() || !Known(ctx, req.PlanValue) {
		return
	}
	var diags diag.Diagnostics
	prior, planned := ToAPI(ctx, req.StateValue, &diags), ToAPI(ctx, req.PlanValue, &diags)
	if diags.HasError() {
		resp.Diagnostics.Append(diags...)
		return
	}
	if Same(prior, planned) {
		resp.PlanValue = req.StateValue
	}
}
