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
	Site  types.String `tfsdk:"site"`
	Hosts []host       `tfsdk:"hosts"`
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
}

// Fetch reads the hosts.
func (m *model) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	hosts, err := api.Hosts(ctx, tenant, m.Site.ValueString())
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
		})
	}
	slices.SortStableFunc(m.Hosts, func(a, b host) int {
		return cmp.Compare(a.Hostname.ValueString(), b.Hostname.ValueString())
	})
}
