// Package calendar is the resource osupgrade_calendar: a named calendar of a tenant,
// which only osupgrade-agent supports.
//
// It defines the attributes. Package tenantobject maps them to the members of the API's
// object, and reads and writes it.
package calendar

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/window"
)

// TypeName is the type name of the resource.
const TypeName = "osupgrade_calendar"

// Resource is osupgrade_calendar.
type Resource struct {
	tenantobject.Resource[v1.Calendar, model, *model]
}

var (
	_ resource.ResourceWithConfigure      = (*Resource)(nil)
	_ resource.ResourceWithIdentity       = (*Resource)(nil)
	_ resource.ResourceWithImportState    = (*Resource)(nil)
	_ resource.ResourceWithModifyPlan     = (*Resource)(nil)
	_ resource.ResourceWithValidateConfig = (*Resource)(nil)
)

var kind = &tenantobject.Mapping[v1.Calendar]{
	TypeName: TypeName, Describe: attributes,
	Meaning: v1.Calendar.Canonical, Validate: v1.Calendar.Validate,
}

// New returns the resource.
func New() resource.Resource {
	return &Resource{tenantobject.New[v1.Calendar, model](kind.Kind("Calendars", tenantobject.Kind[v1.Calendar]{
		Noun:   "calendar",
		Warn:   window.WarnOfCalendar,
		Object: func(at tenantobject.Key) client.Object[v1.Calendar] { return client.CalendarNamed(at.Name) },
		List: func(ctx context.Context, api *client.Client, tenant string) (map[string]client.Stored[v1.Calendar], error) {
			return api.StoredCalendars(ctx, tenant)
		},
	}))}
}
