// Package wayback is the attribute way_back of runs: until when a run could be rolled back. It decides
// nothing.
package wayback

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
)

// About says what the attribute means.
const About = "Until when the run could be rolled back; null if its rollout has no point of no return."

// Model is the Terraform model of the attribute.
type Model struct {
	Until    types.String `tfsdk:"until"`
	ClosedAt types.String `tfsdk:"closed_at"`
}

// Of returns the model; nil if the rollout has no point of no return.
func Of(w *v1.WayBack) *Model {
	if w == nil {
		return nil
	}
	return &Model{conversion.Text(w.Until), conversion.Time(w.Closed)}
}

// Object is Of for a resource, whose attribute may be unknown.
func Object(ctx context.Context, w *v1.WayBack, diags *diag.Diagnostics) types.Object {
	object, problems := types.ObjectValueFrom(ctx, Types(), Of(w))
	diags.Append(problems...)
	return object
}

// Types are the types of the attributes.
func Types() map[string]attr.Type {
	return map[string]attr.Type{"until": types.StringType, "closed_at": types.StringType}
}

// Attributes are the attributes; text makes a computed text of a resource or of a data source.
func Attributes[A any](text func(description string) A) map[string]A {
	return map[string]A{
		"until":     text("The stage that is the point of no return: once it has begun, there is no way back."),
		"closed_at": text("When that stage began (RFC 3339); null while there is a way back."),
	}
}
