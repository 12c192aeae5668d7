package hosts

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// Schema describes the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The hosts of a tenant that are upgraded, and the versions that they report.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantdatasource.Tenant(),
			"site":   tenantdatasource.Site(),
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
		"hostname":    tenantdatasource.Text("Name of the host."),
		"application": tenantdatasource.Text("The worker application under which its worker is known."),
		"online": schema.BoolAttribute{
			Computed:            true,
			MarkdownDescription: "Whether its worker has been heard of lately.",
		},
		"last_seen":     tenantdatasource.Text("When its worker was last heard of, as in RFC 3339; null when not since the agent started."),
		"agent_version": tenantdatasource.Text("Version of the agent on it; null when not known."),
		"role":          tenantdatasource.Text("The role that its worker tells; null when it tells none."),
		"labels": schema.MapAttribute{
			ElementType: types.StringType, Computed: true,
			MarkdownDescription: "The labels that its worker tells; null when it tells none.",
		},
		"versions": schema.MapAttribute{
			ElementType: types.StringType, Computed: true,
			MarkdownDescription: "Package to version, as the host last reported; null when it has not.",
		},
		"versions_at": tenantdatasource.Text("When `versions` was reported, as in RFC 3339; null when it was not."),
	}
}
