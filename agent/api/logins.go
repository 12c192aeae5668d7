package api

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// mayGive returns why who sends a request may not let somebody in with these roles: one of
// them is none, or allows what its own do not. field has the roles.
func (s *server) mayGive(c *call, field string, roles []access.Role) error {
	if s.Policies != nil {
		if err := s.Policies.Known(field, c.tenant, roles); err != nil {
			return err
		}
	}
	return refusal(s.covers(c, roles))
}

// covers returns why who sends a request does not have all rights of these roles of the
// tenant.
func (s *server) covers(c *call, roles []access.Role) error {
	policies, err := s.policiesOf(c.tenant, roles)
	if err != nil {
		return err
	}
	return access.Covers(c.who, access.Principal{Tenant: c.tenant, Roles: roles, Policies: policies}, s.requests)
}

// mayChange returns why who sends a request may not change a user or an approle that has
// these roles. Whoever set the password of one with more rights would have them.
func (s *server) mayChange(c *call, noun string, has []access.Role) error {
	err := s.covers(c, has)
	if exceeds, ok := errors.AsType[*access.ExceedsError](err); ok {
		return problem(http.StatusForbidden, "name", c.PathValue("name"),
			"%s cannot change %s %q, which has a right that it does not have itself: to %s %s; use a token with admin",
			exceeds.Who, noun, c.PathValue("name"), exceeds.Operation, exceeds.Path)
	}
	return refusal(err)
}

// loginName returns the name of a user or an approle in the path. A write by a name that
// nobody can have is refused before its body is read.
func loginName(c *call) (string, error) {
	name := c.PathValue("name")
	if c.Method == http.MethodPut {
		return name, principal.CheckName(name)
	}
	return name, nil
}

// named returns what is wrong with a body that repeats the name in the path.
func named(c *call, inBody string) error {
	if inBody != "" && inBody != c.PathValue("name") {
		return badRequest("name", inBody, "is not the name in the path; leave it out")
	}
	return nil
}

// revisionOf returns the revision of a user or an approle as one of the store.
func revisionOf(number uint64) store.Revision { return store.Revision{Number: number} }

// kept returns the error of a read or a write of a user or an approle as one of the store.
func kept(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return store.ErrNotFound
	case errors.Is(err, credential.ErrChanged):
		return store.ErrConflict
	case errors.Is(err, principal.ErrDamagedUser), errors.Is(err, principal.ErrDamagedApprole), errors.Is(err, principal.ErrDamagedPolicy), errors.Is(err, tenant.ErrDamaged):
		return errors.Join(store.ErrDamaged, err)
	}
	return err
}

// loggingIn returns the handler of an operation of a site that has users and approles.
func loggingIn(f func(*server, *call) error) func(*server, *call) error {
	return func(s *server, c *call) error {
		if s.Logins == nil {
			return errNoLogins
		}
		return f(s, c)
	}
}

var errNoLogins = problem(http.StatusNotFound, "", "", "this site has neither users nor approles; use a token")

func shownUser(u principal.User) v1.User {
	return v1.User{Name: u.Name, TokenPolicies: u.Allow, TokenTTL: v1.OfSeconds(u.Seconds), TokenMaxTTL: v1.OfSeconds(u.Last)}
}

// recordedUser is a user as an audit record has it.
func recordedUser(u v1.User) v1.User {
	if u.Password != "" {
		u.Password = "(set)"
	}
	return u
}

func userState(u principal.User) v1.UserState {
	shown := shownUser(u)
	return v1.UserState{Name: shown.Name, TokenPolicies: shown.TokenPolicies, TokenTTL: shown.TokenTTL, TokenMaxTTL: shown.TokenMaxTTL, PasswordSet: u.Since}
}

func userOf(tenant, name string, u v1.User) principal.User {
	return principal.User{
		Tenant: tenant, Name: name, Allow: u.TokenPolicies, Life: principal.Life{Seconds: v1.Seconds(u.TokenTTL), Last: v1.Seconds(u.TokenMaxTTL)},
	}
}

