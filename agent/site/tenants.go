package site

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/controller"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/tell/metrics"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// tenants are those that the site serves: those of its configuration, and those that were
// made by the API and not removed. Where both say something of a tenant, the configuration
// wins: it is served.
type tenants struct {
	site    *Site
	o       Options
	objects *tenant.Tenants
	// running is the life of the site.
	running context.Context //nolint:containedctx // tenants are started by requests, and outlive them

	// changing is held while a tenant is made or removed.
	changing sync.Mutex
	closed   bool
	mu       sync.Mutex
	served   map[string]*servedTenant
	// failing are those of which a part has stopped by itself and is not started again yet.
	failing map[string]bool
	// begun is closed once all are served that are served from the start.
	begun chan struct{}
}

// servedTenant is a tenant while it is served.
type servedTenant struct {
	stop context.CancelFunc
	// parts are those that run, or ran last; ended is closed once none is started any more.
	parts atomic.Pointer[tenantParts]
	ended chan struct{}
}

// tenantParts are the parts of the site that belong to one tenant, from their start to their
// end.
type tenantParts struct {
	*controller.Controller
	// hosts is the connection on which its hosts are received.
	hosts   *nats.Conn
	stop    context.CancelFunc
	running sync.WaitGroup
	// failed receives why a part has stopped by itself.
	failed chan error
}

// run runs a part until ctx ends.
func (p *tenantParts) run(ctx context.Context, part func(context.Context) error) {
	p.running.Go(func() {
		if err := part(ctx); err != nil && ctx.Err() == nil {
			select {
			case p.failed <- err:
			default:
			}
		}
	})
}

// end returns when all parts have stopped.
func (p *tenantParts) end() {
	p.stop()
	p.running.Wait()
	if p.hosts != nil {
		p.hosts.Close()
	}
}

// begin serves all tenants.
func (t *tenants) begin(ctx context.Context) error {
	made, err := t.objects.List()
	if err != nil {
		return err
	}
	names := slices.Clone(t.o.Tenants)
	for _, object := range made {
		switch configured := t.configured(object.Name); {
		case object.Removed == nil && !configured:
			names = append(names, object.Name)
		case object.Removed != nil && configured:
			t.site.log.Warn("a tenant that was removed by the API is in the site's configuration, and is served again", "tenant", object.Name)
			object.Removed = nil
			if _, err := t.objects.Put(object, nil); err != nil {
				return err
			}
		case object.Removed != nil:
			// The process may have ended before all was withdrawn.
			if err := t.withdraw(object.Name); err != nil {
				return fmt.Errorf("cannot withdraw what tenant %s had: %w", object.Name, err)
			}
		}
	}
	starting := make(chan struct{}, maxStarting)
	for _, name := range names {
		starting <- struct{}{}
		if err := t.serve(ctx, name); err != nil {
			return err
		}
		go func() {
			t.read(name)
			<-starting
		}()
	}
	close(t.begun)
	return nil
}

// maxStarting is how many tenants are started at once. The server handles the requests of all
// one after the other, and each is given up after 5 seconds.
const maxStarting = 16

// read waits until the controller of a tenant has read its log, or cannot, for a while.
func (t *tenants) read(name string) {
	ctx, stop := context.WithTimeout(t.running, readyWithin)
	defer stop()
	if c, served := t.Controller(name); served {
		_, _ = c.Current(ctx)
	}
}

// configured reports whether the site's configuration has a tenant.
func (t *tenants) configured(name string) bool { return slices.Contains(t.o.Tenants, name) }

// serve starts the parts of a tenant, and starts them again whenever one stops by itself.
func (t *tenants) serve(ctx context.Context, name string) error {
	running, stop := context.WithCancel(t.running)
	measured := t.site.metrics.Tenant(name)
	parts, err := t.start(ctx, running, name, measured)
	one := &servedTenant{stop: stop, ended: make(chan struct{})}
	if err != nil {
		close(one.ended)
		t.end(name, one)
		return err
	}
	one.parts.Store(parts)
	t.mu.Lock()
	t.served[name] = one
	t.mu.Unlock()
	t.site.parts.Go(func() {
		defer close(one.ended)
		t.keep(running, name, one, measured)
	})
	return nil
}

