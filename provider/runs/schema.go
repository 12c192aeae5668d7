package runs

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/run"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wayback"
)

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The runs in the history of a tenant, newest first, and the results of their hosts. " +
			"The values change with each run, so do not use them as values of a resource.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantobject.TenantDataAttribute(),
			"result": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Only runs with this result: `completed`, `partial`, `failed`, `aborted` or `timed-out`. A run in progress has no result.",
				Validators:          []validator.String{validators.OneOf(v1.Results()...)},
			},
			"host": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Only runs that contain this host.",
				Validators:          []validator.String{validators.Hostname()},
			},
			"environment": schema.StringAttribute{
				Optional: true, MarkdownDescription: run.AboutRunsOf,
				Validators: []validator.String{validators.Name()},
			},
			"since": instant("Only runs opened at or after this instant (RFC 3339), such as `2026-11-27T00:00:00Z`."),
			"until": instant("Only runs opened before this instant (RFC 3339)."),
			"limit": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "The largest number of runs, from `1` to `1000`; `100` by default. The provider may send one request for each run.",
				Validators:          []validator.Int64{validators.Number(1, v1.MaxRuns)},
			},
			"runs": tenantobject.ComputedObjects("The runs, newest first.", runAttributes()),
		},
	}
}

func instant(description string) schema.Attribute {
	return schema.StringAttribute{Optional: true, CustomType: timetypes.RFC3339Type{}, MarkdownDescription: description}
}

func runAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":          tenantobject.ComputedNumber("The id of the run."),
		"environment": tenantobject.ComputedText("The environment whose hosts the run upgraded; null for `default`."),
		"until":       tenantobject.ComputedText("The stage after which the run ends; null for the last one."),
		"phase":       tenantobject.ComputedText("The phase of the run: `open`, `preparing`, `upgrading` or `finished`."),
		"result":      tenantobject.ComputedText("The result of the run: `completed`, `partial`, `failed`, `aborted` or `timed-out`; null until it ends."),
		"reason":      tenantobject.ComputedText("The reason of the result, or why the run does not proceed; null if there is none."),
		"trigger":     tenantobject.ComputedText("What started the run: `window` or `manual`."),
		"opened_at":   tenantobject.ComputedText("When the run was opened (RFC 3339)."),
		"ended_at":    tenantobject.ComputedText("When the run ended (RFC 3339); null until it ends."),
		"not_after":   tenantobject.ComputedText("When the run ends at the latest (RFC 3339)."),
		"hosts":       tenantobject.ComputedObjects("The result of each host.", hostAttributes()),
		"way_back":    tenantobject.ComputedObject(wayback.About, wayback.Attributes(tenantobject.ComputedText)),
	}
}

func hostAttributes() map[string]schema.Attribute {
	all := run.HostAttributes(tenantobject.ComputedText)
	all["up_to_date"] = tenantobject.ComputedBool(run.UpToDate)
	all["stage"] = tenantobject.ComputedText("The name of the host's stage; null if it has none.")
	all["note"] = tenantobject.ComputedText("A remark on a host that did not fail, such as that its reboot was skipped; null if there is none.")
	return all
}
