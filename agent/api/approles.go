package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func shownApprole(a principal.Approle) v1.Approle {
	shown := v1.Approle{Name: a.Name, TokenPolicies: a.Allow, SecretIDNumUses: a.Uses, TokenTTL: v1.OfSeconds(a.Seconds), TokenMaxTTL: v1.OfSeconds(a.Last)}
	if a.Valid != nil {
		shown.SecretIDTTL = cmp.Or(v1.OfSeconds(*a.Valid), "0s")
	}
	return shown
}

func approleState(a principal.Approle) v1.ApproleState {
	shown := shownApprole(a)
	return v1.ApproleState{
		Name: shown.Name, TokenPolicies: shown.TokenPolicies, SecretIDNumUses: shown.SecretIDNumUses, SecretIDTTL: shown.SecretIDTTL,
		TokenTTL: shown.TokenTTL, TokenMaxTTL: shown.TokenMaxTTL, RoleID: a.RoleID, CreationTime: a.Since,
	}
}

func approleOf(tenant, name string, a v1.Approle) principal.Approle {
	return principal.Approle{
		Tenant: tenant, Name: name, Allow: a.TokenPolicies, Life: principal.Life{Seconds: v1.Seconds(a.TokenTTL), Last: v1.Seconds(a.TokenMaxTTL)},
		Uses: a.SecretIDNumUses, Valid: v1.SecretSeconds(a.SecretIDTTL),
	}
}

// approle returns the approle with the name in the path.
func (s *server) approle(c *call) (*object[v1.Approle], error) {
	if s.Logins == nil {
		return nil, errNoLogins
	}
	name, err := loginName(c)
	if err != nil {
		return nil, err
	}
	return &object[v1.Approle]{
		server: s, noun: "approle " + name, immediate: true,
		read: func(_ context.Context, tenant string) (v1.Kept[v1.Approle], store.Revision, error) {
			role, err := s.Logins.Approles.Get(tenant, name)
			return v1.Kept[v1.Approle]{Value: shownApprole(role)}, revisionOf(role.Revision), kept(err)
		},
		put: func(_ context.Context, tenant string, value v1.Kept[v1.Approle], base store.Revision) (store.Revision, error) {
			c.typedRoles(value.Value.TokenPolicies)
			role, err := s.Logins.WriteApprole(approleOf(tenant, name, value.Value), credential.IfRevision(base.Number), time.Now())
			return revisionOf(role.Revision), kept(err)
		},
		remove: func(_ context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return store.Revision{}, kept(s.Logins.RemoveApprole(principal.KeyOf(tenant, name), credential.IfRevision(base.Number)))
		},
		form: v1.ApproleForm, recorded: func(a v1.Approle) v1.Approle { return a },
		permitted: func(now stored[v1.Approle], next v1.Approle) error {
			if err := named(c, next.Name); err != nil {
				return err
			}
			if err := s.Logins.Approles.Check(approleOf(c.tenant, name, next)); err != nil {
				return err
			}
			if err := s.mayChange(c, "approle", now.value.Value.TokenPolicies); err != nil {
				return err
			}
			return s.mayGive(c, "token-policies", next.TokenPolicies)
		},
	}, nil
}

func (s *server) getApproles(c *call) error {
	all, err := s.Logins.Approles.OfTenant(c.tenant)
	if err != nil {
		return err
	}
	return sendList(s, c, shownAs(all, shownApprole), func(a v1.Approle) string { return a.Name })
}

func (s *server) getApproleStates(c *call) error {
	all, err := s.Logins.Approles.OfTenant(c.tenant)
	if err != nil {
		return err
	}
	return sendList(s, c, shownAs(all, approleState), func(a v1.ApproleState) string { return a.Name })
}

// approleAt returns the approle that the path of a request names.
func (s *server) approleAt(c *call) (principal.Approle, error) {
	role, err := s.Logins.Approles.Get(c.tenant, c.PathValue("name"))
	if errors.Is(err, os.ErrNotExist) {
		err = missing("approle", "tenant %q has no approle %.70q", c.tenant, c.PathValue("name"))
	}
	return role, err
}

