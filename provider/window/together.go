package window

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/providerdata"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// together is what the plans of this process make of the times at which runs of a tenant may
// start. Terraform plans a resource after those that it depends on, so a configuration that
// depends on its freezes and its rollout finds them here. A nil together knows nothing.
type together struct {
	mu      sync.Mutex
	arrived time.Time
	// windows are those of a resource that owns all of them; nil if none is planned.
	windows []v1.MaintenanceWindow
	// opened and closed are those of the other resources, by their keys.
	opened, closed map[string]v1.MaintenanceWindow
	// calendars are the planned ones; a deleted one is nil. declared are the planned environments
	// likewise.
	calendars map[string]*v1.Calendar
	declared  map[string]*v1.Environment
	// paused is that of the planned rollout; nil if none is planned.
	paused *bool
}

// togetherOf returns what the process plans for a tenant.
func togetherOf(data *providerdata.Data, tenant string) *together {
	if data == nil {
		return nil
	}
	planned, _ := data.Once("plans of "+tenant, func() any {
		return &together{
			opened: map[string]v1.MaintenanceWindow{}, closed: map[string]v1.MaintenanceWindow{},
			calendars: map[string]*v1.Calendar{}, declared: map[string]*v1.Environment{},
		}
	}).(*together)
	return planned
}

// note records a part of the plan.
func (t *together) note(record func()) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived = time.Now()
	record()
}

// noteWindow records that a window is made out of another; was is nil for a creation, want for
// a deletion.
func (t *together) noteWindow(was, want *v1.MaintenanceWindow) {
	t.note(func() {
		if was != nil {
			t.closed[Key(*was)] = *was
		}
		if want != nil {
			t.opened[Key(*want)] = *want
		}
	})
}

// noteConfig records the planned windows of a resource that owns all of them.
func (t *together) noteConfig(change tenantobject.Change[v1.OSUpgrade]) {
	windows := change.Want.MaintenanceWindows
	if change.Deletion && change.Prior.MaintenanceWindows != nil {
		windows = []v1.MaintenanceWindow{}
	}
	if windows != nil {
		t.note(func() { t.windows = windows })
	}
}

// noteCalendar records a planned calendar. Of one with a URL the server knows the events.
func (t *together) noteCalendar(change tenantobject.Change[v1.Calendar]) {
	if !change.Deletion && change.Want.URL != "" {
		return
	}
	t.note(func() {
		t.calendars[change.At.Name] = nil
		if !change.Deletion {
			t.calendars[change.At.Name] = &change.Want
		}
	})
}

// noteEnvironment records a planned environment.
func (t *together) noteEnvironment(change tenantobject.Change[v1.Environment]) {
	t.note(func() {
		t.declared[change.At.Name] = nil
		if !change.Deletion {
			t.declared[change.At.Name] = &change.Want
		}
	})
}

// NoteRollout records whether the planned rollout holds every run.
func NoteRollout(_ context.Context, change tenantobject.Change[v1.Rollout], _ *diag.Diagnostics) {
	t := togetherOf(change.Data, change.At.Tenant)
	t.note(func() { t.paused = new(change.Want.Paused) })
}

// config returns a configuration with the planned windows.
func (t *together) config(server v1.OSUpgrade) v1.OSUpgrade {
	if t == nil {
		return server
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	windows := slices.Clone(server.MaintenanceWindows)
	if t.windows != nil {
		windows = slices.Clone(t.windows)
	}
	windows = slices.DeleteFunc(windows, func(w v1.MaintenanceWindow) bool {
		_, closed := t.closed[Key(w)]
		_, opened := t.opened[Key(w)]
		return closed || opened
	})
	for _, w := range t.opened {
		windows = append(windows, w)
	}
	server.MaintenanceWindows = windows
	return server
}

// merge puts the planned calendars into those of the server.
func (t *together) merge(calendars map[string]v1.Calendar) map[string]v1.Calendar {
	if t == nil {
		return calendars
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return merged(calendars, t.calendars)
}

// environments puts the planned environments into those of the server.
func (t *together) environments(all map[string]v1.Environment) map[string]v1.Environment {
	if t == nil {
		return all
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return merged(all, t.declared)
}

// merged puts planned objects, of which a deleted one is nil, into those of the server.
func merged[T any](server map[string]T, planned map[string]*T) map[string]T {
	for name, one := range planned {
		if one == nil {
			delete(server, name)
		} else {
			server[name] = *one
		}
	}
	return server
}

// holds reports whether the rollout holds every run: the planned one, or else the one that the
// process has read.
func (t *together) holds(data *providerdata.Data, tenant string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused != nil {
		return *t.paused
	}
	rollout, _ := tenantobject.Recalled[v1.Rollout](data, rolloutType, tenantobject.Key{Tenant: tenant})
	return rollout.Paused
}

// rolloutType is the type name of the rollout.
const rolloutType = "osupgrade_rollout"

// settle waits until nothing has been planned for a moment: the plan of a destroy comes in any
// order, and windows that go first open nothing.
func (t *together) settle(ctx context.Context) {
	const quiet = 250 * time.Millisecond
	if t == nil {
		return
	}
	for {
		t.mu.Lock()
		pause := time.Until(t.arrived.Add(quiet))
		t.mu.Unlock()
		if pause <= 0 {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}
