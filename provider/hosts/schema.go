package hosts

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/check"
)

// Schema describes the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The hosts of a tenant that are upgraded, and the versions that they report.",
		Attributes: map[string]schema.Attribute{
			"tenant": schema.StringAttribute{
				Optional: true, Computed: true,
				MarkdownDescription: "The tenant; the provider's `tenant` by default.",
				Validators:          []validator.String{check.Name()},
			},
			"site": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "The site that is asked; by default the one that answers at the endpoint.",
				Validators:          []validator.String{check.Name()},
			},
			"hosts": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The hosts, in the order of their names.",
				NestedObject:        schema.NestedAttributeObject{Attributes: hostAttributes()},
			},
		},
	}
}

func hostAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"hostname":    text("Name of the host."),
		"application": text("The worker application under which its worker is known."),
		"online": schema.BoolAttribute{
			Computed:            true,
			MarkdownDescription: "Whether its worker has been heard of lately.",
		},
		"last_seen":     text("When its worker was last heard of, as in RFC 3339; null when not since the agent started."),
		"agent_version": text("Version of the agent on it; null when not known."),
		"versions": schema.MapAttribute{
			ElementType: types.StringType, Computed: true,
			MarkdownDescription: "Package to version, as the host last reported; null when it has not.",
		},
		"versions_at": text("When `versions` was reported, as in RFC 3339; null when it was not."),
	}
}

func text(description string) schema.Attribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}
