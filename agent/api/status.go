package api

import (
	"context"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	// statusTimeout is how long a tenant may take to tell its status: one that is stuck does not
	// keep back the others.
	statusTimeout = 3 * time.Second
	// statusesAtOnce is how many tenants are asked at the same time.
	statusesAtOnce = 16
)

// getStatus tells the status of each tenant whose state the caller may read.
func (s *server) getStatus(c *call) error {
	tenants := s.Tenants.All()
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(tenants)), func(name string) bool {
		return access.Decide(c.who, http.MethodGet, "/v1/state/tenants/"+name+"/os-upgrade") != nil
	})
	all := make([]v1.TenantStatus, len(names))
	var asked sync.WaitGroup
	slots := make(chan struct{}, statusesAtOnce)
	for i, name := range names {
		slots <- struct{}{}
		asked.Go(func() {
			defer func() { <-slots }()
			all[i] = s.statusOf(c.Context(), name, tenants[name])
		})
	}
	asked.Wait()
	return sendList(s, c, all, func(t v1.TenantStatus) string { return t.Tenant })
}

// statusOf asks a controller for the status of its tenant. A panic is the trouble of this tenant
// only: it is asked in a goroutine of its own, where net/http cannot recover.
func (s *server) statusOf(ctx context.Context, name string, controller Controller) (status v1.TenantStatus) {
	defer func() {
		if cause := recover(); cause != nil {
			s.Log.Error("the status of a tenant is not available", "tenant", name, "panic", cause, "stack", string(debug.Stack()))
			status = v1.TenantStatus{Tenant: name, Trouble: "its status is not available because of a fault in this program; the log of the site has the cause"}
		}
	}()
	if controller == nil {
		return v1.TenantStatus{Tenant: name, Trouble: ErrStopped.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	shown, err := controller.Snapshot(ctx)
	if err != nil {
		return v1.TenantStatus{Tenant: name, Trouble: err.Error()}
	}
	status = v1.StatusOf(name, shown)
	if shown.Situation.Environments > 0 {
		all, err := controller.EnvironmentStatuses(ctx)
		if err != nil {
			return v1.TenantStatus{Tenant: name, Trouble: err.Error()}
		}
		status.Environments = v1.SumUp(all)
	}
	return status
}
