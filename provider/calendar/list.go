package calendar

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/list"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// NewList returns the list for terraform query.
func NewList() list.ListResource {
	kind, _ := New().(*Resource)
	return kind.List("The calendars of a tenant.", all)
}

// all returns the calendars of a tenant by their names, in one request.
func all(ctx context.Context, ask tenantobject.Query) (map[string]v1.Calendar, error) {
	calendars := map[string]v1.Calendar{}
	if ask.Contents {
		all, err := ask.API.StoredCalendars(ctx, ask.Tenant)
		for name, one := range all {
			calendars[name] = one.Value
		}
		return calendars, err
	}
	named, err := ask.API.Calendars(ctx, ask.Tenant)
	for _, one := range named {
		calendars[one.Name] = v1.Calendar{}
	}
	return calendars, err
}
