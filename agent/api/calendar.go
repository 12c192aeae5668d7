package api

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// calendar is the tenant's calendar of the name in the path. One may be changed
// or deleted at any time, during a run too: a freeze that is added holds the
// run up.
func (s *server) calendar(c *call) (*object[v1.Calendar], error) {
	name := c.PathValue("name")
	if !names.Valid(name) {
		return nil, badRequest("name", name, fmt.Sprintf(`is not the name of a calendar; use 1 to %d of a-z, 0-9 and "-", with a letter or digit at both ends`, names.MaxLength))
	}
	return &object[v1.Calendar]{
		server: s, noun: "calendar " + name,
		read: func(ctx context.Context, tenant string) (v1.Calendar, store.Revision, error) {
			return s.Store.Calendar(ctx, tenant, name)
		},
		put: func(ctx context.Context, tenant string, value v1.Calendar, base store.Revision) (store.Revision, error) {
			return s.Store.PutCalendar(ctx, tenant, name, value, base)
		},
		remove: func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return s.Store.DeleteCalendar(ctx, tenant, name, base)
		},
		decode: v1.DecodeCalendar, patch: v1.MergeCalendar, canonical: v1.Calendar.Canonical,
		room: s.Store.RoomForCalendar,
	}, nil
}

// getCalendars answers the list of a tenant's calendars, by name; with
// content=true, each with what is in it.
func (s *server) getCalendars(c *call) error {
	if err := query(c, "fields", "content"); err != nil {
		return err
	}
	content, err := flag(c, "content")
	if err != nil {
		return err
	}
	all, err := s.Store.Calendars(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	list := make([]v1.CalendarInfo, len(all))
	for i, named := range all {
		list[i] = named.Calendar.Info(named.Name, etag(named.Revision))
		if content {
			list[i].Calendar = &all[i].Calendar
		}
	}
	return s.sendFields(c, list)
}
