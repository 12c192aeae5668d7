// Package approle is the resource osupgrade_approle: a program that logs in with a role-id and
// a secret-id.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it. It makes no secret-id: those are short-lived.
package approle

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/lockout"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/policy"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_approle"

// Resource is osupgrade_approle.
type Resource struct {
	tenantobject.Resource[v1.Approle, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &tenantobject.Mapping[v1.Approle]{
	TypeName: TypeName, Describe: attributes, Elsewhere: map[string]string{"name": "name"},
	Meaning: v1.Approle.Canonical, Validate: v1.Approle.Validate,
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.Approle, model](kind.Kind("Approles", tenantobject.Kind[v1.Approle]{
		Noun:     "approle",
		NotFound: "Check the name of the tenant and the provider's endpoint.",
		ForAll:   true, ValidName: names.ValidLogin,
		Computed: []string{"role_id"},
		Needs: func(want v1.Approle, at tenantobject.Key) []string {
			return policy.Needed(at.Tenant, want.TokenPolicies)
		},
		Guard:  &tenantobject.Guard[v1.Approle]{By: "token_policies", Refuse: refuse},
		Object: func(at tenantobject.Key) client.Object[v1.Approle] { return client.ApproleNamed(at.Name) },
	}))}
}

// refuse refuses to lock out who makes the plan, or a tenant. Each change has a Prior: a creation
// locks nobody out.
func refuse(ctx context.Context, change tenantobject.Change[v1.Approle], diags *diag.Diagnostics) {
	lockout.Refuse(ctx, change.API, change.Data, lockout.Login{
		Kind: v1.ApproleCredential, At: change.At, Had: change.Prior.TokenPolicies, Has: change.Want.TokenPolicies, Deletion: change.Deletion,
	}, diags)
}

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The approles of a tenant.", all)
}

// all returns the approles of a tenant by their names.
func all(ctx context.Context, ask tenantobject.Query) (map[string]v1.Approle, error) {
	approles := map[string]v1.Approle{}
	all, err := ask.API.Approles(ctx, ask.Tenant)
	for _, one := range all {
		approles[one.Name] = one
	}
	return approles, err
}
