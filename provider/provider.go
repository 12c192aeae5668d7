// Package provider is the Terraform provider osupgrade. Its resources declare
// when a tenant's hosts may be upgraded and start runs; its data sources read
// hosts, runs and the state of upgrades.
//
// It decides how to reach the API and passes the connection to resources and
// data sources. It talks to the REST API only, never to a host.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/action"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	frameworkfunction "github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/approle"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/config"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/disruptionbudget"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/environment"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/function"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/health"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/hosts"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/policy"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/release"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/run"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/runs"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/state"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenant"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/token"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/user"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/webhook"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// Osupgrade is the provider.
type Osupgrade struct {
	version string
	outside outside
}

var (
	_ provider.Provider                       = (*Osupgrade)(nil)
	_ provider.ProviderWithActions            = (*Osupgrade)(nil)
	_ provider.ProviderWithConfigValidators   = (*Osupgrade)(nil)
	_ provider.ProviderWithEphemeralResources = (*Osupgrade)(nil)
	_ provider.ProviderWithFunctions          = (*Osupgrade)(nil)
	_ provider.ProviderWithListResources      = (*Osupgrade)(nil)
)

// New returns a constructor for the provider in a given version.
func New(version string) func() provider.Provider {
	return func() provider.Provider {
		return &Osupgrade{version, outside{getenv: os.Getenv, readFile: os.ReadFile}}
	}
}

// Metadata sets type name and version.
func (p *Osupgrade) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "osupgrade", p.version
}

// Configure creates the client. While a value is unknown, as in a plan that
// creates the server first, there is no client: the environment must not replace
// an unknown value, because it may name another server.
func (p *Osupgrade) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	var api *client.Client
	unknown := m.unknown()
	settings := m.settings(p.outside, &resp.Diagnostics)
	if len(unknown) == 0 && !resp.Diagnostics.HasError() {
		api = connect(settings, userAgent(p.outside.getenv, req.TerraformVersion, p.version), &resp.Diagnostics)
	}
	c := providerdata.New(api, unknown)
	c.Tenant, c.ValidateAtPlan = settings.tenant, settings.validateAtPlan
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData = c, c, c
	resp.ActionData, resp.ListResourceData = c, c
}

// Resources lists the resources.
func (*Osupgrade) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{config.New, window.New, calendar.New, rollout.New, run.New, policy.New, user.New, approle.New, webhook.New, tenant.New, disruptionbudget.New, environment.New, release.New}
}

// DataSources lists the data sources.
func (*Osupgrade) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{config.NewDataSource, state.New, environment.NewDataSource, health.New, release.NewDataSource, hosts.New, runs.New}
}

// Actions lists the actions.
func (*Osupgrade) Actions(context.Context) []func() action.Action { return run.Actions() }

// ListResources lists the lists for terraform query: one for each resource.
func (*Osupgrade) ListResources(context.Context) []func() list.ListResource {
	return []func() list.ListResource{config.NewList, window.NewList, calendar.NewList, rollout.NewList, run.NewList, policy.NewList, user.NewList, approle.NewList, webhook.NewList, tenant.NewList, disruptionbudget.NewList, environment.NewList, release.NewList}
}

// EphemeralResources lists the ephemeral resources.
func (*Osupgrade) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{token.New, token.NewJoin}
}

// Functions lists the functions.
func (*Osupgrade) Functions(context.Context) []func() frameworkfunction.Function {
	return function.All()
}
