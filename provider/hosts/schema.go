package hosts

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The hosts of a tenant and the versions that they report.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantobject.TenantDataAttribute(),
			"site":   tenantobject.SiteDataAttribute(),
			"inventories": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether to read the `inventory` of each host, which is some kilobytes long. Only the site's own agent has one.",
			},
			"hosts": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The hosts, sorted by name.",
				NestedObject:        schema.NestedAttributeObject{Attributes: hostAttributes()},
			},
		},
	}
}

func hostAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"hostname":    tenantobject.ComputedText("The name of the host."),
		"application": tenantobject.ComputedText("The worker application of the host."),
		"online": schema.BoolAttribute{
			Computed:            true,
			MarkdownDescription: "Whether the host's worker has been heard of recently.",
		},
		"last_seen":     tenantobject.ComputedText("When the host's worker was last heard of (RFC 3339); null if not since the agent started."),
		"agent_version": tenantobject.ComputedText("The version of the agent on the host; null if unknown."),
		"role":          tenantobject.ComputedText("The role that the worker reports; null if none."),
		"labels": schema.MapAttribute{
			ElementType: types.StringType, Computed: true,
			MarkdownDescription: "The labels that the worker reports; null if none.",
		},
		"versions": schema.MapAttribute{
			ElementType: types.StringType, Computed: true,
			MarkdownDescription: "The version of each package, as last reported; null if never reported.",
		},
		"versions_at": tenantobject.ComputedText("When `versions` was reported (RFC 3339); null if never reported."),
		"last_run": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "The id of the last run that the host was a member of; null if none.",
		},
		"last_run_status": tenantobject.ComputedText("The status of the host in that run, such as `upgraded`, `failed` or `unreachable`; null if none."),
		"last_run_class":  tenantobject.ComputedText("The class of the host's failure in that run: `transient`, `artifact`, `space`, `lock`, `repository`, `install`, `boot` or `verify`; null if it did not fail, or the failure has no class."),
		"outdated_since":  tenantobject.ComputedText("When the first run ended that should have upgraded the host and did not (RFC 3339); null if the last such run upgraded it."),
		"busy": schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: "Why no upgrade begins on the host now; null while one may.",
			Attributes: map[string]schema.Attribute{
				"reason": tenantobject.ComputedText("What keeps the host busy."),
				"until":  tenantobject.ComputedText("When it is idle at the latest (RFC 3339)."),
			},
		},
		"inventory": schema.SingleNestedAttribute{
			Computed:            true,
			MarkdownDescription: "What the machine of the host consists of; null without `inventories`, and if the host has not told it. It has no serial numbers.",
			Attributes:          inventoryAttributes(),
		},
	}
}
