package singleton

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/check"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/limit"
)

// Common are the attributes that every such resource has, beside its own.
type Common struct {
	Tenant            types.String   `tfsdk:"tenant"`
	OverwriteExisting types.Bool     `tfsdk:"overwrite_existing"`
	Timeouts          timeouts.Value `tfsdk:"timeouts"`
}

// Shared returns the common attributes of a model that embeds them.
func (c *Common) Shared() *Common { return c }

// Attributes adds the common attributes to a resource's own.
func Attributes(ctx context.Context, own map[string]schema.Attribute) map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"tenant":             tenantAttribute(),
		"overwrite_existing": overwriteAttribute(),
		"timeouts":           limit.Attribute(ctx, limits),
	}
	maps.Copy(all, own)
	return all
}

var limits = timeouts.Opts{
	Create: true, CreateDescription: "For creation; `10m` by default.",
	Read: true, ReadDescription: "For reading, as in every refresh; `5m` by default.",
	Update: true, UpdateDescription: "For changes; `10m` by default.",
	Delete: true, DeleteDescription: "For deletion, which waits for a run that stands in its way; `4h10m` by default.",
}

func tenantAttribute() schema.Attribute {
	return schema.StringAttribute{
		Optional: true, Computed: true,
		MarkdownDescription: "The tenant that is configured; the provider's `tenant` by default. Another one replaces the resource.",
		Validators:          []validator.String{check.Name()},
		PlanModifiers: []planmodifier.String{
			stringplanmodifier.UseStateForUnknown(),
			stringplanmodifier.RequiresReplace(),
		},
	}
}

func overwriteAttribute() schema.Attribute {
	return schema.BoolAttribute{
		Optional: true,
		MarkdownDescription: "Whether that may be overwritten which is there already when this resource begins to manage it; `false` by default, " +
			"which refuses to and asks for an import. Changes that somebody makes later are never overwritten silently.",
	}
}
