package release

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/conversion"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// DataSource is osupgrade_releases: the releases of a tenant, what names them, and how many hosts have
// them.
type DataSource struct {
	tenantobject.DataSource[all, *all]
}

var _ datasource.DataSourceWithConfigure = (*DataSource)(nil)

// NewDataSource returns the data source.
func NewDataSource() datasource.DataSource {
	return &DataSource{tenantobject.DataSource[all, *all]{TypeName: "osupgrade_releases"}}
}

// all is the Terraform model of the data source.
type all struct {
	tenantobject.Tenanted
	Releases []entry `tfsdk:"releases"`
}

type entry struct {
	Name        types.String `tfsdk:"name"`
	Version     types.String `tfsdk:"version"`
	Description types.String `tfsdk:"description"`
	Digest      types.String `tfsdk:"digest"`
	NamedBy     []string     `tfsdk:"named_by"`
	State       types.String `tfsdk:"state"`
	Hosts       types.Int64  `tfsdk:"hosts"`
	Withdrawn   *withdrawn   `tfsdk:"withdrawn"`
}

type withdrawn struct {
	Reason types.String `tfsdk:"reason"`
	At     types.String `tfsdk:"at"`
	By     types.String `tfsdk:"by"`
}

// Fetch reads the releases, and the hosts if there are any.
func (m *all) Fetch(ctx context.Context, api *client.Client, tenant string) error {
	found, err := api.Releases(ctx, tenant)
	if err != nil {
		return err
	}
	var hosts []v1.Host
	if len(found) > 0 {
		if hosts, err = api.Hosts(ctx, tenant, ""); err != nil {
			return err
		}
	}
	m.Releases = make([]entry, len(found))
	for i, r := range found {
		m.Releases[i] = entryOf(r, hosts)
	}
	return nil
}

// The states of a release, which are derived from what hosts have.
const (
	imported = "imported"
	active   = "active"
)

func entryOf(r v1.ReleaseInfo, hosts []v1.Host) entry {
	e := entry{
		Name: conversion.Text(r.Name), Version: conversion.Text(r.Version), Description: conversion.Text(r.Description), Digest: conversion.Text(r.Digest),
		NamedBy: append([]string{}, r.NamedBy...), State: types.StringValue(imported),
	}
	if w := r.Withdrawn; w != nil {
		e.Withdrawn = &withdrawn{Reason: conversion.Text(w.Reason), At: conversion.Time(&w.At), By: conversion.Text(w.By)}
	}
	have, present, lacking := int64(0), 0, 0
	for _, h := range hosts {
		has := hasRelease(h, r)
		if has {
			have++
		}
		if h.Online {
			present++
			if !has {
				lacking++
			}
		}
	}
	if e.Hosts = types.Int64Value(have); present > 0 && lacking == 0 {
		e.State = types.StringValue(active)
	}
	return e
}

// hasRelease reports whether a host has a release: it reports what that installs, or, if the release does
// not say, a run has upgraded it to that.
func hasRelease(h v1.Host, r v1.ReleaseInfo) bool {
	if len(r.Installs) == 0 {
		return h.Release == r.Name
	}
	return len(v1.Release{Installs: r.Installs}.Lacking(h.Versions)) == 0
}

// Schema defines the data source.
func (*DataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "The releases of a tenant by name, with where each is named and how many hosts have it. Supported by `osupgrade-agent` only.\n\n" +
			"`state` and `hosts` change with each run, so do not use them as values of a resource.",
		Attributes: map[string]schema.Attribute{
			"tenant": tenantobject.TenantDataAttribute(),
			"releases": tenantobject.ComputedObjects("The releases, by name.", map[string]schema.Attribute{
				"name":        tenantobject.ComputedText("The name of the release."),
				"version":     tenantobject.ComputedText("What it is called by those who build it; null if that is not declared."),
				"description": tenantobject.ComputedText("A text for people; null if there is none."),
				"digest":      tenantobject.ComputedText("The digest of all that never changes of the release: `sha256:` and the sum in hex."),
				"named_by": schema.ListAttribute{
					ElementType: types.StringType, Computed: true,
					MarkdownDescription: "Where the release is named: `the configuration`, and `environment NAME`; empty if nowhere.",
				},
				"state": tenantobject.ComputedText("`active` if all hosts that are online have it, else `imported`."),
				"hosts": tenantobject.ComputedNumber("How many hosts have it: they report what it installs or, for a release without `installs`, the last run that upgraded them installed it."),
				"withdrawn": tenantobject.ComputedObject("Why the release must not be installed any more; null while it may.", map[string]schema.Attribute{
					"reason": tenantobject.ComputedText("Why."),
					"at":     tenantobject.ComputedText("When it was withdrawn (RFC 3339)."),
					"by":     tenantobject.ComputedText("Who withdrew it."),
				}),
			}),
		},
	}
}
