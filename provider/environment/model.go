package environment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/release"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/validators"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// model is the Terraform model of the resource.
type model struct {
	tenantobject.NamedCommon
	ForceDestroy types.Bool `tfsdk:"force_destroy"`
	Declaration
}

// Declaration are the attributes of the API's object: see tenantobject.Mapping.
type Declaration struct {
	Description        types.String `tfsdk:"description"`
	Match              types.Object `tfsdk:"match"`
	MaintenanceWindows types.List   `tfsdk:"maintenance_windows"`
	Calendars          types.Set    `tfsdk:"calendars"`
	Rollout            types.Object `tfsdk:"rollout"`
	After              types.Object `tfsdk:"after"`
	release.Target
}

var _ tenantobject.Forcible = (*model)(nil)

// Force returns whether to delete the environment while it has hosts or a run.
func (m *model) Force() types.Bool { return m.ForceDestroy }

// ToAPI returns the declared environment.
func (m *model) ToAPI(ctx context.Context, diags *diag.Diagnostics) v1.Environment {
	return kind.ToAPI(ctx, m.Declaration, diags)
}

// FromAPI sets the attributes from the server's environment. A window without a time zone gets the
// default one, as in a plan.
func (m *model) FromAPI(ctx context.Context, server v1.Environment, all bool, diags *diag.Diagnostics) {
	server = ordered(server)
	server.MaintenanceWindows = slices.Clone(server.MaintenanceWindows)
	for i := range server.MaintenanceWindows {
		if w := &server.MaintenanceWindows[i]; w.Timezone == "" {
			w.Timezone = window.DefaultTimezone
		}
	}
	kind.FromAPI(ctx, &m.Declaration, server, all, diags)
}

// Loss describes the effect of a deletion.
func (m *model) Loss(tenant string) (summary, detail string) {
	detail = "After the deletion of environment " + m.Name.ValueString() + " of tenant " + tenant +
		", each of its hosts is in the environment that matches it, or else in default, with the windows and the rollout of that environment. "
	if m.ForceDestroy.ValueBool() {
		return "Hosts change their environment", detail + "With force_destroy, a run in progress continues to its end."
	}
	return "Hosts change their environment", detail + "While hosts are in it or a run is in progress, the server refuses the deletion."
}

// Schema defines the resource.
func (*Resource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	all := kind.Attributes()
	all["name"] = tenantobject.NameAttribute("The name of the environment, unique in its tenant: 1 to 63 lower-case letters, digits and hyphens, and not `default`, "+
		"which is the environment of all hosts that no other matches.", declarable())
	all["force_destroy"] = tenantobject.BoolAttribute("Whether to delete the environment even if it has hosts or a run is in progress. The run continues. `false` by default.")
	resp.Schema = schema.Schema{
		MarkdownDescription: "An environment: a named part of a tenant's hosts, such as a shop, that is upgraded by runs of its own. They go side by side with the runs of other environments. " +
			"Supported by `osupgrade-agent` only; Avassa's own API has no such object.\n\n" +
			"Without `maintenance_windows` and `calendars`, the windows and calendars of the tenant apply; without `rollout`, its rollout. A tenant may have up to 1,000 environments. " +
			"A host is in one environment at a time, and a change of `match` moves no host during a run. A host that two environments match stays where it is; if it was in none, no run upgrades it, and the plan warns of that.",
		Attributes: tenantobject.Attributes(all, tenantobject.WaitsForNo),
	}
}

// declarable refuses a name that no environment can be declared with.
func declarable() validator.String {
	return validators.Rule("the name of an environment", func(name string) error {
		if wrong := v1.EnvironmentName(name); wrong != "" {
			return fmt.Errorf("%q %s", name, wrong)
		}
		return nil
	})
}

// attributes are the attributes of the API's object.
func attributes() map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"description": tenantobject.TextAttribute("A text for people."),
		"match":       matchAttribute(),
		"maintenance_windows": window.ListAttribute("The maintenance windows of the environment's runs, in place of those of the tenant. At most 100. " +
			"Omitted, with `calendars` omitted too: the windows and calendars of the tenant. `[]`: none."),
		"calendars": schema.SetAttribute{
			ElementType: types.StringType, Optional: true,
			MarkdownDescription: "The names of calendars of kind `allow` that open windows for the environment, in place of those of the tenant. A calendar that an environment names opens windows for nobody else, unless another names it, too. Every freeze counts for every environment.",
			Validators:          []validator.Set{setvalidator.NoNullValues()},
		},
		"rollout": rolloutAttribute(),
		"after": tenantobject.ObjectAttribute("The order of environments: a window opens a run of this environment only once others have completed a run of all their hosts since its own last run.", map[string]schema.Attribute{
			"environments": tenantobject.RequiredTextSet("The names of the environments that come before it; at least one and at most 100. Environments that come after each other in a circle are refused."),
			"soak":         tenantobject.DurationAttribute("How long ago they must have completed, from `0s` to `30d`; `0s` by default."),
		}),
	}
	maps.Copy(all, release.TargetAttributes("what the configuration of the tenant says."))
	return all
}

func matchAttribute() schema.Attribute {
	attribute, _ := rollout.MatchAttribute("The hosts of the environment. An environment that names a host in `hosts` wins over one that matches it in another way.").(schema.SingleNestedAttribute)
	attribute.Optional, attribute.Required = false, true
	return attribute
}

// rolloutAttribute is the policy of the environment's runs, with the attributes of
// osupgrade_rollout.
func rolloutAttribute() schema.Attribute {
	all := rollout.Attributes()
	paused, _ := all["paused"].(schema.BoolAttribute)
	paused.MarkdownDescription = "Whether all runs of the environment are held, including the run in progress; `false` by default. `paused` of the tenant's rollout holds those of every environment."
	all["paused"] = paused
	return tenantobject.ObjectAttribute("The policy of the environment's runs, with the attributes of `osupgrade_rollout`. It replaces the rollout of the tenant completely: an omitted attribute in it has its default. Omitted: the rollout of the tenant.", all)
}
