package api

import (
	"context"
	"errors"

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
			return s.Store.PutEnvironment(ctx, tenant, name, value, base)
		},
		remove: func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return s.Store.DeleteEnvironment(ctx, tenant, name, base)
		},
		inUse: func(ctx context.Context, controller Controller) error { return controller.Vacant(ctx, name) },
		form:  v1.EnvironmentForm, recorded: v1.Environment.Canonical,
		refers: func(e v1.Environment) plan.Intent {
			return plan.Intent{Environments: map[string]v1.Environment{name: e}}
		},
		room: s.Store.RoomForEnvironment,
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
