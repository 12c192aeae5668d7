package api

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// HostKeys are the keys of the hosts that may connect.
type HostKeys interface {
	// Register lets a host in with a key. ErrRefusedKey means that it may not have it.
	Register(public, tenant, host string, replace bool) error
	List() ([]HostKey, error)
	// Remove withdraws a key; os.ErrNotExist if there is none.
	Remove(public string) error
}

// HostKey is a key of a host.
type HostKey struct {
	Public, Tenant, Host string
	Made                 time.Time
	// Damage is why nobody knows whose it is.
	Damage error
}

// storedCredential is a credential with what withdraws it.
type storedCredential struct {
	v1.Credential
	remove func() error
}

// damagedBy returns the credential as it is shown if its file is damaged.
func (k storedCredential) damagedBy(damage error) storedCredential {
	if damage != nil {
		k.Credential = v1.Credential{ID: k.ID, Kind: k.Kind, CreationTime: k.CreationTime, Damage: damage.Error()}
	}
	return k
}

// credentials returns the credentials of a tenant, or of all tenants with those whose files
// are damaged, by kind, tenant, owner and age.
func (s *server) credentials(tenant string) (all []storedCredential, err error) {
	for _, list := range []func() ([]storedCredential, error){s.tokenCredentials, s.keyCredentials, s.loginCredentials} {
		some, err := list()
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	all = slices.DeleteFunc(all, func(k storedCredential) bool { return k.Tenant != tenant && tenant != access.AnyTenant })
	slices.SortFunc(all, func(a, b storedCredential) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Owner, b.Owner), a.CreationTime.Compare(b.CreationTime), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

func (s *server) tokenCredentials() ([]storedCredential, error) {
	tokens, err := s.Tokens.List()
	if err != nil {
		return nil, err
	}
	return shownAs(tokens, func(stored credential.Stored[principal.Token]) storedCredential {
		t := stored.Value
		shown := v1.Credential{ID: stored.Key, Kind: v1.TokenCredential, Tenant: t.Tenant, Owner: t.Name, CreationTime: stored.Made, Allow: t.Allow, Expires: t.Expires}
		if t.Login != nil {
			shown.Login = t.Login.Of
		}
		if !t.Used.IsZero() {
			shown.LastUsed = &t.Used
		}
		return storedCredential{shown, func() error { return s.Tokens.Remove(stored.Key) }}.damagedBy(stored.Damage)
	}), nil
}

func (s *server) keyCredentials() ([]storedCredential, error) {
	if s.HostKeys == nil {
		return nil, nil
	}
	keys, err := s.HostKeys.List()
	if err != nil {
		return nil, err
	}
	return shownAs(keys, func(k HostKey) storedCredential {
		shown := v1.Credential{ID: k.Public, Kind: v1.KeyCredential, Tenant: k.Tenant, Owner: k.Host, CreationTime: k.Made}
		return storedCredential{shown, func() error {
			// First the token by which it has come: it must not bring the key back.
			if s.Joining != nil {
				if err := s.Joining.Tokens.Forget(k.Public, k.Tenant, k.Host); err != nil {
					return err
				}
			}
			return s.HostKeys.Remove(k.Public)
		}}.damagedBy(k.Damage)
	}), nil
}

func (s *server) loginCredentials() ([]storedCredential, error) {
	if s.Logins == nil {
		return nil, nil
	}
	users, err := s.Logins.Users.List()
	if err != nil {
		return nil, err
	}
	approles, err := s.Logins.Approles.List()
	if err != nil {
		return nil, err
	}
	return append(shownAs(users, func(stored credential.Stored[principal.User]) storedCredential {
		u := stored.Value
		shown := v1.Credential{ID: principal.ID(stored.Key), Kind: v1.UserCredential, Tenant: u.Tenant, Owner: u.Name, CreationTime: u.Since, Allow: u.Allow}
		return storedCredential{shown, func() error { return s.Logins.RemoveUser(stored.Key, nil) }}.damagedBy(stored.Damage)
	}), shownAs(approles, func(stored credential.Stored[principal.Approle]) storedCredential {
		a := stored.Value
		shown := v1.Credential{ID: principal.ID(stored.Key), Kind: v1.ApproleCredential, Tenant: a.Tenant, Owner: a.Name, CreationTime: a.Since, Allow: a.Allow, RoleID: a.RoleID}
		return storedCredential{shown, func() error { return s.Logins.RemoveApprole(stored.Key, nil) }}.damagedBy(stored.Damage)
	})...), nil
}

func (s *server) getCredentials(c *call) error {
	all, err := s.credentials(c.tenant)
	if err != nil {
		return err
	}
	return sendList(s, c, shownAs(all, func(k storedCredential) v1.Credential { return k.Credential }), func(k v1.Credential) string { return k.ID })
}

// deleteCredential withdraws a credential, also one whose file is damaged.
func (s *server) deleteCredential(c *call) error {
	all, err := s.credentials(c.tenant)
	if err != nil {
		return err
	}
	id := c.PathValue("id")
	i := slices.IndexFunc(all, func(k storedCredential) bool { return k.ID == id })
	if i < 0 {
		return problem(http.StatusNotFound, "id", id, "%.100q is the id of no token, user, approle and host key", id)
	}
	k := all[i]
	switch {
	case k.Damage != "":
		c.audit.Object, c.audit.Detail = k.Kind+"/"+shortID(k.ID), "its file is damaged"
	case k.Kind == v1.TokenCredential:
		c.audit.Object, c.audit.Detail = "token/"+shortID(k.ID), "name "+k.Owner
	case k.Kind == v1.KeyCredential:
		c.audit.Action, c.audit.Object, c.audit.Detail = "delete-key", "host/"+k.Owner, "key "+k.ID
	default:
		c.audit.Object, c.audit.Detail = k.Kind+"/"+k.Owner, "id "+shortID(k.ID)
	}
	if err := k.remove(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.Log.Info("credential withdrawn", "tenant", c.tenant, "by", c.who.Name, "kind", k.Kind, "id", shortID(k.ID), "owner", k.Owner)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// postHostKey lets a host in with a key of which nobody else has the seed.
func (s *server) postHostKey(c *call) error {
	if s.HostKeys == nil {
		return errNoJoining
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodeNewHostKey(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	host := c.PathValue("host")
	if wrong := v1.ValidHostName(host); len(wrong) > 0 {
		return wrong
	}
	if wanted.Replace {
		c.audit.Detail = "may replace a key"
	}
	if err := s.HostKeys.Register(wanted.PublicKey, c.tenant, host, wanted.Replace); errors.Is(err, ErrRefusedKey) {
		return problem(http.StatusConflict, "host", host, "%s", err)
	} else if err != nil {
		return err
	}
	s.Log.Info("host key registered", "tenant", c.tenant, "by", c.who.Name, "host", host, "key", wanted.PublicKey)
	s.send(c.w, c.Request, http.StatusCreated, v1.HostKey{Tenant: c.tenant, Host: host, PublicKey: wanted.PublicKey})
	return nil
}
