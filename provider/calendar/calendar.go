// Package calendar is the resource osupgrade_calendar: a named calendar of a
// tenant, an object that only osupgrade-agent has (design.md 7).
//
// It decides what attributes there are. How they stand for the members of that
// object, package whole decides, and how it is written, package tenantresource.
package calendar

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/apiobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/nextwindow"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantresource"
)

// TypeName is the name of the resource.
const TypeName = "osupgrade_calendar"

// Resource is osupgrade_calendar.
type Resource struct {
	tenantresource.Resource[v1.Calendar, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &apiobject.Kind[v1.Calendar]{
	TypeName: TypeName, Attributes: attributes,
	Canonical: v1.Calendar.Canonical, Meaning: v1.Calendar.Canonical,
	Validate: v1.Calendar.Validate, Locate: locate,
}

// New makes the resource.
func New() resource.Resource {
	return &Resource{tenantresource.New[v1.Calendar, model](tenantresource.Kind[v1.Calendar]{
		TypeName: TypeName,
		Noun:     "calendar",
		Absent:   "tenant %q has no calendar",
		NotFound: "Calendars are offered by osupgrade-agent only: Avassa's own API has no such object. " +
			"Where the endpoint is an osupgrade-agent, check its version and the name of the tenant.",
		Locate: locate,
		Warn:   nextwindow.WarnOfCalendar,
		Requests: tenantresource.PerName((*client.Client).Calendar, (*client.Client).PutCalendar,
			(*client.Client).ValidateCalendar, (*client.Client).DeleteCalendar),
		Rules: kind.Rules(),
	})}
}

// ValidateConfig applies the API's rules.
func (*Resource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	kind.ValidateConfig(req.Config.Raw, &resp.Diagnostics)
}
