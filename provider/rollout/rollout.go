// Package rollout is the resource osupgrade_rollout: the policy of a tenant's
// runs, an object that only osupgrade-agent has (design.md 7).
//
// It decides what attributes there are. How they stand for the members of that
// object, package whole decides, and how it is written, package tenantresource.
package rollout

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/apiobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// TypeName is the name of the resource.
const TypeName = "osupgrade_rollout"

// Resource is osupgrade_rollout.
type Resource struct {
	tenantresource.Resource[v1.Rollout, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &apiobject.Kind[v1.Rollout]{
	TypeName: TypeName, Attributes: attributes, Renamed: map[string]string{timeoutsAttribute: timeoutsMember},
	Canonical: v1.Rollout.Canonical,
	Meaning:   func(r v1.Rollout) v1.Rollout { return r.WithDefaults().Canonical() },
	Validate:  v1.Rollout.Validate,
	Locate:    locate,
}

// New makes the resource.
func New() resource.Resource {
	return &Resource{tenantresource.New[v1.Rollout, model](tenantresource.Kind[v1.Rollout]{
		TypeName: TypeName,
		Noun:     "rollout",
		Absent:   "tenant %q has no rollout",
		NotFound: "Rollouts are offered by osupgrade-agent only: Avassa's own API has no such object. " +
			"Where the endpoint is an osupgrade-agent, check its version and the name of the tenant.",
		Locate: locate,
		Requests: tenantresource.PerTenant((*client.Client).Rollout, (*client.Client).PutRollout,
			(*client.Client).ValidateRollout, (*client.Client).DeleteRollout),
		Rules: kind.Rules(),
	})}
}

// ValidateConfig applies the API's rules.
func (*Resource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	kind.ValidateConfig(req.Config.Raw, &resp.Diagnostics)
}
