package runs

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// Schema describes the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The runs of a tenant, newest first: those that a server still keeps, and what became of their hosts. " +
			"Its values move by themselves, so do not let a resource depend on those that do.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantdatasource.Tenant(),
			"result": filter("Only runs with this result: `completed`, `partial`, `failed`, `aborted` or `timed-out`. A run that goes on has none."),
			"host":   filter("Only runs that this host was a member of."),
			"since":  filter("Only runs that were opened then or later, as in RFC 3339, such as `2026-11-27T00:00:00Z`."),
			"until":  filter("Only runs that were opened before, as in RFC 3339."),
			"limit": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "How many runs there are at most, from `1` to `1000`; `100` by default. Each is asked for by itself.",
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
		"phase":     tenantdatasource.Text("Where it is: `open`, `preparing`, `upgrading` or `finished`."),
		"result":    tenantdatasource.Text("How it ended: `completed`, `partial`, `failed`, `aborted` or `timed-out`; null while it goes on."),
		"reason":    tenantdatasource.Text("Why it ended as it did, or why it does not go on; null when there is nothing to tell."),
		"trigger":   tenantdatasource.Text("What started it: `window` or `manual`."),
		"opened_at": tenantdatasource.Text("When it was opened, as in RFC 3339."),
		"ended_at":  tenantdatasource.Text("When it ended, as in RFC 3339; null while it goes on."),
		"not_after": tenantdatasource.Text("When it ends at the latest, as in RFC 3339."),
		"hosts": schema.ListNestedAttribute{
			Computed:            true,
			MarkdownDescription: "What became of each host.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"hostname": tenantdatasource.Text("Name of the host."),
				"status":   tenantdatasource.Text("Its status, such as `upgraded`, `failed` or `skipped`."),
				"error":    tenantdatasource.Text("The host's own words, or why it was skipped; null when all went well."),
				"stage":    tenantdatasource.Text("The name of its stage; null when it is in none."),
				"note":     tenantdatasource.Text("What is to be known of a host that did not fail, such as that its reboot was skipped; null when there is nothing."),
			}},
		},
	}
}
