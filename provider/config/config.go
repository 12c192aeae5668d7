// Package config is the resource osupgrade_config, a tenant's os-upgrade
// configuration. The resource owns the lists that it declares and does not touch
// the others.
//
// It decides what the lists mean and which of them are owned. Package
// tenantobject writes them.
package config

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/resourcevalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/diagnostics"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_config"

// The attributes of the two lists.
const (
	applications = "worker_applications"
	windows      = "maintenance_windows"
)

// Resource is osupgrade_config.
type Resource struct {
	tenantobject.Resource[v1.OSUpgrade, model, *model]
}

var (
	_ resource.ResourceWithConfigValidators = (*Resource)(nil)
	_ resource.ResourceWithConfigure        = (*Resource)(nil)
	_ resource.ResourceWithIdentity         = (*Resource)(nil)
	_ resource.ResourceWithImportState      = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan       = (*Resource)(nil)
)

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.OSUpgrade, model](tenantobject.Kind[v1.OSUpgrade]{
		TypeName: TypeName,
		Noun:     "configuration",
		Locate:   locate,
		Warn:     window.WarnOfConfig,
		Beside:   window.Beside,
		Needs:    needs,
		Object:   func(tenantobject.Key) client.Object[v1.OSUpgrade] { return client.Configs },
		Parts:    parts,
	})}
}

// ConfigValidators refuses a resource that manages nothing.
func (*Resource) ConfigValidators(context.Context) []resource.ConfigValidator {
	return []resource.ConfigValidator{
		resourcevalidator.AtLeastOneOf(path.MatchRoot(applications), path.MatchRoot(windows), path.MatchRoot(releases), path.MatchRoot(follow)),
		resourcevalidator.Conflicting(path.MatchRoot(releases), path.MatchRoot(follow)),
	}
}

// locate returns the attribute of a field of the API. An application has no
// path of its own, because the attribute is a set.
func locate(field string) (path.Path, bool) {
	at, ok := diagnostics.Field(field)
	if !ok {
		return at, false
	}
	switch at.Steps()[0].String() {
	case applications:
		return path.Root(applications), true
	case windows, releases, follow:
		return at, true
	default:
		return path.Empty(), false
	}
}
