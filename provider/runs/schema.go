package runs

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The runs in the history of a tenant, newest first, and the results of their hosts. " +
			"The values change with each run, so do not use them as values of a resource.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantdatasource.Tenant(),
			"result": filter("Only runs with this result: `completed`, `partial`, `failed`, `aborted` or `timed-out`. A run under way has no result."),
			"host":   filter("Only runs that contain this host."),
			"since":  filter("Only runs opened at or after this instant (RFC 3339), such as `2026-11-27T00:00:00Z`."),
			"until":  filter("Only runs opened before this instant (RFC 3339)."),
			"limit": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "The largest number of runs, from `1` to `1000`; `100` by default. The provider may send one request for each run.",
			},
			"runs": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The runs, newest first.",
				NestedObject:        schema.NestedAttributeObject{Attributes: runAttributes()},
			},
		},
	}
}

func filter(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description}
}

func runAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":        schema.Int64Attribute{Computed: true, MarkdownDescription: "The id of the run."},
		"phase":     tenantdatasource.Text("The phase of the run: `open`, `preparing`, `upgrading` or `finished`."),
		"result":    tenantdatasource.Text("The result of the run: `completed`, `partial`, `failed`, `aborted` or `timed-out`; null until it ends."),
		"reason":    tenantdatasource.Text("The reason of the result, or why the run does not proceed; null if there is none."),
		"trigger":   tenantdatasource.Text("What started the run: `window` or `manual`."),
		"opened_at": tenantdatasource.Text("When the run was opened (RFC 3339)."),
		"ended_at":  tenantdatasource.Text("When the run ended (RFC 3339); null until it ends."),
		"not_after": tenantdatasource.Text("When the run ends at the latest (RFC 3339)."),
		"hosts": schema.ListNestedAttribute{
			Computed:            true,
			MarkdownDescription: "The result of each host.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"hostname": tenantdatasource.Text("The name of the host."),
				"status":   tenantdatasource.Text("The status of the host, such as `upgraded`, `failed` or `skipped`."),
				"error":    tenantdatasource.Text("The error that the host reported, or why it was skipped; null if there is none."),
				"stage":    tenantdatasource.Text("The name of the host's stage; null if it has none."),
				"note":     tenantdatasource.Text("A remark on a host that did not fail, such as that its reboot was skipped; null if there is none."),
			}},
		},
	}
}
