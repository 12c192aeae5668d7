package state

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/environment"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/run"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// model is the Terraform model of the data source.
type model struct {
	tenantobject.Tenanted
	Site               types.String         `tfsdk:"site"`
	WorkerApplications []string             `tfsdk:"worker_applications"`
	MaintenanceWindows []window.Model       `tfsdk:"maintenance_windows"`
	Status             types.String         `tfsdk:"status"`
	NextUpgradeIn      types.String         `tfsdk:"next_upgrade_in"`
	NextUpgradeAt      types.String         `tfsdk:"next_upgrade_at"`
	ScheduledWorkers   []worker             `tfsdk:"scheduled_workers"`
	LastUpgradeInfo    *last                `tfsdk:"last_upgrade_info"`
	Environment        types.String         `tfsdk:"environment"`
	Environments       []environment.Status `tfsdk:"environments"`
	Unplaced           types.Int64          `tfsdk:"unplaced"`
}

type worker struct {
	Host        types.String `tfsdk:"host"`
	Application types.String `tfsdk:"application"`
}

type last struct {
	StartTime types.String `tfsdk:"start_time"`
	EndTime   types.String `tfsdk:"end_time"`
	Result    types.String `tfsdk:"result"`
	Hosts     []run.Host   `tfsdk:"hosts"`
}

// Fetch reads the state and, unless site is set, the environments that are declared.
func (m *model) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	s, err := api.State(ctx, tenant, m.Site.ValueString())
	m.fromAPI(s)
	m.Environments = []environment.Status{}
	if err != nil || s.Environments == 0 || !m.Site.IsNull() {
		return err
	}
	all, err := api.EnvironmentStatuses(ctx, tenant)
	for _, e := range all {
		m.Environments = append(m.Environments, environment.StatusFromAPI(e))
	}
	return err
}

// fromAPI sets the attributes from the server's answer.
func (m *model) fromAPI(s v1.State) {
	m.WorkerApplications = []string{}
	for _, a := range s.WorkerApplications {
		m.WorkerApplications = append(m.WorkerApplications, a.Name)
	}
	m.MaintenanceWindows = window.AllFromAPI(s.MaintenanceWindows)
	m.Status = conversion.Text(s.Status)
	m.NextUpgradeIn = conversion.Text(s.NextUpgradeIn)
	m.NextUpgradeAt = conversion.Time(s.NextUpgradeAt)
	m.ScheduledWorkers = []worker{}
	for _, w := range s.ScheduledWorkers {
		m.ScheduledWorkers = append(m.ScheduledWorkers, worker{conversion.Text(w.Host), conversion.Text(w.Application)})
	}
	m.LastUpgradeInfo = lastFromAPI(s.LastUpgradeInfo)
	m.Environment = conversion.Text(s.Environment)
	m.Unplaced = types.Int64Value(int64(s.Unplaced))
}

func lastFromAPI(info *v1.LastUpgradeInfo) *last {
	if info == nil {
		return nil
	}
	result := &last{
		StartTime: conversion.Time(&info.StartTime),
		EndTime:   conversion.Time(&info.EndTime),
		Result:    conversion.Text(info.Result),
		Hosts:     []run.Host{},
	}
	for _, h := range info.Hosts {
		result.Hosts = append(result.Hosts, run.HostOf(h.Hostname, h.Status, h.Error))
	}
	return result
}
