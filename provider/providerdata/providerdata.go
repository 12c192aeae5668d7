// Package providerdata is what the provider passes to its resources and data
// sources: the client, the default tenant, and which resource of the
// configuration manages which object.
//
// It decides which tenant an object belongs to and reports missing settings. It
// never makes a request.
package providerdata

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
)

// Data is the configured provider. It is nil before the provider is
// configured, as during validation.
type Data struct {
	// Tenant is the provider's tenant; null if it has none.
	Tenant types.String
	// ValidateAtPlan is set if the server validates each plan.
	ValidateAtPlan bool
	// Now is the clock for warnings about the next window.
	Now func() time.Time

	client  *client.Client
	unknown []string
	claims  claims
	read    sync.Map
	applies atomic.Bool

	onceMu sync.Mutex
	made   map[string]any
}

// New returns a Data. api is nil if the provider attributes in unknown
// have unknown values.
func New(api *client.Client, unknown []string) *Data {
	return &Data{Now: time.Now, client: api, unknown: unknown}
}

// From returns the Data in what the framework passes to a
// resource; nil before the provider is configured.
func From(data any, diags *diag.Diagnostics) *Data {
	if data == nil {
		return nil
	}
	c, ok := data.(*Data)
	if !ok {
		diags.AddError("Unexpected provider data",
			fmt.Sprintf("The provider passed a %T instead of its data. This is a bug in the provider. Please report it.", data))
	}
	return c
}

// Reachable reports whether there is a client.
func (c *Data) Reachable() bool { return c != nil && c.client != nil }

// Client returns the client. Without a client it adds an error that names the
// missing settings and returns nil.
func (c *Data) Client(diags *diag.Diagnostics, operation string) *client.Client {
	if c.Reachable() {
		return c.client
	}
	missing := "the provider is not configured"
	if c != nil {
		missing = "these attributes of the provider are not known yet: " + strings.Join(c.unknown, ", ")
	}
	diags.AddError(operation,
		"There is no connection to the API: "+missing+
			".\n\nFirst apply the resources that their values come from, for instance with -target, then plan again. "+
			"The environment variables do not replace unknown values.")
	return nil
}

// TenantOr returns own, or the provider's tenant if own is null or unknown.
func (c *Data) TenantOr(own types.String) types.String {
	if own.IsNull() || own.IsUnknown() {
		if c == nil {
			return types.StringUnknown()
		}
		return c.Tenant
	}
	return own
}

// NeedTenant returns the tenant's name. If it is null or unknown, NeedTenant adds
// an error and returns the empty string.
func NeedTenant(diags *diag.Diagnostics, tenant types.String) string {
	switch {
	case tenant.IsUnknown():
		diags.AddAttributeError(path.Root("tenant"), "The tenant is not known yet",
			"The provider's attribute tenant depends on a resource that is not applied yet. Apply that first, or set tenant here.")
	case tenant.IsNull():
		diags.AddAttributeError(path.Root("tenant"), "There is no tenant",
			"Set tenant here, on the provider or in the environment variable OSUPGRADE_TENANT.")
	}
	return tenant.ValueString()
}

// PlanTenant plans the provider's tenant for a resource without tenant. If the
// provider's tenant has changed, the resource is replaced.
func (c *Data) PlanTenant(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	at := path.Root("tenant")
	var configured, was types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, at, &configured)...)
	if !configured.IsNull() || c.Tenant.IsUnknown() {
		return
	}
	if NeedTenant(&resp.Diagnostics, c.Tenant) == "" {
		return
	}
	resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, at, c.Tenant)...)
	if req.State.Raw.IsNull() {
		return
	}
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, at, &was)...)
	if !was.Equal(c.Tenant) {
		resp.RequiresReplace = append(resp.RequiresReplace, at)
	}
}

// Apply records that the process carries out an apply. Terraform runs plan and apply in two
// processes, and plans again in the second.
func (c *Data) Apply() { c.applies.Store(true) }

// Applies reports whether Apply was called.
func (c *Data) Applies() bool { return c.applies.Load() }

// Remember keeps what a refresh has read of an object, which saves the plan a request.
func (c *Data) Remember(object string, value any) { c.read.Store(object, value) }

// Recall returns what Remember has kept of an object, and whether there is anything.
func (c *Data) Recall(object string) (any, bool) { return c.read.Load(object) }

// Once returns what build has built for a key, which it calls for the first caller only.
func (c *Data) Once(key string, build func() any) any {
	c.onceMu.Lock()
	defer c.onceMu.Unlock()
	if c.made == nil {
		c.made = map[string]any{}
	}
	if _, ok := c.made[key]; !ok {
		c.made[key] = build()
	}
	return c.made[key]
}

// claims records which resource manages which part of a tenant. Terraform cannot
// see that two resources are the same object of the API. Each alias of the provider is a
// process of its own, so claims of two aliases do not meet; the creation of the second
// then finds the object of the first.
type claims struct {
	mu   sync.Mutex
	held map[claim]holder
}

type claim struct{ tenant, part string }

// holder is the resource that has claimed a part.
type holder struct {
	configuration string
	// exists is set if the resource exists, and replaced if its replacement has
	// claimed the part again.
	exists, replaced bool
}

// Claim records that a resource manages a part of the tenant, and reports whether no
// other resource does. The configuration and whether the resource exists identify it:
// Terraform passes no address. It plans each resource once, and the replacement of one
// that exists a second time, as one that does not exist.
func (c *Data) Claim(tenant, part, configuration string, exists bool) bool {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	if c.claims.held == nil {
		c.claims.held = map[claim]holder{}
	}
	key := claim{tenant, part}
	first, taken := c.claims.held[key]
	if !taken {
		c.claims.held[key] = holder{configuration: configuration, exists: exists}
		return true
	}
	if replacement := first.exists && !exists && !first.replaced && first.configuration == configuration; !replacement {
		return false
	}
	first.replaced = true
	c.claims.held[key] = first
	return true
}

// EntryOf names an entry of a list as a part of a tenant, such as one maintenance window.
func EntryOf(list, entry string) string { return list + ": " + entry }

// Rival returns a claimed part that excludes another: a list and its entries exclude each
// other. It is empty if there is none.
func (c *Data) Rival(tenant, part string) string {
	c.claims.mu.Lock()
	defer c.claims.mu.Unlock()
	for held := range c.claims.held {
		if held.tenant == tenant && (strings.HasPrefix(held.part, EntryOf(part, "")) || strings.HasPrefix(part, EntryOf(held.part, ""))) {
			return held.part
		}
	}
	return ""
}