func (s *server) getApproleState(c *call) error {
	role, err := s.approleAt(c)
	if err != nil {
		return err
	}
	return s.sendFields(c, approleState(role))
}

// postApprole makes an approle that there is not yet.
func (s *server) postApprole(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeApprole(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	role := approleOf(c.tenant, wanted.Name, wanted)
	if err := s.Logins.Approles.Check(role); err != nil {
		return err
	}
	if err := s.mayGive(c, "token-policies", wanted.TokenPolicies); err != nil {
		return err
	}
	if c.has("validate") {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if role, err = s.Logins.WriteApprole(role, credential.IfNew, time.Now()); err != nil {
		return existing(err, "approle", wanted.Name)
	}
	shown := shownApprole(role)
	c.audit.Diff = intent.Diff(nil, &shown, func(a v1.Approle) v1.Approle { return a })
	s.created(c, "approle", role.Name, role.Revision, approleState(role))
	return nil
}

func shownSecret(secret principal.StoredSecret) v1.SecretID {
	return v1.SecretID{ID: secret.ID, RoleID: secret.RoleID, SecretIDNumUses: secret.Left, CreationTime: secret.Made, Expires: secret.Expires}
}

// secrets returns the secret-ids of the approle in the path.
func (s *server) secrets(c *call) ([]v1.SecretID, error) {
	role, err := s.approleAt(c)
	if err != nil {
		return nil, err
	}
	all, err := s.Logins.Approles.Secrets(role, time.Now())
	return shownAs(all, shownSecret), err
}

func (s *server) getSecrets(c *call) error {
	all, err := s.secrets(c)
	if err != nil {
		return err
	}
	return sendList(s, c, all, func(secret v1.SecretID) string { return secret.ID })
}

// postSecret makes a secret-id. Whoever has it is the approle, so who makes it must have
// its rights.
func (s *server) postSecret(c *call) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeNewSecretID(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	role, err := s.approleAt(c)
	if err != nil {
		return err
	}
	if err := s.mayGive(c, "name", role.Allow); err != nil {
		return err
	}
	text, err := s.Logins.Approles.NewSecret(role, wanted.SecretIDNumUses, v1.SecretSeconds(wanted.SecretIDTTL), time.Now())
	if err != nil {
		return err
	}
	id := principal.ID(text)
	all, err := s.secrets(c)
	i := slices.IndexFunc(all, func(secret v1.SecretID) bool { return secret.ID == id })
	if err != nil || i < 0 { // The approle was removed meanwhile, and the secret-id is good for nothing.
		return cmp.Or(err, missing("approle", "tenant %q has no approle %.70q", c.tenant, role.Name))
	}
	c.audit.Object, c.audit.Detail = "secret-id/"+shortID(id), "of approle "+role.Name
	s.Log.Info("secret-id made", "tenant", c.tenant, "by", c.who.Name, "approle", role.Name, "id", id[:12])
	all[i].SecretID = text
	c.w.Header().Set("Location", c.URL.Path+"/"+id)
	s.send(c.w, c.Request, http.StatusCreated, all[i])
	return nil
}

func (s *server) deleteSecret(c *call) error {
	all, err := s.secrets(c)
	if err != nil {
		return err
	}
	id := c.PathValue("id")
	if !slices.ContainsFunc(all, func(secret v1.SecretID) bool { return secret.ID == id }) {
		return problem(http.StatusNotFound, "id", id, "approle %q has no secret-id %.70q", c.PathValue("name"), id)
	}
	if err := s.Logins.Approles.RemoveSecret(id); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	c.audit.Detail = "of approle " + c.PathValue("name")
	s.Log.Info("secret-id withdrawn", "tenant", c.tenant, "by", c.who.Name, "approle", c.PathValue("name"), "id", id[:12])
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
