package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Object is a kind of object of a tenant: Configs, Rollouts, or one of a name, such as
// CalendarNamed and PolicyNamed.
type Object[T any] struct {
	// noun is what warnings call it, rest the end of its path, after os-upgrade.
	noun, rest string
	// at returns the path of one that is not below os-upgrade; nil if it is.
	at func(tenant string) (string, error)
	// invalid is why there is no such path.
	invalid error
	// force deletes it even if it is in use. restore takes up what is kept of one that was
	// removed.
	force, restore bool
	// withhold takes the secret out of an object and returns it; nil if there is none. A
	// server never returns it.
	withhold func(value *T) string
	// same reports whether two of them mean the same.
	same func(a, b T) bool
	// canonical is the form in which elements of lists are compared.
	canonical func(T) T
}

// Stored is an object as the server has it. The zero Stored is an absent object.
type Stored[T any] struct {
	Value T
	// ETag is empty when the server sends none.
	ETag string
	// Warnings are what the server warned of when it was written.
	Warnings []v1.IntentWarning
	// body is the JSON text that Value was read from.
	body json.RawMessage
}

// shown returns an object without its secret, and whether it has one. Whatever a server says
// of it, it is not shown.
func (o Object[T]) shown(c *Client, value T) (shown T, secret bool) {
	if o.withhold == nil {
		return value, false
	}
	text := o.withhold(&value)
	if len(text) >= shortestHidden {
		c.secret.add(text, hiddenProof)
	}
	return value, text != ""
}

// NewStored returns an object from its JSON text, as Text returned it.
func NewStored[T any](etag string, body json.RawMessage) (Stored[T], error) {
	s := Stored[T]{ETag: etag, body: body}
	if err := json.Unmarshal(body, &s.Value); err != nil {
		return Stored[T]{}, fmt.Errorf("cannot read an object that was kept: %w", err)
	}
	return s, nil
}

// Text returns the object as JSON text, with the members that T does not know; nil for
// the zero Stored.
func (s Stored[T]) Text() json.RawMessage { return s.body }

// HasUnknown reports whether the object has members that T does not know, at any
// level. Only a write over this Stored keeps them.
func (s Stored[T]) HasUnknown() bool { return hasUnknown(s.body, reflect.TypeFor[T]()) }

// Over returns a value as JSON text, with the members of the object that T does not
// know. A replacement of the object by the text deletes nothing that others keep
// there.
func (o Object[T]) Over(base Stored[T], value T) (json.RawMessage, error) {
	return overlay(base.body, value, o.canonical)
}

func (o Object[T]) path(tenant string) (string, error) {
	if o.invalid != nil {
		return "", o.invalid
	}
	if o.at != nil {
		return o.at(tenant)
	}
	return tenantPath("config", tenant, o.rest)
}

// Restoring returns the object with a Put that takes up what is kept of one that was removed.
func (o Object[T]) Restoring() Object[T] {
	o.restore = true
	return o
}

// Forced returns the object with a Delete that removes it even if it is in use.
func (o Object[T]) Forced() Object[T] {
	o.force = true
	return o
}

// Get gets a tenant's object. An absent one is an *Error of status 404, see
// Missing; on a server that answers it with an empty body it is the zero one.
func (o Object[T]) Get(ctx context.Context, c *Client, tenant string) (Stored[T], error) {
	path, err := o.path(tenant)
	if err != nil {
		return Stored[T]{}, err
	}
	q := request{method: http.MethodGet, path: path}
	a, err := c.do(ctx, q)
	if err != nil {
		return Stored[T]{}, err
	}
	s := Stored[T]{ETag: a.header.Get("ETag")}
	if s.body = bytes.TrimSpace(a.body); len(s.body) == 0 {
		return s, nil
	}
	if err := c.decode(q, a, &s.Value); err != nil {
		return Stored[T]{}, err
	}
	return s, nil
}

