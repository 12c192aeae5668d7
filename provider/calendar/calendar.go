// Package calendar is the resource osupgrade_calendar: a named calendar of a
// tenant, an object that only osupgrade-agent has (design.md 7).
//
// It decides which attributes there are. Package apiobject maps them to the
// members of that object, package tenantresource reads and writes it.
package calendar

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/path"
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
	apiobject.Resource[v1.Calendar, model, *model]
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
	return &Resource{apiobject.New[v1.Calendar, model](kind, "Calendars", tenantresource.Kind[v1.Calendar]{
		Noun:   "calendar",
		Absent: "tenant %q has no calendar",
		Warn:   nextwindow.WarnOfCalendar,
		Requests: tenantresource.PerName((*client.Client).Calendar, (*client.Client).PutCalendar,
			(*client.Client).ValidateCalendar, (*client.Client).DeleteCalendar),
	})}
}

// locate finds the attribute of a field of the API. Where something stands
// within an iCalendar text, the message says.
func locate(field string) (path.Path, bool) {
	if strings.HasPrefix(field, "ics.") || strings.HasPrefix(field, "ics[") {
		field = "ics"
	}
	return apiobject.Locate(attributes(), field)
}
