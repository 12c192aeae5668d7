// Package connection is what the provider hands to its resources and data
// sources: the client, the tenant that is meant when they name none, and who
// manages what in this configuration.
//
// It decides which tenant is meant and says what is missing. It never makes a
// request.
package connection

import (
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
)

// Connection is the provider as configured. A nil Connection is one that is
// not configured yet, as during validation.
type Connection struct {
	// Tenant is the provider's tenant: null when it names none, unknown while
	// its value is.
	Tenant types.String
	// ValidateAtPlan tells whether plans ask the server to check them.
	ValidateAtPlan bool
	// Now is the clock that plans look ahead from.
	Now func() time.Time

	client  *client.Client
	unknown []string
	claims  claims
}

// New makes a Connection. A nil api needs the provider attributes whose values
// are not known yet.
func New(api *client.Client, unknown []string) *Connection {
	return &Connection{Now: time.Now, client: api, unknown: unknown}
}

// From is the Connection in the data that the framework hands over; nil before
// the provider is configured.
func From(data any, diags *diag.Diagnostics) *Connection {
	if data == nil {
		return nil
	}
	c, ok := data.(*Connection)
	if !ok {
		diags.AddError("Unexpected provider data",
			fmt.Sprintf("The provider handed over a %T instead of a connection. This is always an error in the provider. Please report it.", data))
	}
	return c
}

// Reachable reports whether there is a client to ask.
func (c *Connection) Reachable() bool { return c != nil && c.client != nil }

// Client is the client, or nil after an error that says what is missing.
func (c *Connection) Client(diags *diag.Diagnostics, operation string) *client.Client {
	if c.Reachable() {
		return c.client
	}
	missing := "the provider is not configured"
	if c != nil {
		missing = "these attributes of the provider are not known yet: " + strings.Join(c.unknown, ", ")
	}
	diags.AddError(operation,
		"There is no connection to the API, since "+missing+
			".\n\nApply what their values come from first, for instance with -target, then plan again. "+
			"The environment is not used in their place.")
	return nil
}

// TenantOr is own, or the provider's tenant when own is null or not known.
func (c *Connection) TenantOr(own types.String) types.String {
	if own.IsNull() || own.IsUnknown() {
		if c == nil {
			return types.StringUnknown()
		}
		return c.Tenant
	}
	return own
}

// NeedTenant is the name in tenant; without one it adds an error and returns
// the empty string.
func NeedTenant(diags *diag.Diagnostics, tenant types.String) string {
	switch {
	case tenant.IsUnknown():
		diags.AddAttributeError(path.Root("tenant"), "The tenant is not known yet",
			"The provider's attribute tenant depends on what is not applied yet. Apply that first, or set tenant here.")
	case tenant.IsNull():
		diags.AddAttributeError(path.Root("tenant"), "No tenant is named",
			"Set tenant here, or on the provider, or in the environment variable OSUPGRADE_TENANT.")
	}
	return tenant.ValueString()
}
