// Package config is the resource osupgrade_config: a tenant's os-upgrade
// configuration, of which it owns the lists that it declares and leaves the
// others alone (terraform.md 4.5).
//
// It decides what to write, and when somebody else's change must not be
// overwritten. It never starts or ends a run.
package config

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"

	"github.com/osupgrade/terraform-provider-osupgrade/provider/connection"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostic"
)

// TypeName is the name of the resource.
const TypeName = "osupgrade_config"

// Limits of the operations when the attribute timeouts names none. Deletion
// waits for a run that is under way, and a run by hand may take four hours.
const (
	createLimit = 10 * time.Minute
	readLimit   = 5 * time.Minute
	updateLimit = 10 * time.Minute
	deleteLimit = 4*time.Hour + 10*time.Minute
)

// Names of the two lists, as attributes.
const (
	applications = "worker_applications"
	windows      = "maintenance_windows"
)

// Resource is osupgrade_config.
type Resource struct {
	connection *connection.Connection
}

var (
	_ resource.ResourceWithConfigure   = (*Resource)(nil)
	_ resource.ResourceWithIdentity    = (*Resource)(nil)
	_ resource.ResourceWithImportState = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan  = (*Resource)(nil)
)

// New makes the resource.
func New() resource.Resource { return &Resource{} }

// Metadata names the resource.
func (*Resource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = TypeName
}

// IdentitySchema says that the tenant identifies the resource.
func (*Resource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"tenant": identityschema.StringAttribute{
			RequiredForImport: true,
			Description:       "The tenant whose configuration it is.",
		},
	}}
}

// Configure takes the connection over from the provider.
func (r *Resource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.connection = connection.From(req.ProviderData, &resp.Diagnostics)
}

// locate finds the attribute of a field of the API. The applications are a
// set here, which has no indexes.
var locate = func(field string) (path.Path, bool) {
	at, ok := diagnostic.Field(field)
	if !ok {
		return at, false
	}
	steps := at.Steps()
	switch root := steps[0].String(); root {
	case applications:
		return path.Root(applications), true
	case windows:
		return at, true
	default:
		return path.Empty(), false
	}
}
