// Package rollout is the resource osupgrade_rollout: the policy of a tenant's runs,
// which only osupgrade-agent supports.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it.
package rollout

import (
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_rollout"

// Resource is osupgrade_rollout.
type Resource struct {
	tenantobject.Resource[v1.Rollout, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &tenantobject.Mapping[v1.Rollout]{
	TypeName: TypeName, Describe: attributes,
	Renamed: map[string]string{CommandTimeouts: "timeouts"},
	Defaults: tenantobject.Defaults[v1.Rollout]{
		Filled: v1.Rollout.Filled, Trimmed: v1.Rollout.Trimmed, Parts: []string{"checks", "hooks", CommandTimeouts},
	},
	Meaning:  func(r v1.Rollout) v1.Rollout { return r.WithDefaults().Canonical() },
	Validate: v1.Rollout.Validate,
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.Rollout, model](kind.Kind("Rollouts", tenantobject.Kind[v1.Rollout]{
		Noun:   "rollout",
		Warn:   window.NoteRollout,
		Object: func(tenantobject.Key) client.Object[v1.Rollout] { return client.Rollouts },
	}))}
}
