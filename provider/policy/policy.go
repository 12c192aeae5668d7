// Package policy is the resource osupgrade_policy: a policy of a tenant, which its users,
// approles and tokens may name besides roles.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it.
package policy

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_policy"

// Resource is osupgrade_policy.
type Resource struct {
	tenantobject.Resource[v1.Policy, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &tenantobject.Mapping[v1.Policy]{
	TypeName: TypeName, Describe: attributes, Elsewhere: map[string]string{"name": "name"},
	Meaning: meaning, Validate: v1.Policy.Validate,
}

// meaning returns a policy without its name, which is in its path.
func meaning(p v1.Policy) v1.Policy {
	p.Name = ""
	return p.Canonical()
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.Policy, model](kind.Kind("Policies", tenantobject.Kind[v1.Policy]{
		Noun:     "policy",
		NotFound: "Check the name of the tenant and the provider's endpoint.",
		Refused: "Change whoever names the policy first, and apply again. If this configuration does so, set lifecycle { create_before_destroy = true } on the policy: " +
			"Terraform then deletes it after the changes. To delete it all the same, set force_destroy = true, apply, and delete it then.",
		Object: func(at tenantobject.Key) client.Object[v1.Policy] { return client.PolicyNamed(at.Name) },
	}))}
}

// Needed names the policies of a tenant that a user or an approle names, for tenantobject.Kind.
// Roles are among them: no plan creates one.
func Needed(tenant string, names []string) []string {
	needed := make([]string, len(names))
	for i, name := range names {
		needed[i] = tenantobject.Needed(TypeName, tenantobject.Key{Tenant: tenant, Name: name})
	}
	return needed
}

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The policies of a tenant.", all)
}

// all returns the policies of a tenant by their names.
func all(ctx context.Context, ask tenantobject.Query) (map[string]v1.Policy, error) {
	policies := map[string]v1.Policy{}
	all, err := ask.API.Policies(ctx, ask.Tenant)
	for _, one := range all {
		policies[one.Name] = one
	}
	return policies, err
}
