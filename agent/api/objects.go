package api

import (
	"context"
	"fmt"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// configs returns the os-upgrade configuration, Avassa's object.
func (s *server) configs(c *call) (*object[v1.OSUpgrade], error) {
	return &object[v1.OSUpgrade]{
		server: s, noun: "os-upgrade configuration",
		read: s.Store.Config, remove: s.Store.DeleteConfig,
		put: func(ctx context.Context, tenant string, value v1.Kept[v1.OSUpgrade], base store.Revision) (store.Revision, error) {
			if err := s.forgetSkips(ctx, tenant, v1.DefaultEnvironment, base); err != nil {
				return store.Revision{}, err
			}
			return s.Store.PutConfig(ctx, tenant, value, base)
		},
		form: v1.OSUpgradeForm, recorded: v1.OSUpgrade.Canonical,
		inUse: refuseDuringRun, freezing: &freezing[v1.OSUpgrade]{},
		permitted: func(now stored[v1.OSUpgrade], next v1.OSUpgrade) error {
			return s.nameable(c, now.value.Value.Target, next.Target)
		},
		lock:   &s.environmentLock,
		refers: func(c v1.OSUpgrade) plan.Intent { return plan.Intent{Config: &c} },
	}, nil
}

// refuseDuringRun refuses the deletion of a configuration in use.
func refuseDuringRun(ctx context.Context, controller Controller) error {
	current, err := controller.Current(ctx)
	if err != nil || current == 0 {
		return err
	}
	shown, err := controller.Snapshot(ctx)
	if err != nil {
		return err
	}
	abort := "abort"
	if shown.Situation.Environments > 0 { // Other runs may go side by side with it.
		abort += " --all"
	}
	return &run.Refused{Run: current, Message: fmt.Sprintf("run %d is in progress; wait until it ends, end it with %s, or add force=true, which does not end the run", current, run.Typed(abort))}
}

// rollouts returns the rollout. It may be changed or deleted during a run, which
// keeps the policy with which it was opened.
func (s *server) rollouts() *object[v1.Rollout] {
	return &object[v1.Rollout]{
		server: s, noun: "rollout",
		read: s.Store.Rollout, put: s.Store.PutRollout, remove: s.Store.DeleteRollout,
		form: v1.RolloutForm, recorded: v1.Rollout.Canonical, freezing: &freezing[v1.Rollout]{holds: rolloutHolds},
		refers: func(r v1.Rollout) plan.Intent { return plan.Intent{Rollout: &r} },
	}
}

// calendar returns the calendar with the name in the path. It may be changed or
// deleted at any time, also during a run: an added freeze ends the run.
func (s *server) calendar(c *call) (*object[v1.Calendar], error) {
	name := c.PathValue("name")
	if !names.Valid(name) {
		return nil, badRequest("name", name, fmt.Sprintf(`is not the name of a calendar; use 1 to %d of a-z, 0-9 and "-", with a letter or digit at both ends`, names.MaxLength))
	}
	return &object[v1.Calendar]{
		server: s, noun: "calendar " + name,
		read: func(ctx context.Context, tenant string) (v1.Kept[v1.Calendar], store.Revision, error) {
			return s.Store.Calendar(ctx, tenant, name)
		},
		put: func(ctx context.Context, tenant string, value v1.Kept[v1.Calendar], base store.Revision) (store.Revision, error) {
			return s.Store.PutCalendar(ctx, tenant, name, value, base)
		},
		remove: func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return s.Store.DeleteCalendar(ctx, tenant, name, base)
		},
		form: v1.CalendarForm, recorded: v1.Calendar.Recorded, freezing: &freezing[v1.Calendar]{holds: calendarHolds},
		room: s.Store.RoomForCalendar,
	}, nil
}

// postCalendar creates the calendar whose name is in the body.
func (s *server) postCalendar(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	name, value, err := v1.DecodeNewCalendar(c.Header.Get("Content-Type"), body, c.has(unknownMembers))
	if err != nil {
		return err
	}
	c.SetPathValue("name", name)
	c.audit.Object = "calendar/" + name
	o, err := s.calendar(c)
	if err != nil {
		return err
	}
	return o.create(c, c.URL.Path+"/"+name, value)
}

// getCalendars lists the tenant's calendars by name, with content=true also their
// content.
func (s *server) getCalendars(c *call) error {
	all, err := s.Store.Calendars(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	list, copies := make([]v1.CalendarInfo, len(all)), map[string]*v1.CalendarCopy{}
	if c.has("content") {
		if copies, err = s.calendarCopies(c); err != nil {
			return err
		}
	}
	for i, named := range all {
		list[i] = named.Value.Info(named.Name, named.Revision.ETag())
		if !c.has("content") {
			continue
		}
		if list[i].Calendar = &all[i].Value; named.Value.URL != "" {
			list[i].Fetched = new(copies[named.Name].State(named.Name, named.Value))
		}
	}
	return sendList(s, c, list, func(i v1.CalendarInfo) string { return i.Name })
}
