package state

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/environment"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/run"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The state of a tenant's OS upgrades: the configuration, the current status, when the next window opens, and the result of the last run. " +
			"The values change by themselves, so do not use them as values of a resource.",
		Attributes: map[string]schema.Attribute{
			"tenant":              tenantobject.TenantDataAttribute(),
			"site":                tenantobject.SiteDataAttribute(),
			"worker_applications": tenantobject.ComputedTextSet("The names of the worker applications. Every host on which one of them is scheduled takes part."),
			"maintenance_windows": window.DataAttribute("The maintenance windows. A run may be in progress while any of them is open."),
			"status": tenantobject.ComputedText("The current status: `idle`, `waiting`, `preparing`, `upgrading`, `rebooting`, `verifying`, `paused` or `aborting`. " +
				"Other systems may report other values."),
			"next_upgrade_in":   tenantobject.ComputedText("The time until the next window opens, such as `1d4h18s`; `0s` while a window is open and its run has not ended; null if no window will open."),
			"next_upgrade_at":   tenantobject.ComputedText("When the next window opens (RFC 3339). While a window is open and its run has not ended, when that window opened. Null if no window will open or the server does not report it."),
			"scheduled_workers": workersAttribute(),
			"last_upgrade_info": lastAttribute(),
			"environment": tenantobject.ComputedText("The environment that `status`, `next_upgrade_in`, `next_upgrade_at` and `last_upgrade_info` describe; null for `default`. " +
				"It is `default` if that has hosts or windows, else the environment that is furthest from idle."),
			"environments": environmentsAttribute(),
			"unplaced":     tenantobject.ComputedNumber("How many hosts are in no environment, because several match them: no run upgrades them."),
		},
	}
}

func environmentsAttribute() schema.Attribute {
	all := environment.StatusAttributes()
	all["name"] = tenantobject.ComputedText("The name of the environment.")
	return tenantobject.ComputedObjects("The environments of the tenant, with `default`, sorted by name; empty if none is declared or `site` is set.", all)
}

func workersAttribute() schema.Attribute {
	return tenantobject.ComputedObjects("The hosts that would take part in a run now.", map[string]schema.Attribute{
		"host":        tenantobject.ComputedText("The name of the host."),
		"application": tenantobject.ComputedText("The host's worker application."),
	})
}

func lastAttribute() schema.Attribute {
	return tenantobject.ComputedObject("The last run that has ended; null if there is none.", map[string]schema.Attribute{
		"start_time": tenantobject.ComputedText("When the run started (RFC 3339)."),
		"end_time":   tenantobject.ComputedText("When the run ended (RFC 3339)."),
		"result":     tenantobject.ComputedText("The result of the run: `completed`, `partial`, `failed`, `aborted` or `timed-out`."),
		"hosts":      tenantobject.ComputedObjects("The result of each host.", run.HostAttributes(tenantobject.ComputedText)),
	})
}
