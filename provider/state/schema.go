package state

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantdatasource"
)

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The state of a tenant's OS upgrades: the configuration, the current status, when the next window opens, and the result of the last run. " +
			"The values change by themselves, so do not use them as values of a resource.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantdatasource.Tenant(),
			"site":   tenantdatasource.Site(),
			"worker_applications": schema.SetAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "The names of the worker applications. Every host on which one of them is scheduled takes part.",
			},
			"maintenance_windows": windowsAttribute(),
			"status": tenantdatasource.Text("The current status: `idle`, `waiting`, `preparing`, `upgrading`, `rebooting`, `verifying`, `paused` or `aborting`. " +
				"Other systems may report other values."),
			"next_upgrade_in":   tenantdatasource.Text("The time until the next window opens, such as `1d4h18s`; `0s` while a window is open and its run has not ended; null if no window will open."),
			"next_upgrade_at":   tenantdatasource.Text("When the next window opens (RFC 3339). While a window is open and its run has not ended, when that window opened. Null if no window will open or the server does not report it."),
			"scheduled_workers": workersAttribute(),
			"last_upgrade_info": lastAttribute(),
		},
	}
}

func windowsAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The maintenance windows. A run may be under way while any of them is open.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"days_of_week": schema.SetAttribute{
				ElementType: types.StringType, Computed: true,
				MarkdownDescription: "The days on which the window starts.",
			},
			"start_time": tenantdatasource.Text("The time of day at which the window starts, `HH:MM`."),
			"timezone":   tenantdatasource.Text("The time zone of `days_of_week` and `start_time`: `site-local`, `UTC` or an IANA name."),
			"duration":   tenantdatasource.Text("The duration of the window in elapsed time, such as `4h`."),
		}},
	}
}

func workersAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The hosts that would take part in a run now.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"host":        tenantdatasource.Text("The name of the host."),
			"application": tenantdatasource.Text("The host's worker application."),
		}},
	}
}

func lastAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		Computed:            true,
		MarkdownDescription: "The last run that has ended; null if there is none.",
		Attributes: map[string]schema.Attribute{
			"start_time": tenantdatasource.Text("When the run started (RFC 3339)."),
			"end_time":   tenantdatasource.Text("When the run ended (RFC 3339)."),
			"result":     tenantdatasource.Text("The result of the run: `completed`, `partial`, `failed`, `aborted` or `timed-out`."),
			"hosts": schema.ListNestedAttribute{
				Computed:            true,
				MarkdownDescription: "The result of each host.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"hostname": tenantdatasource.Text("The name of the host."),
					"status":   tenantdatasource.Text("The status of the host, such as `upgraded`, `failed` or `skipped`."),
					"error":    tenantdatasource.Text("The error that the host reported, or why it was skipped; null if there is none."),
				}},
			},
		},
	}
}