// Put creates or replaces an object with value, and keeps what base has of members
// that T does not know. It returns what was written. The ETag is empty when the server
// sends none; one that it sends is that of exactly what was written (RFC 9110 9.3.4). A
// precondition that does not hold is an *Error of status 412.
func (o Object[T]) Put(ctx context.Context, c *Client, tenant string, base Stored[T], value T, when Precondition) (Stored[T], error) {
	path, err := o.path(tenant)
	if err != nil {
		return Stored[T]{}, err
	}
	body, err := o.Over(base, value)
	if err != nil {
		return Stored[T]{}, err
	}
	shown, secret := o.shown(c, value)
	var query url.Values
	if o.restore {
		query = url.Values{"restore": {"true"}}
	}
	a, err := c.do(ctx, request{method: http.MethodPut, path: path, query: query, body: body, when: when, confidential: secret})
	if err == nil {
		if secret {
			body, err = o.Over(base, shown)
		}
		return Stored[T]{Value: shown, ETag: a.header.Get("ETag"), Warnings: v1.ParseWarnings(o.noun, a.header.Values(v1.WarningHeader)), body: body}, err
	}
	// Our own write, whose answer was lost, fails our precondition now. Whether a secret was
	// written, nobody can see.
	if a.retried && !secret && HasStatus(err, http.StatusPreconditionFailed) {
		if there, lookErr := o.Get(ctx, c, tenant); lookErr == nil && o.same(there.Value, value) {
			return there, nil
		}
	}
	return Stored[T]{}, err
}

// Validate asks the server whether Put would be accepted, and returns what it warns of.
func (o Object[T]) Validate(ctx context.Context, c *Client, tenant string, base Stored[T], value T, when Precondition) ([]v1.IntentWarning, error) {
	path, err := o.path(tenant)
	if err != nil {
		return nil, err
	}
	body, err := o.Over(base, value)
	if err != nil {
		return nil, err
	}
	_, secret := o.shown(c, value)
	a, err := c.do(ctx, request{
		method: http.MethodPut, path: path, query: url.Values{"validate": {"true"}}, body: body, when: when, confidential: secret,
	})
	return v1.ParseWarnings(o.noun, a.header.Values(v1.WarningHeader)), err
}

// Delete removes an object. One that is not there is no error, see Missing; a tenant
// that is not there is one.
func (o Object[T]) Delete(ctx context.Context, c *Client, tenant string, when Precondition) error {
	_, err := o.Remove(ctx, c, tenant, when)
	return err
}

// ValidateDelete asks the server whether Delete would be accepted. An object that is not there is no
// error.
func (o Object[T]) ValidateDelete(ctx context.Context, c *Client, tenant string, when Precondition) error {
	path, err := o.path(tenant)
	if err != nil {
		return err
	}
	if _, err := c.do(ctx, request{method: http.MethodDelete, path: path, query: url.Values{"validate": {"true"}}, when: when}); err != nil && !Missing(err) {
		return err
	}
	return nil
}

// Remove is Delete, and returns what the server warns of: what refers to the object.
func (o Object[T]) Remove(ctx context.Context, c *Client, tenant string, when Precondition) ([]v1.IntentWarning, error) {
	path, err := o.path(tenant)
	if err != nil {
		return nil, err
	}
	a, err := c.do(ctx, request{method: http.MethodDelete, path: path, query: forced(o.force), when: when})
	if err == nil {
		found := v1.ParseWarnings(o.noun, a.header.Values(v1.WarningHeader))
		for i := range found {
			found[i].Field = "" // It is one of another object, which the text names.
		}
		return found, nil
	}
	if Missing(err) {
		return nil, nil
	}
	// If-Match cannot hold on what is gone (RFC 9110 13.1.1), be it by our own
	// DELETE whose answer was lost.
	if HasStatus(err, http.StatusPreconditionFailed) {
		if _, lookErr := o.Get(ctx, c, tenant); Missing(lookErr) {
			return nil, nil
		}
	}
	return nil, err
}

