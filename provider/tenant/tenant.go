// Package tenant is the resource osupgrade_tenant: a tenant of a site.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it. A site keeps what a removed tenant had: see restore.
package tenant

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_tenant"

// Resource is osupgrade_tenant.
type Resource struct {
	tenantobject.Resource[v1.Tenant, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &tenantobject.Mapping[v1.Tenant]{
	TypeName: TypeName, Describe: attributes, Elsewhere: map[string]string{"name": "name", "restore": "restore"},
	Meaning: v1.Tenant.Canonical, Validate: v1.Tenant.Validate,
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.Tenant, model](kind.Kind("Tenants", tenantobject.Kind[v1.Tenant]{
		Noun:     "tenant",
		NotFound: "Only a token of all tenants may make, change and remove tenants. Check the provider's token, its endpoint and the name of the tenant.",
		Refused: "Delete the hosts first, each with osupgrade-agent forget, and apply again. To remove the tenant all the same, set force_destroy = true, apply, and delete it then: " +
			"a run in progress is aborted, and the keys of the hosts are withdrawn.",
		NamedBy: "name",
		Object:  func(at tenantobject.Key) client.Object[v1.Tenant] { return client.Tenants },
	}))}
}

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The tenants of a site.", all)
}

// all returns the tenants of a site by their names.
func all(ctx context.Context, ask tenantobject.Query) (map[string]v1.Tenant, error) {
	tenants := map[string]v1.Tenant{}
	all, err := ask.API.TenantObjects(ctx)
	for _, one := range all {
		tenants[one.Name] = one
	}
	return tenants, err
}