// start starts the parts of a tenant.
func (t *tenants) start(ctx, running context.Context, name string, measured *metrics.Tenant) (*tenantParts, error) {
	running, stop := context.WithCancel(running)
	parts := &tenantParts{stop: stop, failed: make(chan error, 1)}
	if err := t.site.control(ctx, running, t.o, name, measured, parts); err != nil {
		parts.end()
		return nil, err
	}
	return parts, nil
}

// Pauses before the parts of a tenant are started again: the first, and the longest. After
// steadyAfter they have worked, and the next pause is the first again.
const (
	firstPause  = time.Second
	lastPause   = time.Minute
	steadyAfter = 10 * time.Minute
)

// keep starts the parts of a tenant again when one has stopped by itself, until running ends:
// what is wrong with one tenant holds up no other. Where no tenant is served any more, the
// site ends, so that all of it begins anew.
func (t *tenants) keep(running context.Context, name string, one *servedTenant, measured *metrics.Tenant) {
	for pause, begun := firstPause, time.Now(); ; {
		parts := one.parts.Load()
		var err error
		select {
		case <-running.Done():
		case err = <-parts.failed:
		}
		parts.end()
		if running.Err() != nil {
			return
		}
		if time.Since(begun) > steadyAfter {
			pause = firstPause
		}
		if t.down(running, name) {
			t.site.fail(err)
		}
		for err != nil {
			t.site.log.Error("a tenant is not served; restarting its controller", "tenant", name, "after", pause, "error", err)
			if wait.Sleep(running, pause) != nil {
				return
			}
			pause = min(2*pause, lastPause)
			if parts, err = t.start(running, running, name, measured); err == nil {
				one.parts.Store(parts)
			}
		}
		begun = time.Now()
		t.up(name)
	}
}

// down notes that a tenant is not served for the time being, up that it is again. last means
// that no other is served either.
func (t *tenants) down(running context.Context, name string) (last bool) {
	select {
	case <-t.begun:
	case <-running.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failing[name] = true
	for other := range t.served {
		if !t.failing[other] {
			return false
		}
	}
	return true
}

func (t *tenants) up(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.failing, name)
}

// end stops what serves a tenant, and returns when it has stopped.
func (t *tenants) end(name string, one *servedTenant) {
	one.stop()
	<-one.ended
	t.up(name)
	t.site.warners.remove(name)
	t.site.metrics.Forget(name)
}

// Controller implements api.Tenants.
func (t *tenants) Controller(name string) (api.Controller, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one, found := t.served[name]
	if !found {
		return nil, false
	}
	return one.parts.Load().Controller, true
}

// tellWithin is how long the controller of a tenant may take to tell of the hosts that wait for
// approval: those of the others wait meanwhile.
const tellWithin = 10 * time.Second

// tellWaiting tells the people of a tenant which hosts wait for approval, if it is served.
func (t *tenants) tellWaiting(ctx context.Context, tenant string, hosts []v1.WaitingHost) error {
	t.mu.Lock()
	one, found := t.served[tenant]
	t.mu.Unlock()
	if !found {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, tellWithin)
	defer stop()
	return one.parts.Load().TellWaiting(ctx, hosts)
}

// All implements api.Tenants.
func (t *tenants) All() map[string]api.Controller {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := map[string]api.Controller{}
	for name, one := range t.served {
		all[name] = one.parts.Load().Controller
	}
	return all
}

// Tenants returns the names of the tenants that the site serves.
func (s *Site) Tenants() []string { return slices.Sorted(maps.Keys(s.tenants.All())) }

// controllers returns those of all tenants.
func (t *tenants) controllers() (all []*controller.Controller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.served {
		all = append(all, one.parts.Load().Controller)
	}
	return all
}

