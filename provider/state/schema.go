package state

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
		MarkdownDescription: "What is going on with a tenant's OS upgrades: the configuration as applied, the status now, when the next window opens, and how the last run ended. " +
			"Its values move by themselves, so do not let a resource depend on those that do.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantdatasource.Tenant(),
			"site":   tenantdatasource.Site(),
			"worker_applications": schema.SetAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "Names of the worker applications whose hosts take part.",
			},
			"maintenance_windows": windowsAttribute(),
			"status": tenantdatasource.Text("What is done now: `idle`, `waiting`, `preparing`, `upgrading`, `rebooting`, `verifying`, `paused` or `aborting`. " +
				"Other systems may say others."),
			"next_upgrade_in":   tenantdatasource.Text("The time until the next window opens, such as `1d4h18s`; `0s` while one is open whose run has not ended, null when none will."),
			"next_upgrade_at":   tenantdatasource.Text("When the next window opens or, while one is open whose run has not ended, when that did, as in RFC 3339; null when none will or the server does not say."),
			"scheduled_workers": workersAttribute(),
			"last_upgrade_info": lastAttribute(),
		},
	}
}

func windowsAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The maintenance windows, which count together.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"days_of_week": schema.SetAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "The days on which the window starts.",
			},
			"start_time": tenantdatasource.Text("The time of day at which it starts, `HH:MM`."),
			"timezone":   tenantdatasource.Text("The zone of `start_time`: `site-local`, `UTC` or an IANA name; null means `site-local`."),
			"duration":   tenantdatasource.Text("Its length in elapsed time, such as `4h`."),
		}},
	}
}

func workersAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The hosts that would take part in a run now.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"host":        tenantdatasource.Text("Name of the host."),
			"application": tenantdatasource.Text("Its worker application."),
		}},
	}
}

func lastAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The last run that has ended; null when there was none.",
		Attributes: map[string]schema.Attribute{
			"start_time": tenantdatasource.Text("When it started, as in RFC 3339."),
			"end_time":   tenantdatasource.Text("When it ended, as in RFC 3339."),
			"result":     tenantdatasource.Text("How it ended: `completed`, `partial`, `failed`, `aborted` or `timed-out`."),
			"hosts": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "How each host came out of it.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"hostname": tenantdatasource.Text("Name of the host."),
					"status":   tenantdatasource.Text("What became of it, such as `upgraded`, `failed` or `skipped`."),
					"error":    tenantdatasource.Text("The host's own words, or why it was skipped; null when all went well."),
				}},
			},
		},
	}
}
