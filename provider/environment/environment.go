// Package environment is the resource osupgrade_environment: a named part of a tenant's hosts with
// runs of its own, which only osupgrade-agent supports.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it.
package environment

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/calendar"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/release"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/rollout"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_environment"

// Resource is osupgrade_environment.
type Resource struct {
	tenantobject.Resource[v1.Environment, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &tenantobject.Mapping[v1.Environment]{
	TypeName: TypeName, Describe: attributes, Elsewhere: map[string]string{"name": "name"},
	Defaults: tenantobject.Defaults[v1.Environment]{
		Inside: map[string]func(map[string]any) map[string]any{"rollout": rollout.Filled}, Trimmed: trimmed,
	},
	Joined:  map[string]tenantobject.Joined{"maintenance-windows.days-of-week": window.Days},
	Renamed: map[string]string{rollout.CommandTimeouts: "timeouts"},
	Meaning: meaning, Validate: validate,
}

// trimmed returns an environment without the defaults of its rollout.
func trimmed(e v1.Environment) v1.Environment {
	if e.Rollout != nil {
		e.Rollout = new(e.Rollout.Trimmed())
	}
	return e
}

// meaning returns the canonical form, with the defaults of the rollout.
func meaning(e v1.Environment) v1.Environment {
	e = ordered(e.Canonical())
	if e.Rollout != nil {
		e.Rollout = new(e.Rollout.WithDefaults().Canonical())
	}
	return e
}

// ordered returns an environment with the lists sorted that are sets in Terraform.
func ordered(e v1.Environment) v1.Environment {
	for _, list := range []*[]string{&e.Calendars, &e.Match.Hosts, &e.Match.Roles, &e.Match.Applications} {
		*list = slices.Clone(*list)
		slices.Sort(*list)
	}
	return e
}

// validate applies the API's rules but for the windows, whose attributes have validators.
func validate(e v1.Environment) v1.Problems {
	e.MaintenanceWindows = nil
	return e.Validate()
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.Environment, model](kind.Kind("Environments", tenantobject.Kind[v1.Environment]{
		Noun:  "environment",
		Doubt: "The environment may not work as intended",
		Warn:  window.WarnOfEnvironment,
		Refused: "Wait until its run has ended, and move its hosts to other environments first: change the match of those, or use osupgrade-agent move. " +
			"To delete it anyway, set force_destroy = true, apply, and then delete it: each host goes to the environment that matches it, or else to default, and a run in progress continues.",
		Needs: func(want v1.Environment, at tenantobject.Key) []string {
			var needed []string
			for _, name := range want.Calendars {
				needed = append(needed, tenantobject.Needed(calendar.TypeName, tenantobject.Key{Tenant: at.Tenant, Name: name}))
			}
			if name := want.Named(); name != "" {
				needed = append(needed, tenantobject.Needed(release.TypeName, tenantobject.Key{Tenant: at.Tenant, Name: name}))
			}
			return needed
		},
		Object: func(at tenantobject.Key) client.Object[v1.Environment] { return client.EnvironmentNamed(at.Name) },
		List: func(ctx context.Context, api *client.Client, tenant string) (map[string]client.Stored[v1.Environment], error) {
			return api.StoredEnvironments(ctx, tenant)
		},
	}))}
}

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The environments of a tenant, without `default`, which cannot be declared.", nil)
}
