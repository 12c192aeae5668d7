package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Tenants are those that a site serves.
type Tenants interface {
	// Controller returns the controller of a tenant that is served.
	Controller(name string) (Controller, bool)
	// All returns the controllers of all by the names of their tenants.
	All() map[string]Controller
}

// Fixed are Tenants that stay the same.
type Fixed map[string]Controller

// Controller implements Tenants.
func (f Fixed) Controller(name string) (Controller, bool) {
	c, found := f[name]
	return c, found
}

// All implements Tenants.
func (f Fixed) All() map[string]Controller { return f }

// TenantObject is a tenant that the site knows.
type TenantObject struct {
	tenant.Tenant
	// Configured tells that the site's configuration has it.
	Configured bool
}

// TenantObjects are the tenants of a site as objects.
type TenantObjects interface {
	// State returns a tenant, also one that was removed; os.ErrNotExist if there is none.
	State(name string) (TenantObject, error)
	// States returns all of them by name, also those that were removed.
	States() ([]TenantObject, error)
	// Write makes a tenant, and returns once it is served, or changes it. One that was
	// removed is made again with restore alone, and has all that it had.
	Write(ctx context.Context, t tenant.Tenant, restore bool, permitted credential.Condition) (tenant.Tenant, error)
	// Remove removes a tenant: nobody and no host is let in any more, and it is not
	// served. Its log and all that was stored stay.
	Remove(ctx context.Context, name, by string, permitted credential.Condition) error
}

// Errors of TenantObjects.
var (
	// ErrTenantArchived means that there is the log of a removed tenant of the name.
	ErrTenantArchived = problem(http.StatusConflict, "name", "",
		"name: the site keeps the log and the configuration of a tenant of this name, which was removed; add restore=true to take them up again, or use another name")
	// ErrNoArchive means that there is nothing to restore.
	ErrNoArchive = problem(http.StatusConflict, "restore", "", "restore: the site keeps nothing of a tenant of this name; leave restore out to make it")
	// ErrTenantConfigured means that a tenant is not one of the API.
	ErrTenantConfigured = problem(http.StatusConflict, "name", "",
		"name: the tenant is in the site's configuration, which wins; remove it from the tenants of osupgrade-agent serve, restart the site, and delete it then")
	// ErrTooManyTenants means that a site has no room for another tenant.
	ErrTooManyTenants = errors.New("there are too many tenants")
)

var errFixedTenants = problem(http.StatusNotFound, "", "", "the tenants of this site are in its configuration alone")

// tenantObject returns the tenant with the name in the path.
func (s *server) tenantObject(c *call) (*object[v1.Tenant], error) {
	if s.TenantObjects == nil {
		return nil, errFixedTenants
	}
	name := c.PathValue("tenant")
	if !names.Valid(name) {
		return nil, badRequest("tenant", name, "is not the name of a tenant; "+names.Form)
	}
	same := func(t v1.Tenant) v1.Tenant { return t }
	return &object[v1.Tenant]{
		server: s, noun: "tenant " + name, immediate: true, ofSite: true,
		read: func(context.Context, string) (v1.Kept[v1.Tenant], store.Revision, error) {
			object, err := s.TenantObjects.State(name)
			if err == nil && object.Removed != nil {
				err = os.ErrNotExist
			}
			return v1.Kept[v1.Tenant]{Value: v1.Tenant{Name: name, DescriptiveName: object.DescriptiveName}}, revisionOf(object.Revision), kept(err)
		},
		put: func(ctx context.Context, _ string, value v1.Kept[v1.Tenant], base store.Revision) (store.Revision, error) {
			object, err := s.TenantObjects.Write(ctx, tenant.Tenant{Name: name, DescriptiveName: value.Value.DescriptiveName}, c.has("restore"), credential.IfRevision(base.Number))
			return revisionOf(object.Revision), kept(err)
		},
		remove: func(ctx context.Context, _ string, base store.Revision) (store.Revision, error) {
			return store.Revision{}, kept(s.TenantObjects.Remove(ctx, name, c.who.Name, credential.IfRevision(base.Number)))
		},
		form: v1.TenantForm, recorded: same,
		permitted: func(_ stored[v1.Tenant], next v1.Tenant) error {
			if next.Name != "" && next.Name != name {
				return badRequest("name", next.Name, "is not the name in the path; leave it out")
			}
			return nil
		},
		inUse: func(ctx context.Context, _ Controller) error { return s.tenantInUse(ctx, name) },
	}, nil
}

