package run

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// ValidateConfig applies the API's rules of a start. They look at several
// attributes at once, so that they wait until all of them are known.
func (*Resource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() || m.OverrideWindow.IsUnknown() || m.Reason.IsUnknown() || m.Duration.IsUnknown() {
		return
	}
	for _, problem := range m.start().Validate() {
		at, ok := diagnostic.Field(problem.Field)
		if !ok {
			at = path.Empty()
		}
		resp.Diagnostics.AddAttributeError(at, "Invalid configuration of "+TypeName, problem.Message)
	}
}
