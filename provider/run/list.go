package run

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/list/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
)

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	instant := func(description string) schema.Attribute {
		return schema.StringAttribute{Optional: true, CustomType: timetypes.RFC3339Type{}, MarkdownDescription: description}
	}
	return &tenantobject.ListResource{
		TypeName: TypeName, Find: find,
		About: "The runs in the history of a tenant, newest first. A server deletes old runs from its history.",
		Filters: map[string]schema.Attribute{
			"result": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Only runs with this result: `completed`, `partial`, `failed`, `aborted` or `timed-out`. A run in progress has no result.",
				Validators: []validator.String{validators.OneOf(v1.Results()...)},
			},
			"host": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Only runs that contain this host.",
				Validators: []validator.String{validators.Hostname()},
			},
			"environment": schema.StringAttribute{
				Optional: true, MarkdownDescription: AboutRunsOf,
				Validators: []validator.String{validators.Name()},
			},
			"since": instant("Only runs opened at or after this instant (RFC 3339), such as `2026-11-27T00:00:00Z`."),
			"until": instant("Only runs opened before this instant (RFC 3339)."),
		},
	}
}

// find returns the runs that pass the filters. The list of the API has no hosts of a run,
// so that contents take one request for each run.
func find(ctx context.Context, ask tenantobject.Query) ([]tenantobject.Listed, error) {
	filter := filterOf(ctx, ask)
	if ask.Diags.HasError() {
		return nil, nil
	}
	runs, err := ask.API.Runs(ctx, ask.Tenant, filter)
	if err != nil {
		return nil, err
	}
	var found []tenantobject.Listed
	for _, r := range runs {
		if ask.Contents {
			complete, err := ask.API.Run(ctx, ask.Tenant, r.ID)
			if client.Missing(err) {
				continue // The server has deleted it from its history since.
			}
			if err != nil {
				return nil, err
			}
			r = complete
		}
		found = append(found, listed(ask.Tenant, r))
	}
	return found, nil
}

func filterOf(ctx context.Context, ask tenantobject.Query) v1.RunFilter {
	var f Filter
	for name, into := range map[string]any{"result": &f.Result, "host": &f.Host, "environment": &f.Environment, "since": &f.Since, "until": &f.Until} {
		ask.Diags.Append(ask.Config.GetAttribute(ctx, path.Root(name), into)...)
	}
	filter := f.API(ask.Diags)
	filter.Limit = v1.MaxRuns
	if ask.Limit > 0 {
		filter.Limit = min(ask.Limit, filter.Limit)
	}
	return filter
}

// Filter are the attributes that choose runs of the history.
type Filter struct {
	Result      types.String      `tfsdk:"result"`
	Host        types.String      `tfsdk:"host"`
	Environment types.String      `tfsdk:"environment"`
	Since       timetypes.RFC3339 `tfsdk:"since"`
	Until       timetypes.RFC3339 `tfsdk:"until"`
}

// AboutRunsOf describes the filter by environment.
const AboutRunsOf = "Only runs of this environment; `default` has the hosts that are in no other. Supported by `osupgrade-agent` only."

// API returns the filter of a request. A value that is unknown chooses all.
func (f Filter) API(diags *diag.Diagnostics) v1.RunFilter {
	instant := func(at timetypes.RFC3339) time.Time {
		if at.IsNull() || at.IsUnknown() {
			return time.Time{}
		}
		parsed, problems := at.ValueRFC3339Time()
		diags.Append(problems...)
		return parsed
	}
	filter := v1.RunFilter{Result: f.Result.ValueString(), Since: instant(f.Since), Until: instant(f.Until)}
	if host := f.Host.ValueString(); host != "" {
		filter.Hosts = []string{host}
	}
	if name := f.Environment.ValueString(); name != "" {
		filter.Environments = []string{name}
	}
	return filter
}

func listed(tenant string, r v1.Run) tenantobject.Listed {
	owner, id := types.StringValue(tenant), types.Int64Value(int64(r.ID))
	name := fmt.Sprintf("%s/%d %s %s", tenant, r.ID, r.OpenedAt.UTC().Format(time.RFC3339), r.Phase)
	if r.Finished() {
		name = fmt.Sprintf("%s/%d %s %s", tenant, r.ID, r.OpenedAt.UTC().Format(time.RFC3339), r.Result)
	}
	return tenantobject.Listed{Name: name, Identity: identity{owner, id}, Fill: func(ctx context.Context, to *tfsdk.Resource, diags *diag.Diagnostics) {
		diags.Append(to.SetAttribute(ctx, path.Root("tenant"), owner)...)
		var m model
		diags.Append(to.Get(ctx, &m)...)
		m.fromAPI(ctx, r, diags)
		m.takeRequest(r)
		diags.Append(to.Set(ctx, m)...)
	}}
}
