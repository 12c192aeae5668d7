package hosts

import (
	"cmp"
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// model is the Terraform model of the data source.
type model struct {
	tenantobject.Tenanted
	Site        types.String `tfsdk:"site"`
	Inventories types.Bool   `tfsdk:"inventories"`
	Hosts       []host       `tfsdk:"hosts"`
}

type host struct {
	Hostname     types.String      `tfsdk:"hostname"`
	Application  types.String      `tfsdk:"application"`
	Online       types.Bool        `tfsdk:"online"`
	LastSeen     types.String      `tfsdk:"last_seen"`
	AgentVersion types.String      `tfsdk:"agent_version"`
	Role         types.String      `tfsdk:"role"`
	Labels       map[string]string `tfsdk:"labels"`
	Versions     map[string]string `tfsdk:"versions"`
	VersionsAt   types.String      `tfsdk:"versions_at"`
	LastRun      types.Int64       `tfsdk:"last_run"`
	Status       types.String      `tfsdk:"last_run_status"`
	Class        types.String      `tfsdk:"last_run_class"`
	Outdated     types.String      `tfsdk:"outdated_since"`
	Busy         *busy             `tfsdk:"busy"`
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

// Fetch reads the hosts.
func (m *model) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	list := api.Hosts
	if m.Inventories.ValueBool() {
		list = api.HostsWithInventories
	}
	hosts, err := list(ctx, tenant, m.Site.ValueString())
	m.fromAPI(hosts)
	return err
}

// fromAPI sets the hosts from the server's answer, sorted by name.
func (m *model) fromAPI(hosts []v1.Host) {
	m.Hosts = make([]host, 0, len(hosts))
	for _, h := range hosts {
		run, status, class := types.Int64Null(), types.StringNull(), types.StringNull()
		if h.LastRun != nil {
			run, status, class = types.Int64Value(int64(h.LastRun.ID)), types.StringValue(h.LastRun.Status), conversion.Text(h.LastRun.Class)
		}
		m.Hosts = append(m.Hosts, host{
			Hostname:     types.StringValue(h.Hostname),
			Application:  conversion.Text(h.Application),
			Online:       types.BoolValue(h.Online),
			LastSeen:     conversion.Time(h.LastSeen),
			AgentVersion: conversion.Text(h.AgentVersion),
			Role:         conversion.Text(h.Role),
			Labels:       h.Labels,
			Versions:     h.Versions,
			VersionsAt:   conversion.Time(h.VersionsAt),
			LastRun:      run,
			Status:       status,
			Class:        class,
			Outdated:     conversion.Time(h.OutdatedSince),
			Busy:         busyFromAPI(h.Busy),
			Inventory:    machineFromAPI(h.Inventory),
		})
	}
	slices.SortStableFunc(m.Hosts, func(a, b host) int {
		return cmp.Compare(a.Hostname.ValueString(), b.Hostname.ValueString())
	})
}
