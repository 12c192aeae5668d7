package state

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/run"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// model is the Terraform model of the data source.
type model struct {
	tenantobject.Tenanted
	Site               types.String   `tfsdk:"site"`
	WorkerApplications []string       `tfsdk:"worker_applications"`
	MaintenanceWindows []window.Model `tfsdk:"maintenance_windows"`
	Status             types.String   `tfsdk:"status"`
	NextUpgradeIn      types.String   `tfsdk:"next_upgrade_in"`
	NextUpgradeAt      types.String   `tfsdk:"next_upgrade_at"`
	ScheduledWorkers   []worker       `tfsdk:"scheduled_workers"`
	LastUpgradeInfo    *last          `tfsdk:"last_upgrade_info"`
	Environment        types.String   `tfsdk:"environment"`
	Environments       []environment  `tfsdk:"environments"`
	Unplaced           types.Int64    `tfsdk:"unplaced"`
}

type environment struct {
	Name          types.String   `tfsdk:"name"`
	Hosts         types.Int64    `tfsdk:"hosts"`
	Outdated      types.Int64    `tfsdk:"outdated"`
	Missed        types.Int64    `tfsdk:"missed"`
	Status        types.String   `tfsdk:"status"`
	Needs         []string       `tfsdk:"needs"`
	RunID         types.Int64    `tfsdk:"run_id"`
	Result        types.String   `tfsdk:"result"`
	NextUpgradeAt types.String   `tfsdk:"next_upgrade_at"`
	SkippedWindow *skippedWindow `tfsdk:"skipped_window"`
}

type skippedWindow struct {
	Start  types.String `tfsdk:"start"`
	End    types.String `tfsdk:"end"`
	By     types.String `tfsdk:"by"`
	Reason types.String `tfsdk:"reason"`
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
	m.Environments = []environment{}
	if err != nil || s.Environments == 0 || !m.Site.IsNull() {
		return err
	}
	all, err := api.EnvironmentStatuses(ctx, tenant)
	for _, e := range all {
		m.Environments = append(m.Environments, environmentFromAPI(e))
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

func environmentFromAPI(e v1.EnvironmentStatus) environment {
	run, result := types.Int64Null(), types.StringNull()
	if e.Run != nil {
		run, result = types.Int64Value(int64(e.Run.ID)), conversion.Text(e.Run.Result)
	}
	return environment{
		Name: conversion.Text(e.Name), Status: conversion.Text(e.Status),
		Hosts: types.Int64Value(int64(e.Hosts)), Outdated: types.Int64Value(int64(e.Outdated)), Missed: types.Int64Value(int64(e.Missed)),
		Needs: append([]string{}, e.Needs...), RunID: run, Result: result, NextUpgradeAt: conversion.Time(e.NextUpgradeAt),
		SkippedWindow: skippedFromAPI(e.SkippedWindow),
	}
}

func skippedFromAPI(w *v1.SkippedWindow) *skippedWindow {
	if w == nil {
		return nil
	}
	return &skippedWindow{Start: conversion.Time(&w.Start), End: conversion.Time(&w.End), By: conversion.Text(w.By), Reason: conversion.Text(w.Reason)}
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
