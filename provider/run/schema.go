package run

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/attribute"
)

// Schema describes the resource.
func (*Resource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Starts a run by hand and waits for its end: one pass over the hosts of a tenant. A changed value in `triggers` starts another.\n\n" +
			"Apply fails when the run does not come to a good end, with its reason and what the failing hosts said; the resource is then tainted, so that the next apply starts another run. " +
			"A run that is under way already is waited for before this one starts. " +
			"A run cannot be undone: deleting the resource changes nothing on the server, and a run that has not ended goes on.",
		Attributes: askedAttributes(ctx),
	}
	for name, attribute := range toldAttributes() {
		resp.Schema.Attributes[name] = attribute
	}
}

// askedAttributes are those that a person sets.
func askedAttributes(ctx context.Context) map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"tenant": schema.StringAttribute{
			Optional: true, Computed: true,
			MarkdownDescription: "The tenant whose hosts are upgraded; the provider's `tenant` by default. Another one starts another run.",
			Validators:          []validator.String{attribute.Name()},
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplace()},
		},
		"triggers": schema.MapAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "Any values; when one of them changes, another run starts.",
			PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
		},
		"override_window": schema.BoolAttribute{
			Optional:            true,
			MarkdownDescription: "Whether the run starts though no maintenance window is open; `false` by default. Needs a `reason`. Another value starts another run.",
			PlanModifiers:       []planmodifier.Bool{boolplanmodifier.RequiresReplace()},
		},
		"reason": schema.StringAttribute{
			Optional:            true,
			MarkdownDescription: "Why, for the run's history; at most 1,000 characters. Another one starts another run.",
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
		},
		"duration": schema.StringAttribute{
			Optional: true,
			MarkdownDescription: "How long the run may last at most, from `1m` to `7d`, only with `override_window`; by default until the open maintenance window closes, or `4h` when none is open. " +
				"Another length starts another run; another spelling of the same does not.",
			PlanModifiers: []planmodifier.String{attribute.KeepDuration(), stringplanmodifier.RequiresReplace()},
		},
		"retry_of": schema.Int64Attribute{
			Optional: true,
			MarkdownDescription: "The id of a run that has ended: this one is of the hosts alone that failed or were skipped there. " +
				"Offered by `osupgrade-agent` only. Another one starts another run.",
			Validators:    []validator.Int64{int64validator.AtLeast(1)},
			PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()},
		},
		"timeouts": attribute.Timeouts(ctx, timeouts.Opts{
			Create: true, CreateDescription: "For waiting until the run has ended, and any other before it; `duration` and `5m` more by default, so `4h5m`.",
		}),
	}
}

// toldAttributes are those that the server sets. They stay as they are when
// the run has ended.
func toldAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"run_id": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "The id of the run.",
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		},
		"result":    told("How the run ended: `completed`, `partial`, `failed`, `aborted` or `timed-out`; null while it goes on."),
		"opened_at": told("When the run was opened, as in RFC 3339."),
		"ended_at":  told("When the run ended, as in RFC 3339; null while it goes on."),
		"hosts": schema.ListNestedAttribute{
			Computed:            true,
			MarkdownDescription: "What became of each host.",
			PlanModifiers:       []planmodifier.List{listplanmodifier.UseStateForUnknown()},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"hostname": schema.StringAttribute{Computed: true, MarkdownDescription: "Name of the host."},
				"status":   schema.StringAttribute{Computed: true, MarkdownDescription: "Its status, such as `upgraded`, `failed` or `skipped`."},
				"error":    schema.StringAttribute{Computed: true, MarkdownDescription: "The host's own words, or why it was skipped; null when all went well."},
			}},
		},
	}
}

func told(description string) schema.Attribute {
	return schema.StringAttribute{
		Computed:            true,
		MarkdownDescription: description,
		PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}
