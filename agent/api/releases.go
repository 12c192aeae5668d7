package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// release returns the release with the name in the path. Only its description and its withdrawal may
// change, also during a run: withdrawing it holds runs.
func (s *server) release(c *call) (*object[v1.Release], error) {
	name := c.PathValue("name")
	if !names.Valid(name) {
		return nil, badRequest("name", name, "is not the name of a release; "+names.Form)
	}
	return &object[v1.Release]{
		server: s, noun: "release " + name,
		read: func(ctx context.Context, tenant string) (v1.Kept[v1.Release], store.Revision, error) {
			return s.Store.Release(ctx, tenant, name)
		},
		put: func(ctx context.Context, tenant string, value v1.Kept[v1.Release], base store.Revision) (store.Revision, error) {
			return s.Store.PutRelease(ctx, tenant, name, value, base)
		},
		remove: func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return s.Store.DeleteRelease(ctx, tenant, name, base)
		},
		refers: func(r v1.Release) plan.Intent { return plan.Intent{Releases: map[string]v1.Release{name: r}} },
		form:   v1.ReleaseForm, recorded: v1.Release.Canonical,
		permitted: func(now stored[v1.Release], next v1.Release) error { return permittedRelease(name, now, next) },
		stamped: func(now stored[v1.Release], next v1.Release) v1.Release {
			return v1.Stamped(now.value.Value, next, time.Now(), c.who.Name)
		},
		inUse: func(ctx context.Context, controller Controller) error {
			if err := s.unnamed(ctx, c.tenant, name); err != nil {
				return err
			}
			return unpinned(ctx, controller, name)
		},
		lock: &s.environmentLock,
		room: s.Store.RoomForRelease,
	}, nil
}

// unnamed returns why a release cannot be deleted: an environment, or the configuration, names it.
func (s *server) unnamed(ctx context.Context, tenant, name string) error {
	naming, err := s.naming(ctx, tenant)
	if err != nil || len(naming[name]) == 0 {
		return err
	}
	return problem(http.StatusPreconditionFailed, "", "", "release %s is named by %s; name another one there first", name, strings.Join(naming[name], ", "))
}

// unpinned returns why a release cannot be deleted: a run under way installs it, and could not be told
// any more that it is withdrawn.
func unpinned(ctx context.Context, controller Controller, name string) error {
	all, err := controller.EnvironmentStatuses(ctx)
	if err != nil {
		return err
	}
	for _, e := range all {
		if r := e.Run; r != nil && !r.Finished() && r.Release != nil && r.Release.Name == name {
			return &run.Refused{Run: r.ID, Message: fmt.Sprintf("run %d of environment %s installs release %s; wait until it has ended. To have it ask no further host, withdraw the release", r.ID, e.Name, name)}
		}
	}
	return nil
}

// naming returns what names each release: the configuration, and environments by name.
func (s *server) naming(ctx context.Context, tenant string) (map[string][]string, error) {
	naming := map[string][]string{}
	config, _, err := s.Store.Config(ctx, tenant)
	switch {
	case err == nil && config.Value.Named() != "":
		naming[config.Value.Named()] = []string{"the configuration"}
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	all, err := s.Store.Environments(ctx, tenant)
	for _, e := range all {
		if name := e.Value.Named(); name != "" {
			naming[name] = append(naming[name], "environment "+e.Name)
		}
	}
	return naming, err
}

// nameable returns why a configuration or an environment must not name the release that it names from
// now on.
func (s *server) nameable(c *call, before, next release.Target) error {
	name := next.Named()
	if name == "" || name == before.Named() {
		return nil
	}
	const field = "releases.os"
	r, _, err := s.Store.Release(c.Context(), c.tenant, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return badRequest(field, name, fmt.Sprintf("is no release of tenant %s; declare it first", c.tenant))
	case errors.Is(err, store.ErrDamaged):
		return badRequest(field, name, "cannot be read; name another release")
	case err != nil:
		return err
	case r.Value.Withdrawn != nil:
		return badRequest(field, name, fmt.Sprintf("is withdrawn (%s); name another release", r.Value.Withdrawn.Reason))
	}
	return nil
}

// permittedRelease refuses a release that is another than the one of its name, or that nobody can
// know yet.
func permittedRelease(name string, now stored[v1.Release], next v1.Release) error {
	if now.damaged != nil {
		// Whether it is another one than before, nobody can tell.
		return problem(http.StatusPreconditionFailed, "", "", "%v; delete it, and declare a release of another name", now.damaged)
	}
	if now.exists {
		if member := release.Changed(now.value.Value, next); member != "" {
			return problem(http.StatusPreconditionFailed, member, "", "%s: it differs from that of release %s, of which only description and withdrawn can change; declare a release of another name", member, name)
		}
		return nil
	}
	if found := next.Future(time.Now()); len(found) > 0 {
		return found
	}
	if large := next.TooLarge(); large != "" {
		return problem(http.StatusRequestEntityTooLarge, "", "", "%s", large)
	}
	return nil
}

// postRelease creates the release whose name is in the body.
func (s *server) postRelease(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	name, value, err := v1.DecodeNewRelease(c.Header.Get("Content-Type"), body, c.has(unknownMembers))
	if err != nil {
		return err
	}
	c.SetPathValue("name", name)
	c.audit.Object = "release/" + name
	o, err := s.release(c)
	if err != nil {
		return err
	}
	return o.create(c, c.URL.Path+"/"+name, value)
}

// getReleases lists the tenant's releases by name, with content=true also their content.
func (s *server) getReleases(c *call) error {
	all, err := s.Store.Releases(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	naming, err := s.naming(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	list := make([]v1.ReleaseInfo, len(all))
	for i, named := range all {
		list[i] = v1.ReleaseInfoOf(named.Name, named.Revision.ETag(), named.Value)
		list[i].NamedBy = naming[named.Name]
		if c.has("content") {
			list[i].Release = &all[i].Value
		}
	}
	return sendList(s, c, list, func(i v1.ReleaseInfo) string { return i.Name })
}