// The objects of which a tenant has one.
var (
	// Configs are the tenants' os-upgrade configurations.
	Configs = Object[v1.OSUpgrade]{noun: v1.ConfigObject, same: v1.SameOSUpgrade, canonical: v1.OSUpgrade.Canonical}
	// Rollouts are the policies of the tenants' runs.
	Rollouts = Object[v1.Rollout]{noun: v1.RolloutObject, rest: "/rollout", same: v1.SameRollout, canonical: v1.Rollout.Canonical}
)

// CalendarNamed are the tenants' calendars of a name. A name that is none is refused
// at each request, as tenantPath does.
func CalendarNamed(name string) Object[v1.Calendar] {
	o := Object[v1.Calendar]{rest: "/calendars/" + name, same: v1.SameCalendar, canonical: v1.Calendar.Canonical}
	if !names.Valid(name) {
		o.invalid = fmt.Errorf("calendar %q is not a name; use at most %d of a-z, 0-9 and -, with no - at either end", name, names.MaxLength)
	}
	return o
}

// Config gets a tenant's os-upgrade configuration and its ETag (empty when the
// server sends none). An absent configuration is an *Error of status 404, see
// Missing; on a server that answers it with an empty body it is the zero one.
func (c *Client) Config(ctx context.Context, tenant string) (v1.OSUpgrade, string, error) {
	s, err := Configs.Get(ctx, c, tenant)
	return s.Value, s.ETag, err
}

// PutConfig creates or replaces it, and returns the new ETag (empty when the
// server sends none). A precondition that does not hold is an *Error of status
// 412.
func (c *Client) PutConfig(ctx context.Context, tenant string, config v1.OSUpgrade, when Precondition) (etag string, err error) {
	s, err := Configs.Put(ctx, c, tenant, Stored[v1.OSUpgrade]{}, config, when)
	return s.ETag, err
}

// DeleteConfig removes it. A configuration that is not there is no error, see
// Missing; a tenant that is not there is one.
func (c *Client) DeleteConfig(ctx context.Context, tenant string, when Precondition) error {
	return Configs.Delete(ctx, c, tenant, when)
}

// Rollout gets the policy of a tenant's runs and its ETag. An absent one is an
// *Error of status 404, see Missing.
func (c *Client) Rollout(ctx context.Context, tenant string) (v1.Rollout, string, error) {
	s, err := Rollouts.Get(ctx, c, tenant)
	return s.Value, s.ETag, err
}

// PutRollout creates or replaces it, and returns the new ETag. A precondition
// that does not hold is an *Error of status 412.
func (c *Client) PutRollout(ctx context.Context, tenant string, rollout v1.Rollout, when Precondition) (etag string, err error) {
	s, err := Rollouts.Put(ctx, c, tenant, Stored[v1.Rollout]{}, rollout, when)
	return s.ETag, err
}

// DeleteRollout removes it; the tenant's runs then go by the defaults. One that
// is not there is no error; a tenant that is not there is one.
func (c *Client) DeleteRollout(ctx context.Context, tenant string, when Precondition) error {
	return Rollouts.Delete(ctx, c, tenant, when)
}

// Calendars lists a tenant's calendars, by name.
func (c *Client) Calendars(ctx context.Context, tenant string) ([]v1.CalendarInfo, error) {
	return listed[v1.CalendarInfo](ctx, c, tenant, "/calendars")
}

// StoredCalendars gets all calendars of a tenant at once, by name, each as Get of
// CalendarNamed does. A server that leaves out an ETag or a content is an error.
func (c *Client) StoredCalendars(ctx context.Context, tenant string) (map[string]Stored[v1.Calendar], error) {
	return storedList[v1.Calendar](ctx, c, tenant, "/calendars", "calendar")
}

// CalendarsInForce gets all calendars of a tenant at once, by name, as the site reckons with them:
// one with a URL has the events that the site fetched last, and none if it never could.
func (c *Client) CalendarsInForce(ctx context.Context, tenant string) (map[string]v1.Calendar, error) {
	path, err := tenantPath("config", tenant, "/calendars")
	if err != nil {
		return nil, err
	}
	var list []v1.CalendarInfo
	if err := c.get(ctx, path, url.Values{"content": {"true"}}, &list); err != nil {
		return nil, err
	}
	inForce := map[string]v1.Calendar{}
	for _, info := range list {
		if info.Calendar == nil {
			return nil, fmt.Errorf("GET %s told nothing of what is in calendar %q", path, info.Name)
		}
		one := *info.Calendar
		if one.URL != "" {
			one.URL, one.Refresh = "", ""
			if info.Fetched != nil {
				one.Events = info.Fetched.Events
			}
		}
		inForce[info.Name] = one
	}
	return inForce, nil
}

