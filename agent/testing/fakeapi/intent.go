package fakeapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// object is one object of the intent in the store, which a test changes behind the client's
// back. It panics if the store in memory fails, which it never does.
type object[T any] struct {
	tenant string
	read   func(ctx context.Context, tenant string) (v1.Kept[T], store.Revision, error)
	write  func(ctx context.Context, tenant string, value v1.Kept[T], base store.Revision) (store.Revision, error)
	remove func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error)
}

// named is an object of a kind of which a tenant has several, by name.
func named[T any](
	tenant, name string, read func(ctx context.Context, tenant, name string) (v1.Kept[T], store.Revision, error),
	write func(ctx context.Context, tenant, name string, value v1.Kept[T], base store.Revision) (store.Revision, error),
	remove func(ctx context.Context, tenant, name string, base store.Revision) (store.Revision, error),
) object[T] {
	return object[T]{
		tenant: tenant,
		read: func(ctx context.Context, tenant string) (v1.Kept[T], store.Revision, error) {
			return read(ctx, tenant, name)
		},
		write: func(ctx context.Context, tenant string, value v1.Kept[T], base store.Revision) (store.Revision, error) {
			return write(ctx, tenant, name, value, base)
		},
		remove: func(ctx context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return remove(ctx, tenant, name, base)
		},
	}
}

func (s *Server) config(tenant string) object[v1.OSUpgrade] {
	return object[v1.OSUpgrade]{tenant, s.store.Config, s.store.PutConfig, s.store.DeleteConfig}
}

func (s *Server) rollout(tenant string) object[v1.Rollout] {
	return object[v1.Rollout]{tenant, s.store.Rollout, s.store.PutRollout, s.store.DeleteRollout}
}

func (s *Server) calendar(tenant, name string) object[v1.Calendar] {
	return named(tenant, name, s.store.Calendar, s.store.PutCalendar, s.store.DeleteCalendar)
}

func (s *Server) budget(tenant, name string) object[v1.Budget] {
	return named(tenant, name, s.store.Budget, s.store.PutBudget, s.store.DeleteBudget)
}

// SetBudget is SetConfig for disruption budgets.
func (s *Server) SetBudget(tenant, name string, b v1.Budget) (etag string) {
	return s.budget(tenant, name).set(b)
}

func (s *Server) release(tenant, name string) object[v1.Release] {
	return named(tenant, name, s.store.Release, s.store.PutRelease, s.store.DeleteRelease)
}

// SetRelease is SetConfig for releases.
func (s *Server) SetRelease(tenant, name string, r v1.Release) (etag string) {
	return s.release(tenant, name).set(r)
}

// Release is what is stored, its ETag, and whether there is any.
func (s *Server) Release(tenant, name string) (r v1.Release, etag string, ok bool) {
	return s.release(tenant, name).look()
}

func (s *Server) environment(tenant, name string) object[v1.Environment] {
	return named(tenant, name, s.store.Environment, s.store.PutEnvironment, s.store.DeleteEnvironment)
}

// SetEnvironment is SetConfig for environments.
func (s *Server) SetEnvironment(tenant, name string, e v1.Environment) (etag string) {
	return s.environment(tenant, name).set(e)
}

func (o object[T]) get() (value v1.Kept[T], revision store.Revision, there bool) {
	value, revision, err := o.read(context.Background(), o.tenant)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		panic("fakeapi: " + err.Error())
	}
	return value, revision, err == nil
}

// edit changes the object, or makes one from nothing, and returns its new ETag. Clients may
// write meanwhile.
func (o object[T]) edit(change func(value *v1.Kept[T])) (etag string) {
	for {
		value, base, _ := o.get()
		change(&value)
		revision, err := o.write(context.Background(), o.tenant, value, base)
		switch {
		case err == nil:
			return revision.ETag()
		case !errors.Is(err, store.ErrConflict):
			panic("fakeapi: " + err.Error())
		}
	}
}

func (o object[T]) set(value T) (etag string) {
	return o.edit(func(now *v1.Kept[T]) { *now = v1.Kept[T]{Value: value} })
}

func (o object[T]) drop() {
	for {
		_, base, there := o.get()
		if !there {
			return
		}
		if _, err := o.remove(context.Background(), o.tenant, base); err == nil {
			return
		}
	}
}

