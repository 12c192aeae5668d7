package hosts

import (
	"cmp"
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timetypes/timetypes"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// model is the Terraform model of the data source.
type model struct {
	tenantobject.Tenanted
	Site               types.String      `tfsdk:"site"`
	Inventories        types.Bool        `tfsdk:"inventories"`
	Application        types.String      `tfsdk:"application"`
	Role               types.String      `tfsdk:"role"`
	Environment        types.String      `tfsdk:"environment"`
	State              types.String      `tfsdk:"state"`
	Labels             map[string]string `tfsdk:"labels"`
	VersionConstraints map[string]string `tfsdk:"version_constraints"`
	OutdatedSince      timetypes.RFC3339 `tfsdk:"outdated_since"`
	Hosts              []host            `tfsdk:"hosts"`
}

type host struct {
	Hostname     types.String      `tfsdk:"hostname"`
	Application  types.String      `tfsdk:"application"`
	Online       types.Bool        `tfsdk:"online"`
	LastSeen     types.String      `tfsdk:"last_seen"`
	AgentVersion types.String      `tfsdk:"agent_version"`
	Role         types.String      `tfsdk:"role"`
	Environment  types.String      `tfsdk:"environment"`
	Unplaced     types.Bool        `tfsdk:"unplaced"`
	Labels       map[string]string `tfsdk:"labels"`
	Versions     map[string]string `tfsdk:"versions"`
	VersionsAt   types.String      `tfsdk:"versions_at"`
	LastRun      types.Int64       `tfsdk:"last_run"`
	Result       types.String      `tfsdk:"last_run_result"`
	Status       types.String      `tfsdk:"last_run_status"`
	Class        types.String      `tfsdk:"last_run_class"`
	UpToDate     types.Bool        `tfsdk:"last_run_up_to_date"`
	Outdated     types.String      `tfsdk:"outdated_since"`
	Missed       types.String      `tfsdk:"missed_since"`
	Release      types.String      `tfsdk:"release"`
	Was          types.String      `tfsdk:"was"`
	Busy         *busy             `tfsdk:"busy"`
	Warnings     []warning         `tfsdk:"warnings"`
	Inventory    *machine          `tfsdk:"inventory"`
}

// busy says why the host is not to be upgraded now.
type busy struct {
	Reason types.String `tfsdk:"reason"`
	Until  types.String `tfsdk:"until"`
}

func busyFromAPI(said *v1.HostBusy) *busy {
	if said == nil {
		return nil
	}
	return &busy{types.StringValue(said.Reason), conversion.Time(&said.Until)}
}

// warning is what is wrong with the host outside of runs.
type warning struct {
	Kind  types.String `tfsdk:"kind"`
	Text  types.String `tfsdk:"text"`
	Since types.String `tfsdk:"since"`
}

func warningsFromAPI(list []v1.Warning) []warning {
	warnings := make([]warning, len(list))
	for i, w := range list {
		warnings[i] = warning{conversion.Text(w.Kind), conversion.Text(w.Text), conversion.Time(&w.Since)}
	}
	return warnings
}

// Fetch reads the hosts, sorted by name.
func (m *model) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	m.Hosts = []host{}
	chosen := m.filter()
	query := client.HostQuery{Site: m.Site.ValueString(), Inventories: m.Inventories.ValueBool(), Selector: m.selector()}
	for part, err := range api.HostParts(ctx, tenant, query) {
		if err != nil {
			return err
		}
		for _, h := range part {
			if chosen.keeps(h) {
				m.Hosts = append(m.Hosts, hostFromAPI(h))
			}
		}
	}
	slices.SortStableFunc(m.Hosts, func(a, b host) int {
		return cmp.Compare(a.Hostname.ValueString(), b.Hostname.ValueString())
	})
	return nil
}

// selector is what a server that can chooses the hosts by.
func (m *model) selector() v1.Selector {
	s := v1.Selector{Labels: m.Labels}
	if role := m.Role.ValueString(); role != "" {
		s.Roles = []string{role}
	}
	if name := m.Environment.ValueString(); name != "" {
		s.Environments = []string{name}
	}
	return s
}

// filter returns the filter. The schema validates its values.
func (m *model) filter() filter {
	f := filter{
		application: m.Application.ValueString(), state: m.State.ValueString(),
		fits: m.selector().Matcher(), versions: m.VersionConstraints,
	}
	if !m.OutdatedSince.IsNull() {
		f.outdatedSince, _ = m.OutdatedSince.ValueRFC3339Time()
	}
	return f
}

// hostFromAPI returns a host of the server's answer.
func hostFromAPI(h v1.Host) host {
	run, last, upToDate := types.Int64Null(), v1.HostRun{}, types.BoolNull()
	if h.LastRun != nil {
		run, last, upToDate = types.Int64Value(int64(h.LastRun.ID)), *h.LastRun, types.BoolValue(h.LastRun.UpToDate)
	}
	return host{
		Hostname:     types.StringValue(h.Hostname),
		Application:  conversion.Text(h.Application),
		Online:       types.BoolValue(h.Online),
		LastSeen:     conversion.Time(h.LastSeen),
		AgentVersion: conversion.Text(h.AgentVersion),
		Role:         conversion.Text(h.Role),
		Environment:  conversion.Text(h.Environment),
		Unplaced:     types.BoolValue(h.Unplaced),
		Labels:       h.Labels,
		Versions:     h.Versions,
		VersionsAt:   conversion.Time(h.VersionsAt),
		LastRun:      run,
		Result:       conversion.Text(last.Result),
		Status:       conversion.Text(last.Status),
		Class:        conversion.Text(last.Class),
		UpToDate:     upToDate,
		Outdated:     conversion.Time(h.OutdatedSince),
		Missed:       conversion.Time(h.MissedSince),
		Release:      conversion.Text(h.Release),
		Was:          conversion.Text(h.Was),
		Busy:         busyFromAPI(h.Busy),
		Warnings:     warningsFromAPI(h.Warnings),
		Inventory:    machineFromAPI(h.Inventory),
	}
}
