// Package user is the resource osupgrade_user: a person who logs in with a password.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it. The password is in no plan and no state.
package user

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
const TypeName = "osupgrade_user"

// Resource is osupgrade_user.
type Resource struct {
	tenantobject.Resource[v1.User, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

// password is the attribute of the password.
const password = "password_wo"

var kind = &tenantobject.Mapping[v1.User]{
	TypeName: TypeName, Describe: attributes, Elsewhere: map[string]string{"name": "name", "password": password},
	Meaning: v1.User.Canonical, Validate: v1.User.Validate,
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.User, model](kind.Kind("Users", tenantobject.Kind[v1.User]{
		Noun:     "user",
		NotFound: "Check the name of the tenant and the provider's endpoint.",
		ForAll:   true, ValidName: names.ValidLogin,
		Secret: &tenantobject.Secret[v1.User]{Attribute: password, Set: func(u *v1.User, text string) { u.Password = text }},
		Needs:  func(want v1.User, at tenantobject.Key) []string { return policy.Needed(at.Tenant, want.TokenPolicies) },
		Guard:  &tenantobject.Guard[v1.User]{By: "token_policies", Refuse: refuse},
		Object: func(at tenantobject.Key) client.Object[v1.User] { return client.UserNamed(at.Name) },
	}))}
}

// refuse refuses to lock out who makes the plan, or a tenant. Each change has a Prior: a creation
// locks nobody out.
func refuse(ctx context.Context, change tenantobject.Change[v1.User], diags *diag.Diagnostics) {
	lockout.Refuse(ctx, change.API, change.Data, lockout.Login{
		Kind: v1.UserCredential, At: change.At, Had: change.Prior.TokenPolicies, Has: change.Want.TokenPolicies, Deletion: change.Deletion, Renews: change.Renews,
	}, diags)
}

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The users of a tenant. Their passwords are not listed.", all)
}

// all returns the users of a tenant by their names.
func all(ctx context.Context, ask tenantobject.Query) (map[string]v1.User, error) {
	users := map[string]v1.User{}
	all, err := ask.API.Users(ctx, ask.Tenant)
	for _, one := range all {
		users[one.Name] = one
	}
	return users, err
}
