package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run/plan"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// environment returns the environment with the name in the path. It may be changed during a run,
// which keeps the hosts and the policy with which it was opened.
func (s *server) environment(c *call) (*object[v1.Environment], error) {
	name := c.PathValue("name")
	if wrong := v1.EnvironmentName(name); wrong != "" {
		return nil, badRequest("name", name, wrong)
	}
	return &object[v1.Environment]{
		server: s, noun: "environment " + name,
		read: func(ctx context.Context, tenant string) (v1.Kept[v1.Environment], store.Revision, error) {
			return s.Store.Environment(ctx, tenant, name)
		},
		put: func(ctx context.Context, tenant string, value v1.Kept[v1.Environment], base store.Revision) (store.Revision, error) {
			if err := s.forgetSkips(ctx, tenant, name, base); err != nil {
				return store.Revision{}, err
			}
			return s.Store.PutEnvironment(ctx, tenant, name, value, base)
		},
		remove: func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return s.Store.DeleteEnvironment(ctx, tenant, name, base)
		},
		inUse: func(ctx context.Context, controller Controller) error { return controller.Vacant(ctx, name) },
		form:  v1.EnvironmentForm, recorded: v1.Environment.Canonical,
		freezing: &freezing[v1.Environment]{environment: name, holds: environmentHolds},
		refers: func(e v1.Environment) plan.Intent {
			return plan.Intent{Environments: map[string]v1.Environment{name: e}}
		},
		permitted: func(now stored[v1.Environment], next v1.Environment) error {
			if err := s.nameable(c, now.value.Value.Target, next.Target); err != nil {
				return err
			}
			return s.acyclic(c, name, now.value.Value, next)
		},
		lock:    &s.environmentLock,
		orphans: func(c *call) ([]v1.IntentWarning, error) { return s.followersOf(c, name) },
		room:    s.Store.RoomForEnvironment,
	}, nil
}

// postEnvironment creates the environment whose name is in the body.
func (s *server) postEnvironment(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	name, value, err := v1.DecodeNewEnvironment(c.Header.Get("Content-Type"), body, c.has(unknownMembers))
	if err != nil {
		return err
	}
	c.SetPathValue("name", name)
	c.audit.Object = "environment/" + name
	o, err := s.environment(c)
	if err != nil {
		return err
	}
	return o.create(c, c.URL.Path+"/"+name, value)
}

// declared returns the tenant's environments, by name.
func (s *server) declared(c *call) (map[string]v1.Environment, error) {
	all, err := s.Store.Environments(c.Context(), c.tenant)
	if err != nil {
		return nil, err
	}
	declared := make(map[string]v1.Environment, len(all))
	for _, named := range all {
		declared[named.Name] = named.Value
	}
	return declared, nil
}

// acyclic refuses an environment that would come after itself, by way of others: none of them could
// ever be upgraded. One that comes after none but those that it came after before makes no way.
func (s *server) acyclic(c *call, name string, now, next v1.Environment) error {
	if next.After == nil || now.After != nil && !slices.ContainsFunc(next.After.Environments, func(before string) bool { return !slices.Contains(now.After.Environments, before) }) {
		return nil
	}
	earlier, err := s.earlier(c, name, next)
	if err != nil {
		return err
	}
	if way := v1.Cycle(earlier, name); way != nil {
		return badRequest("after.environments", strings.Join(next.After.Environments, ", "), "makes a cycle: "+strings.Join(way, " comes after ")+"; remove one of them")
	}
	return nil
}

// earlier returns an environment and those that it comes after, by way of others, by name. It reads
// no more than these: a file with a thousand environments is written one by one.
func (s *server) earlier(c *call, name string, next v1.Environment) (map[string]v1.Environment, error) {
	found := map[string]v1.Environment{name: next}
	for todo := slices.Clone(next.After.Environments); len(todo) > 0; todo = todo[1:] {
		at := todo[0]
		if _, is := found[at]; is {
			continue
		}
		one, _, err := s.Store.Environment(c.Context(), c.tenant, at)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if found[at] = one.Value; one.Value.After != nil {
			todo = append(todo, one.Value.After.Environments...)
		}
	}
	return found, nil
}

// followersOf warns of the environments that come after one that is deleted: they wait until somebody
// declares it again, or removes it there.
func (s *server) followersOf(c *call, name string) (found []v1.IntentWarning, err error) {
	declared, err := s.declared(c)
	for _, follower := range slices.Sorted(maps.Keys(declared)) {
		after := declared[follower].After
		if after == nil || !slices.Contains(after.Environments, name) {
			continue
		}
		found = append(found, v1.IntentWarning{
			Object: v1.EnvironmentObject(follower), Field: fmt.Sprintf("after.environments[%d]", slices.Index(after.Environments, name)),
			Text: fmt.Sprintf("environment %s is deleted, so environment %s opens no run before it is declared again or removed here", name, follower),
		})
	}
	return found, err
}

// putHostEnvironment moves a host into an environment.
func (s *server) putHostEnvironment(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	move, err := v1.DecodeMove(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	name := c.PathValue("host")
	if c.audit.Detail = "by what matches it"; move.Environment != "" {
		c.audit.Detail = "to environment " + move.Environment
	}
	moved, err := c.controller.Move(c.Context(), name, move.Environment)
	if errors.Is(err, run.ErrNoHost) {
		return unknownHost(name)
	} else if err != nil {
		return err
	}
	s.Log.Info("host moved", "tenant", c.tenant, "by", c.who.Name, "host", name, "environment", move.Environment)
	return s.sendFields(c, moved)
}

// getEnvironments lists the tenant's environments by name, with content=true also their content.
func (s *server) getEnvironments(c *call) error {
	all, err := s.Store.Environments(c.Context(), c.tenant)
	if err != nil {
		return err
	}
	list := make([]v1.EnvironmentInfo, len(all))
	for i, named := range all {
		list[i] = v1.EnvironmentInfo{Name: named.Name, Description: named.Value.Description, ETag: named.Revision.ETag()}
		if c.has("content") {
			list[i].Environment = &all[i].Value
		}
	}
	return sendList(s, c, list, func(i v1.EnvironmentInfo) string { return i.Name })
}
