package runs

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/run"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/wayback"
)

// model is the Terraform model of the data source.
type model struct {
	tenantobject.Tenanted
	run.Filter
	Limit types.Int64 `tfsdk:"limit"`
	Runs  []pastRun   `tfsdk:"runs"`
}

type pastRun struct {
	ID          types.Int64    `tfsdk:"id"`
	Environment types.String   `tfsdk:"environment"`
	Until       types.String   `tfsdk:"until"`
	Phase       types.String   `tfsdk:"phase"`
	Result      types.String   `tfsdk:"result"`
	Reason      types.String   `tfsdk:"reason"`
	Trigger     types.String   `tfsdk:"trigger"`
	OpenedAt    types.String   `tfsdk:"opened_at"`
	EndedAt     types.String   `tfsdk:"ended_at"`
	NotAfter    types.String   `tfsdk:"not_after"`
	Hosts       []host         `tfsdk:"hosts"`
	WayBack     *wayback.Model `tfsdk:"way_back"`
}

type host struct {
	run.Host
	UpToDate types.Bool   `tfsdk:"up_to_date"`
	Stage    types.String `tfsdk:"stage"`
	Note     types.String `tfsdk:"note"`
}

// Fetch reads the list of runs and, where the list omits the hosts of a run, the
// run itself.
func (m *model) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	filter := m.API(&diag.Diagnostics{}) // ValidateConfig has reported what is wrong.
	filter.Limit = int(m.Limit.ValueInt64())
	found, err := api.Runs(ctx, tenant, filter)
	if err != nil {
		return err
	}
	m.Runs = make([]pastRun, 0, len(found))
	for _, r := range found {
		if r.Hosts == nil {
			complete, err := api.Run(ctx, tenant, r.ID)
			switch {
			case err == nil:
				r = complete
			// 404: the server has deleted the run from its history since.
			case !client.Missing(err):
				return err
			}
		}
		m.Runs = append(m.Runs, fromAPI(r))
	}
	return nil
}

func fromAPI(r v1.Run) pastRun {
	hosts := make([]host, 0, len(r.Hosts))
	for _, h := range r.Hosts {
		hosts = append(hosts, host{run.HostOf(h.Hostname, h.Status, h.Error), types.BoolValue(h.UpToDate), conversion.Text(h.Stage), conversion.Text(h.Note)})
	}
	return pastRun{
		ID: types.Int64Value(int64(r.ID)), Environment: conversion.Text(r.Environment), Until: conversion.Text(r.Until), Phase: conversion.Text(r.Phase), Result: conversion.Text(r.Result), Reason: conversion.Text(r.Reason),
		Trigger: conversion.Text(r.Trigger), OpenedAt: conversion.Time(&r.OpenedAt), EndedAt: conversion.Time(r.EndedAt), NotAfter: conversion.Time(&r.NotAfter),
		Hosts: hosts, WayBack: wayback.Of(r.WayBack),
	}
}

// ValidateConfig refuses a filter that no run passes.
func (*DataSource) ValidateConfig(ctx context.Context, req datasource.ValidateConfigRequest, resp *datasource.ValidateConfigResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	f := m.API(&resp.Diagnostics)
	if !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until) {
		resp.Diagnostics.AddAttributeError(path.Root("until"), "Invalid value of until", m.Until.ValueString()+" is not after since, "+m.Since.ValueString()+".")
	}
}