// user returns the user with the name in the path.
func (s *server) user(c *call) (*object[v1.User], error) {
	if s.Logins == nil {
		return nil, errNoLogins
	}
	name, err := loginName(c)
	if err != nil {
		return nil, err
	}
	return &object[v1.User]{
		server: s, noun: "user " + name, immediate: true,
		read: func(_ context.Context, tenant string) (v1.Kept[v1.User], store.Revision, error) {
			user, err := s.Logins.Users.Get(tenant, name)
			return v1.Kept[v1.User]{Value: shownUser(user)}, revisionOf(user.Revision), kept(err)
		},
		put: func(ctx context.Context, tenant string, value v1.Kept[v1.User], base store.Revision) (store.Revision, error) {
			c.typedRoles(value.Value.TokenPolicies)
			user, err := s.Logins.WriteUser(ctx, userOf(tenant, name, value.Value), value.Value.Password, credential.IfRevision(base.Number), time.Now())
			return revisionOf(user.Revision), kept(err)
		},
		remove: func(_ context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return store.Revision{}, kept(s.Logins.RemoveUser(principal.KeyOf(tenant, name), credential.IfRevision(base.Number)))
		},
		form: v1.UserForm, recorded: recordedUser,
		permitted: func(now stored[v1.User], next v1.User) error {
			if err := named(c, next.Name); err != nil {
				return err
			}
			if err := s.Logins.Users.Check(userOf(c.tenant, name, next), next.Password, !now.exists || now.damaged != nil); err != nil {
				return err
			}
			if err := s.mayChange(c, "user", now.value.Value.TokenPolicies); err != nil {
				return err
			}
			return s.mayGive(c, "token-policies", next.TokenPolicies)
		},
	}, nil
}

// shownAs returns a list as it is shown.
func shownAs[T, S any](all []T, show func(T) S) []S {
	shown := make([]S, len(all))
	for i, one := range all {
		shown[i] = show(one)
	}
	return shown
}

func (s *server) getUsers(c *call) error {
	all, err := s.Logins.Users.OfTenant(c.tenant)
	if err != nil {
		return err
	}
	return sendList(s, c, shownAs(all, shownUser), func(u v1.User) string { return u.Name })
}

func (s *server) getUserStates(c *call) error {
	all, err := s.Logins.Users.OfTenant(c.tenant)
	if err != nil {
		return err
	}
	return sendList(s, c, shownAs(all, userState), func(u v1.UserState) string { return u.Name })
}

func (s *server) getUserState(c *call) error {
	user, err := s.Logins.Users.Get(c.tenant, c.PathValue("name"))
	if errors.Is(err, os.ErrNotExist) {
		return missing("user", "tenant %q has no user %.70q", c.tenant, c.PathValue("name"))
	}
	if err != nil {
		return err
	}
	return s.sendFields(c, userState(user))
}

// postUser makes a user that there is not yet. Without a password in the body it makes one,
// which is in this answer alone.
func (s *server) postUser(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeUser(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	user, password, made := userOf(c.tenant, wanted.Name, wanted), wanted.Password, ""
	if password == "" {
		if made, err = principal.NewPassword(); err != nil {
			return err
		}
		password = made
	}
	if err := s.Logins.Users.Check(user, password, true); err != nil {
		return err
	}
	if err := s.mayGive(c, "token-policies", wanted.TokenPolicies); err != nil {
		return err
	}
	if c.has("validate") {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	user, err = s.Logins.WriteUser(c.Context(), user, password, credential.IfNew, time.Now())
	if err != nil {
		return existing(err, "user", wanted.Name)
	}
	shown := shownUser(user)
	c.audit.Diff = intent.Diff(nil, &shown, recordedUser)
	shown.Password = made
	s.created(c, "user", user.Name, user.Revision, shown)
	return nil
}

// existing returns the answer to a POST of what there is.
func existing(err error, noun, name string) error {
	if errors.Is(err, credential.ErrExists) {
		return problem(http.StatusConflict, "name", name, "name: the %s %q is there already; change it with PUT or PATCH", noun, name)
	}
	return err
}

// created answers a POST of a user or an approle.
func (s *server) created(c *call, noun, name string, revision uint64, shown any) {
	c.audit.Object, c.audit.After = noun+"/"+name, recordedRevision(revisionOf(revision))
	s.Log.Info(noun+" made", "tenant", c.tenant, "by", c.who.Name, "name", name)
	c.w.Header().Set("ETag", revisionOf(revision).ETag())
	c.w.Header().Set("Location", c.URL.Path+"/"+name)
	s.send(c.w, c.Request, http.StatusCreated, shown)
}