func (o object[T]) look() (value T, etag string, ok bool) {
	kept, revision, there := o.get()
	if !there {
		return value, "", false
	}
	return kept.Value, revision.ETag(), true
}

// setBody puts an object in place as JSON text, with members that T may not know.
func (o object[T]) setBody(body string) (etag string) {
	var value v1.Kept[T]
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		panic("fakeapi: the body of an object is not one: " + err.Error())
	}
	return o.edit(func(now *v1.Kept[T]) { *now = value })
}

// body is what is stored as JSON text; empty if there is nothing.
func (o object[T]) body() string {
	value, _, there := o.get()
	if !there {
		return ""
	}
	text, err := value.MarshalJSON()
	if err != nil {
		panic("fakeapi: " + err.Error())
	}
	return string(text)
}

// SetConfigBody puts a configuration in place as JSON text, with members that
// v1.OSUpgrade may not know, and returns its new ETag.
func (s *Server) SetConfigBody(tenant, body string) (etag string) {
	return s.config(tenant).setBody(body)
}

// ConfigBody is what is stored as JSON text, with each member that a PUT had; empty if
// there is nothing.
func (s *Server) ConfigBody(tenant string) string { return s.config(tenant).body() }

// SetRolloutBody is SetConfigBody for rollouts.
func (s *Server) SetRolloutBody(tenant, body string) (etag string) {
	return s.rollout(tenant).setBody(body)
}

// RolloutBody is ConfigBody for rollouts.
func (s *Server) RolloutBody(tenant string) string { return s.rollout(tenant).body() }

// SetCalendarBody is SetConfigBody for calendars.
func (s *Server) SetCalendarBody(tenant, name, body string) (etag string) {
	return s.calendar(tenant, name).setBody(body)
}

// CalendarBody is ConfigBody for calendars.
func (s *Server) CalendarBody(tenant, name string) string { return s.calendar(tenant, name).body() }

// SetConfig puts a configuration in place behind the client's back, and
// returns its new ETag.
func (s *Server) SetConfig(tenant string, c v1.OSUpgrade) (etag string) {
	return s.config(tenant).set(c)
}

// EditConfig changes a configuration behind the client's back; an absent one
// is edited from nothing.
func (s *Server) EditConfig(tenant string, edit func(c *v1.OSUpgrade)) {
	s.config(tenant).edit(func(c *v1.Kept[v1.OSUpgrade]) { edit(&c.Value) })
}

// RemoveConfig removes a configuration behind the client's back.
func (s *Server) RemoveConfig(tenant string) { s.config(tenant).drop() }

// Config is what is stored, its ETag, and whether there is any.
func (s *Server) Config(tenant string) (c v1.OSUpgrade, etag string, ok bool) {
	return s.config(tenant).look()
}

// SetRollout is SetConfig for rollouts.
func (s *Server) SetRollout(tenant string, r v1.Rollout) (etag string) {
	return s.rollout(tenant).set(r)
}

// EditRollout is EditConfig for rollouts.
func (s *Server) EditRollout(tenant string, edit func(r *v1.Rollout)) {
	s.rollout(tenant).edit(func(r *v1.Kept[v1.Rollout]) { edit(&r.Value) })
}

// RemoveRollout removes a rollout behind the client's back.
func (s *Server) RemoveRollout(tenant string) { s.rollout(tenant).drop() }

// Rollout is what is stored, its ETag, and whether there is any.
func (s *Server) Rollout(tenant string) (r v1.Rollout, etag string, ok bool) {
	return s.rollout(tenant).look()
}

// SetCalendar is SetConfig for calendars.
func (s *Server) SetCalendar(tenant, name string, c v1.Calendar) (etag string) {
	return s.calendar(tenant, name).set(c)
}

// EditCalendar is EditConfig for calendars.
func (s *Server) EditCalendar(tenant, name string, edit func(c *v1.Calendar)) {
	s.calendar(tenant, name).edit(func(c *v1.Kept[v1.Calendar]) { edit(&c.Value) })
}

// RemoveCalendar removes a calendar behind the client's back.
func (s *Server) RemoveCalendar(tenant, name string) { s.calendar(tenant, name).drop() }

// Calendar is what is stored, its ETag, and whether there is any.
func (s *Server) Calendar(tenant, name string) (c v1.Calendar, etag string, ok bool) {
	return s.calendar(tenant, name).look()
}