// CalendarStates gets what the site fetched of the calendars with a URL, by name, without events.
func (c *Client) CalendarStates(ctx context.Context, tenant string) (all []v1.CalendarState, err error) {
	path, err := tenantPath("state", tenant, "/calendars")
	if err != nil {
		return nil, err
	}
	return all, c.get(ctx, path, nil, &all)
}

// RefreshCalendar has the site fetch a calendar with a URL now, and returns what came of it.
func (c *Client) RefreshCalendar(ctx context.Context, tenant, name string) (s v1.CalendarState, err error) {
	if err := CalendarNamed(name).invalid; err != nil {
		return s, err
	}
	path, err := tenantPath("state", tenant, "/calendars/"+name+"/refresh")
	if err != nil {
		return s, err
	}
	q := request{method: http.MethodPost, path: path}
	a, err := c.do(ctx, q)
	if err != nil {
		return s, err
	}
	return s, c.decode(q, a, &s)
}

// Calendar gets a tenant's calendar and its ETag. An absent one is an *Error of
// status 404, see Missing.
func (c *Client) Calendar(ctx context.Context, tenant, name string) (v1.Calendar, string, error) {
	s, err := CalendarNamed(name).Get(ctx, c, tenant)
	return s.Value, s.ETag, err
}

// PutCalendar creates or replaces it, and returns the new ETag. A precondition
// that does not hold is an *Error of status 412.
func (c *Client) PutCalendar(ctx context.Context, tenant, name string, calendar v1.Calendar, when Precondition) (etag string, err error) {
	s, err := CalendarNamed(name).Put(ctx, c, tenant, Stored[v1.Calendar]{}, calendar, when)
	return s.ETag, err
}

// DeleteCalendar removes it. One that is not there is no error; a tenant that
// is not there is one.
func (c *Client) DeleteCalendar(ctx context.Context, tenant, name string, when Precondition) error {
	return CalendarNamed(name).Delete(ctx, c, tenant, when)
}

// listed lists the objects of a kind of a tenant, by name; rest is the end of the path.
func listed[T any](ctx context.Context, c *Client, tenant, rest string) (list []T, err error) {
	path, err := tenantPath("config", tenant, rest)
	if err != nil {
		return nil, err
	}
	return list, c.get(ctx, path, nil, &list)
}

// storedList gets all objects of a kind of a tenant at once, by name, each as Get of the object
// does. member has the content of each in the list. A server that leaves out an ETag or a content is
// an error.
func storedList[T any](ctx context.Context, c *Client, tenant, rest, member string) (map[string]Stored[T], error) {
	path, err := tenantPath("config", tenant, rest)
	if err != nil {
		return nil, err
	}
	var list []map[string]json.RawMessage
	if err := c.get(ctx, path, url.Values{"content": {"true"}}, &list); err != nil {
		return nil, err
	}
	all := map[string]Stored[T]{}
	for _, one := range list {
		var name, etag string
		for key, into := range map[string]*string{"name": &name, "etag": &etag} {
			if text := one[key]; text != nil {
				if err := json.Unmarshal(text, into); err != nil {
					return nil, fmt.Errorf("GET %s: the %s of an entry is not a text: %w", path, key, err)
				}
			}
		}
		if etag == "" || len(one[member]) == 0 {
			return nil, fmt.Errorf("GET %s: the entry of %s %q has no ETag or no content", path, member, name)
		}
		if all[name], err = NewStored[T](etag, one[member]); err != nil {
			return nil, fmt.Errorf("GET %s: %s %q: %w", path, member, name, err)
		}
	}
	return all, nil
}