// tenantInUse returns why a tenant is not removed without force: it has a run under way, or
// hosts.
func (s *server) tenantInUse(ctx context.Context, name string) error {
	object, err := s.TenantObjects.State(name)
	if err == nil && object.Configured {
		return ErrTenantConfigured
	}
	controller, served := s.Tenants.Controller(name)
	if err != nil || !served {
		return kept(err)
	}
	current, err := controller.Current(ctx)
	if err != nil {
		return err
	}
	if current != 0 {
		return &run.Refused{Run: current, Message: "a run of the tenant is in progress; wait until it ends, or add force=true, which aborts it at once"}
	}
	hosts, err := controller.Hosts(ctx, v1.HostFilter{})
	if err != nil || len(hosts) == 0 {
		return err
	}
	const shown = 5
	list := make([]string, 0, shown)
	for _, host := range hosts[:min(len(hosts), shown)] {
		list = append(list, host.Hostname)
	}
	more := ""
	if len(hosts) > shown {
		more = " and others"
	}
	return problem(http.StatusPreconditionFailed, "", "", "the tenant has %d hosts (%s%s); delete them, or add force=true, which withdraws their keys", len(hosts), strings.Join(list, ", "), more)
}

// tenantStates returns the tenants with what the site knows of them.
func (s *server) tenantStates() ([]v1.TenantState, error) {
	if s.TenantObjects == nil {
		return nil, errFixedTenants
	}
	all, err := s.TenantObjects.States()
	return shownAs(all, tenantState), err
}

func tenantState(t TenantObject) v1.TenantState {
	state := v1.TenantState{Name: t.Name, DescriptiveName: t.DescriptiveName, Source: v1.TenantOfAPI, Status: v1.TenantActive, RemovalTime: t.Removed}
	if t.Configured {
		state.Source = v1.TenantOfSite
	}
	if t.Removed != nil {
		state.Status = v1.TenantRemoved
	}
	if !t.Made.IsZero() {
		made := t.Made.UTC().Truncate(time.Second)
		state.CreationTime = &made
	}
	return state
}

func (s *server) getTenants(c *call) error {
	all, err := s.tenantStates()
	if err != nil {
		return err
	}
	list := []v1.Tenant{}
	for _, t := range all {
		if t.Status == v1.TenantActive {
			list = append(list, v1.Tenant{Name: t.Name, DescriptiveName: t.DescriptiveName})
		}
	}
	return sendList(s, c, list, func(t v1.Tenant) string { return t.Name })
}

func (s *server) getTenantStates(c *call) error {
	all, err := s.tenantStates()
	if err != nil {
		return err
	}
	return sendList(s, c, all, func(t v1.TenantState) string { return t.Name })
}

func (s *server) getTenantState(c *call) error {
	all, err := s.tenantStates()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(t v1.TenantState) bool { return t.Name == c.PathValue("tenant") })
	if i < 0 {
		return missing("tenant", "there is no tenant %.70q", c.PathValue("tenant"))
	}
	return s.sendFields(c, all[i])
}

// postTenant makes the tenant whose name is in the body.
func (s *server) postTenant(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeTenant(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	c.SetPathValue("tenant", wanted.Name)
	c.audit.Object = "tenant/" + wanted.Name
	o, err := s.tenantObject(c)
	if err != nil {
		return err
	}
	return o.create(c, c.URL.Path+"/"+wanted.Name, v1.Kept[v1.Tenant]{Value: wanted})
}