// shut has no tenant be made or removed any more.
func (t *tenants) shut() {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.closed = true
}

// errClosing means that the site ends.
var errClosing = errors.New("the site is being stopped")

// States implements api.TenantObjects.
func (t *tenants) States() ([]api.TenantObject, error) {
	made, err := t.objects.List()
	if err != nil {
		return nil, err
	}
	var all []api.TenantObject
	for _, name := range t.o.Tenants {
		if !slices.ContainsFunc(made, func(object tenant.Tenant) bool { return object.Name == name }) {
			all = append(all, api.TenantObject{Tenant: tenant.Tenant{Name: name}, Configured: true})
		}
	}
	for _, object := range made {
		all = append(all, api.TenantObject{Tenant: object, Configured: t.configured(object.Name)})
	}
	slices.SortFunc(all, func(a, b api.TenantObject) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return all, nil
}

// State implements api.TenantObjects.
func (t *tenants) State(name string) (api.TenantObject, error) {
	object, err := t.objects.Get(name)
	configured := t.configured(name)
	if errors.Is(err, os.ErrNotExist) && configured {
		return api.TenantObject{Tenant: tenant.Tenant{Name: name}, Configured: true}, nil
	}
	return api.TenantObject{Tenant: object, Configured: configured}, err
}

// maxTenants bounds the tenants of a site, also those that were removed: each has a stream
// on disk.
const maxTenants = 1000

// readyWithin is how long a write waits for the controller of a new tenant.
const readyWithin = 10 * time.Second

// Write implements api.TenantObjects.
func (t *tenants) Write(ctx context.Context, object tenant.Tenant, restore bool, permitted credential.Condition) (tenant.Tenant, error) {
	t.changing.Lock()
	defer t.changing.Unlock()
	if t.closed {
		return tenant.Tenant{}, errClosing
	}
	now, err := t.objects.Get(object.Name)
	known := err == nil
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return tenant.Tenant{}, err
	}
	if _, served := t.Controller(object.Name); served {
		if object.Made = now.Made; !known {
			object.Made = time.Now().UTC().Truncate(time.Second)
		}
		return t.objects.Put(object, permitted)
	}
	if err := t.mayMake(object.Name, known, restore); err != nil {
		return tenant.Tenant{}, err
	}
	// What was removed is for its writer as if it were not there.
	if err := permitted.Check(nil); err != nil {
		return tenant.Tenant{}, err
	}
	object.Made = time.Now().UTC().Truncate(time.Second)
	// The entry goes first: a tenant that is served and has none would be gone after a
	// restart. The request may be gone before the tenant is there.
	made, err := t.objects.Put(object, nil)
	if err != nil {
		return made, err
	}
	if err := t.serve(context.WithoutCancel(ctx), object.Name); err != nil {
		if known {
			_, undone := t.objects.Put(now, nil)
			return tenant.Tenant{}, errors.Join(err, undone)
		}
		return tenant.Tenant{}, errors.Join(err, t.objects.Forget(object.Name))
	}
	t.site.log.Info("tenant made", "tenant", object.Name, "restored", restore)
	t.ready(ctx, object.Name)
	return made, nil
}

// mayMake returns why a tenant may not be made.
func (t *tenants) mayMake(name string, known, restore bool) error {
	logs, err := Tenants(t.o.Dir)
	if err != nil {
		return err
	}
	archived := known || slices.Contains(logs, name)
	switch {
	case archived && !restore:
		return api.ErrTenantArchived
	case !archived && restore:
		return api.ErrNoArchive
	case !archived && len(logs) >= maxTenants:
		return fmt.Errorf("%w: the site has the logs of %d tenants, also of removed ones, and may have no more", api.ErrTooManyTenants, len(logs))
	}
	return nil
}

// ready waits until the controller of a tenant answers, for a while.
func (t *tenants) ready(ctx context.Context, name string) {
	ctx, stop := context.WithTimeout(ctx, readyWithin)
	defer stop()
	c, _ := t.Controller(name)
	for c.Ready(ctx) != nil && wait.Sleep(ctx, 20*time.Millisecond) == nil {
	}
}

