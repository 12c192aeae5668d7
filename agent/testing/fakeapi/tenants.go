package fakeapi

import (
	"context"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	identitytenant "github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
)

// tenantObjects are the tenants of a server as objects. What they have to do with those that
// exist is for a test to say: see OnlyTenants.
type tenantObjects struct{ stored *identitytenant.Tenants }

// State implements api.TenantObjects.
func (o tenantObjects) State(name string) (api.TenantObject, error) {
	one, err := o.stored.Get(name)
	return api.TenantObject{Tenant: one}, err
}

// States implements api.TenantObjects.
func (o tenantObjects) States() ([]api.TenantObject, error) {
	all, err := o.stored.List()
	objects := make([]api.TenantObject, len(all))
	for i, one := range all {
		objects[i] = api.TenantObject{Tenant: one}
	}
	return objects, err
}

// Write implements api.TenantObjects.
func (o tenantObjects) Write(_ context.Context, next identitytenant.Tenant, restore bool, permitted credential.Condition) (identitytenant.Tenant, error) {
	now, err := o.stored.Get(next.Name)
	archived := err == nil && now.Removed != nil
	switch {
	case archived && !restore:
		return identitytenant.Tenant{}, api.ErrTenantArchived
	case !archived && restore:
		return identitytenant.Tenant{}, api.ErrNoArchive
	case archived: // For its writer it is not there.
		permitted = nil
	}
	next.Made = time.Now().UTC().Truncate(time.Second)
	return o.stored.Put(next, permitted)
}

// Remove implements api.TenantObjects.
func (o tenantObjects) Remove(_ context.Context, name, _ string, permitted credential.Condition) error {
	now, err := o.stored.Get(name)
	if err != nil || now.Removed != nil {
		return os.ErrNotExist
	}
	at := time.Now().UTC().Truncate(time.Second)
	now.Removed = &at
	_, err = o.stored.Put(now, permitted)
	return err
}

// SetTenant makes a tenant as an object, or changes it.
func (s *Server) SetTenant(name, descriptive string) {
	must(s.identity.tenants.stored.Put(identitytenant.Tenant{Name: name, DescriptiveName: descriptive}, nil))
}
