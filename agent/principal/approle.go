package principal

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
)

// Approle is a program that logs in with a role-id and a secret-id (AV-71).
type Approle struct {
	// Tenant is the tenant of the approle, or access.AnyTenant.
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Allow  []access.Role `json:"allow"`
	// RoleID names the approle; it is no secret.
	RoleID string    `json:"role-id"`
	Since  time.Time `json:"since"`
}

type approleFile struct {
	Approle
	Sum string `json:"sum"`
}

// SecretID is one secret of an approle.
type SecretID struct {
	Tenant  string `json:"tenant"`
	Approle string `json:"approle"`
	// RoleID is that of the approle: a later one of the same name has another.
	RoleID string `json:"role-id"`
	// Left are the logins that are left; nil means any number.
	Left    *int       `json:"left,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
}

type secretFile struct {
	SecretID
	Sum string `json:"sum"`
}

// ErrDamagedApprole means that the file of an approle or a secret-id is not as it was
// written.
var ErrDamagedApprole = errors.New("the file of the approle or its secret-id is damaged; remove it with osupgrade-agent credentials remove, and make it anew")

// Approles are the approles of a site, with their secret-ids: a credential for each, of an
// approle named by tenant and name, of a secret-id by its SHA-256.
type Approles struct{ stored, secrets credential.Store }

// OpenApproles opens the approles and secret-ids in two folders, which it creates if they
// do not exist.
func OpenApproles(dir, secretsDir string) (*Approles, error) {
	stored, err := credential.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	secrets, err := credential.OpenFolder(secretsDir)
	if err != nil {
		return nil, err
	}
	return &Approles{stored: stored, secrets: secrets}, nil
}

// Put makes an approle, or changes its roles: its role-id stays.
func (a *Approles) Put(tenant, name string, allow []access.Role, now time.Time) (Approle, error) {
	if err := checkLogin(tenant, name, allow); err != nil {
		return Approle{}, err
	}
	role, err := a.Get(tenant, name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		role = Approle{Tenant: tenant, Name: name, RoleID: newUUID(), Since: now.UTC().Truncate(time.Microsecond)}
	case err != nil:
		return Approle{}, err
	}
	role.Allow = allow
	key := keyOf(tenant, name)
	sum, err := sumOf(key, role)
	if err != nil {
		return Approle{}, err
	}
	body, err := format.Approle.Encode(approleFile{Approle: role, Sum: sum})
	if err != nil {
		return Approle{}, err
	}
	return role, a.stored.Put(key, append(body, '\n'))
}

// newUUID returns a random UUID (RFC 9562 5.4).
func newUUID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // It never fails.
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Get returns an approle; os.ErrNotExist if there is none.
func (a *Approles) Get(tenant, name string) (Approle, error) { return a.read(keyOf(tenant, name)) }

func (a *Approles) read(key string) (Approle, error) {
	body, err := a.stored.Get(key)
	if err != nil {
		return Approle{}, fmt.Errorf("cannot look up an approle: %w", err)
	}
	var file approleFile
	if err := format.Approle.Decode(body, &file); format.IsUnsupported(err) {
		return Approle{}, fmt.Errorf("cannot read the file of approle %s: %w", key, err)
	} else if err != nil {
		return Approle{}, ErrDamagedApprole
	}
	if sum, err := sumOf(key, file.Approle); err != nil || sum != file.Sum {
		return Approle{}, ErrDamagedApprole
	}
	return file.Approle, nil
}

// StoredApprole is an approle as it is stored.
type StoredApprole struct {
	Approle
	// Key is what Remove takes.
	Key    string
	Damage error
}

// List returns all approles.
func (a *Approles) List() ([]StoredApprole, error) {
	entries, err := a.stored.List()
	if err != nil {
		return nil, err
	}
	all := make([]StoredApprole, 0, len(entries))
	for _, e := range entries {
		role, err := a.read(e.Name)
		if errors.Is(err, os.ErrNotExist) {
			continue // It was removed meanwhile.
		}
		all = append(all, StoredApprole{Approle: role, Key: e.Name, Damage: err})
	}
	return all, nil
}

// Remove removes an approle by its key, and with it all its logins. Its secret-ids are
// good for nothing then, also for another approle of that name.
func (a *Approles) Remove(key string) error { return a.stored.Remove(key) }

// AddSecret makes a secret-id of an approle and returns its text, which is not stored.
// uses is how many logins it is good for, and valid how long; zero means no limit.
func (a *Approles) AddSecret(role Approle, uses int, valid time.Duration, now time.Time) (string, error) {
	text, err := newSecret("osus_")
	if err != nil {
		return "", err
	}
	secret := SecretID{Tenant: role.Tenant, Approle: role.Name, RoleID: role.RoleID}
	if uses > 0 {
		secret.Left = &uses
	}
	if valid > 0 {
		end := now.Add(valid).UTC().Truncate(time.Second)
		secret.Expires = &end
	}
	body, err := encodeSecret(hashOf(text), secret)
	if err != nil {
		return "", err
	}
	return text, a.secrets.Put(hashOf(text), body)
}

func encodeSecret(id string, secret SecretID) ([]byte, error) {
	sum, err := sumOf(id, secret)
	if err != nil {
		return nil, err
	}
	body, err := format.SecretID.Encode(secretFile{SecretID: secret, Sum: sum})
	return append(body, '\n'), err
}

func decodeSecret(id string, body []byte) (SecretID, error) {
	var file secretFile
	if err := format.SecretID.Decode(body, &file); format.IsUnsupported(err) {
		return SecretID{}, fmt.Errorf("cannot read the file of a secret-id: %w", err)
	} else if err != nil {
		return SecretID{}, ErrDamagedApprole
	}
	if sum, err := sumOf(id, file.SecretID); err != nil || sum != file.Sum {
		return SecretID{}, ErrDamagedApprole
	}
	return file.SecretID, nil
}

// prove returns the approle of a secret-id, of which it takes one use: that is on disk
// before prove returns. Clients that have no role-id send the secret-id in its place.
func (a *Approles) prove(roleID, text string, now time.Time) (role Approle, err error) {
	id := hashOf(text)
	err = a.secrets.Update(id, func(body []byte) ([]byte, error) {
		secret, err := decodeSecret(id, body)
		if err != nil {
			return nil, err
		}
		used := secret.Left != nil && *secret.Left < 1 || secret.Expires != nil && !now.Before(*secret.Expires)
		if used || roleID != secret.RoleID && roleID != text {
			return nil, ErrWrongLogin
		}
		if role, err = a.Get(secret.Tenant, secret.Approle); errors.Is(err, os.ErrNotExist) || err == nil && role.RoleID != secret.RoleID {
			return nil, ErrWrongLogin
		} else if err != nil {
			return nil, err
		}
		if secret.Left != nil {
			*secret.Left--
		}
		return encodeSecret(id, secret)
	})
	if errors.Is(err, os.ErrNotExist) {
		err = ErrWrongLogin
	}
	return role, err
}

// sweep removes the secret-ids that are used up or have expired.
func (a *Approles) sweep(now time.Time) error {
	entries, err := a.secrets.List()
	for _, e := range entries {
		body, readErr := a.secrets.Get(e.Name)
		if readErr != nil {
			continue // It was removed meanwhile, or is read next time.
		}
		secret, readErr := decodeSecret(e.Name, body)
		if readErr == nil && (secret.Left != nil && *secret.Left < 1 || secret.Expires != nil && now.After(*secret.Expires)) {
			if removal := a.secrets.Remove(e.Name); !errors.Is(removal, os.ErrNotExist) {
				err = errors.Join(err, removal)
			}
		}
	}
	return err
}