// Remove implements api.TenantObjects.
func (t *tenants) Remove(ctx context.Context, name, by string, permitted credential.Condition) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	if t.closed {
		return errClosing
	}
	if t.configured(name) {
		return api.ErrTenantConfigured
	}
	object, err := t.objects.Get(name)
	if err != nil {
		return err
	}
	if object.Removed != nil {
		return os.ErrNotExist
	}
	ctx = context.WithoutCancel(ctx) // What was begun is ended.
	t.abort(ctx, name, by)
	at := time.Now().UTC().Truncate(time.Second)
	object.Removed = &at
	// From here on the tenant is removed, also after a restart, which withdraws the rest.
	if _, err := t.objects.Put(object, permitted); err != nil {
		return err
	}
	t.mu.Lock()
	one := t.served[name]
	delete(t.served, name)
	t.mu.Unlock()
	if one != nil {
		t.end(name, one)
	}
	t.site.log.Info("tenant removed; its log and all that was stored of it are kept", "tenant", name, "by", by)
	return t.withdraw(name)
}

// abort ends the run that is under way, if there is one: its hosts get no command any more,
// and the log that is kept says why.
func (t *tenants) abort(ctx context.Context, name, by string) {
	c, found := t.Controller(name)
	if !found {
		return
	}
	ctx, stop := context.WithTimeout(ctx, readyWithin)
	defer stop()
	if id, err := c.Current(ctx); err == nil && id == 0 {
		return
	}
	if _, err := c.AbortAll(ctx, by, v1.Ask{Reason: "the tenant is removed", Now: true}); err != nil && !errors.Is(err, run.ErrNoRun) {
		t.site.log.Warn("the run of a tenant that is removed cannot be aborted; it ends if the tenant is restored", "tenant", name, "error", err)
	}
}

// withdraw removes all that lets somebody in to a tenant: the keys of its hosts, its
// tokens, users, approles, policies and join tokens. It can be repeated.
func (t *tenants) withdraw(name string) error {
	errs := []error{t.withdrawHosts(name)}
	gone := func(err error) {
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	users, err := t.site.Logins.Users.List()
	gone(err)
	for _, u := range users {
		if u.Value.Tenant == name {
			gone(t.site.Logins.RemoveUser(u.Key, nil))
		}
	}
	approles, err := t.site.Logins.Approles.List()
	gone(err)
	for _, a := range approles {
		if a.Value.Tenant == name {
			gone(t.site.Logins.RemoveApprole(a.Key, nil))
		}
	}
	tokens, err := t.site.Tokens.List()
	gone(err)
	for _, token := range tokens {
		if token.Value.Tenant == name {
			gone(t.site.Tokens.Remove(token.Key))
		}
	}
	policies, err := t.site.Policies.OfTenant(name)
	gone(err)
	for _, p := range policies {
		gone(t.site.Policies.Remove(name, p.Name, nil))
	}
	return errors.Join(errs...)
}

func (t *tenants) withdrawHosts(name string) error {
	joins := t.site.Joins
	tokens, err := joins.List()
	errs := []error{err}
	for _, k := range tokens {
		if k.Tenant == name {
			if err := joins.Remove(k.ID); !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	keys, err := t.site.Hosts.List()
	errs = append(errs, err)
	for _, key := range keys {
		if key.Tenant == name {
			if err := t.site.Hosts.Remove(key.Public); !errors.Is(err, os.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// Served returns the tenants of a site in a folder that were not removed, whether it runs
// or not.
func Served(dir string) ([]string, error) {
	all, err := Tenants(dir)
	if err != nil {
		return nil, err
	}
	objects, err := openTenants(dir)
	if err != nil {
		return nil, err
	}
	made, err := objects.List()
	if err != nil {
		return nil, err
	}
	for _, object := range made {
		if object.Removed != nil {
			all = slices.DeleteFunc(all, func(name string) bool { return name == object.Name })
		}
	}
	return all, nil
}
