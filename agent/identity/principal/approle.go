package principal

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Approle is a program that logs in with a role-id and a secret-id.
type Approle struct {
	// Tenant is the tenant of the approle, or access.AnyTenant.
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Allow  []access.Role `json:"allow"`
	// RoleID names the approle; it is no secret.
	RoleID string    `json:"role-id"`
	Since  time.Time `json:"since"`
	// Life is that of its logins.
	Life
	// Uses and Valid are those of its secret-ids, unless others are said where one is made;
	// nil means one use and an hour, zero means no limit.
	Uses  *int `json:"uses,omitempty"`
	Valid *int `json:"valid,omitempty"`
	// Revision tells this from what it was before and will be; zero means that there is none.
	Revision uint64 `json:"-"`
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
	// Made is when it was made; nil in the file of an old one.
	Made *time.Time `json:"made,omitempty"`
}

// good reports whether it lets somebody in.
func (s SecretID) good(now time.Time) bool {
	return (s.Left == nil || *s.Left > 0) && (s.Expires == nil || now.Before(*s.Expires))
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
type Approles struct {
	stored, secrets credential.Store
	// read returns the approle of a key. A damaged one has its revision.
	read *credential.Decoded[Approle]
}

// NewApproles returns the approles and secret-ids that two stores have.
func NewApproles(stored, secrets credential.Store) *Approles {
	return &Approles{stored: stored, secrets: secrets, read: credential.NewDecoded(stored, "an approle", decodeApprole)}
}

// Check returns a WrongError if an approle with these properties cannot be written.
func (a *Approles) Check(role Approle) error { return checkLogin(role.Tenant, role.Name, role.Allow) }

// Write makes an approle, or changes it: its role-id stays.
func (a *Approles) Write(role Approle, permitted credential.Condition, now time.Time) (Approle, error) {
	if err := a.Check(role); err != nil {
		return Approle{}, err
	}
	key := KeyOf(role.Tenant, role.Name)
	err := a.stored.Change(key, func(body []byte) ([]byte, error) {
		if err := permitted.Check(body); err != nil {
			return nil, err
		}
		role.RoleID, role.Since = newUUID(), now.UTC().Truncate(time.Microsecond)
		if body != nil {
			switch old, err := decodeApprole(key, body); {
			case err == nil:
				role.RoleID, role.Since = old.RoleID, old.Since
			case !errors.Is(err, ErrDamagedApprole): // A damaged one is made anew.
				return nil, err
			}
		}
		next, err := encodeApprole(key, role)
		role.Revision = credential.RevisionOf(next)
		return next, err
	})
	return role, err
}

func encodeApprole(key string, role Approle) ([]byte, error) {
	sum, err := sumOf(key, role)
	if err != nil {
		return nil, err
	}
	body, err := format.Approle.Encode(approleFile{Approle: role, Sum: sum})
	return append(body, '\n'), err
}

// newUUID returns a random UUID (RFC 9562 5.4).
func newUUID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // It never fails.
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Get returns an approle; os.ErrNotExist if there is none.
func (a *Approles) Get(tenant, name string) (Approle, error) {
	if !names.ValidLogin(name) {
		return Approle{}, os.ErrNotExist
	}
	return a.read.Get(KeyOf(tenant, name))
}

func decodeApprole(key string, body []byte) (Approle, error) {
	damaged := Approle{Revision: credential.RevisionOf(body)}
	var file approleFile
	if err := format.Approle.Decode(body, &file); format.IsUnsupported(err) {
		return Approle{}, fmt.Errorf("cannot read the file of approle %s: %w", key, err)
	} else if err != nil {
		return damaged, ErrDamagedApprole
	}
	if sum, err := sumOf(key, file.Approle); err != nil || sum != file.Sum {
		return damaged, ErrDamagedApprole
	}
	file.Revision = damaged.Revision
	return file.Approle, nil
}

// List returns all approles, by the keys that Logins.RemoveApprole takes.
func (a *Approles) List() ([]credential.Stored[Approle], error) { return a.read.List("") }

// OfTenant returns the approles of a tenant by name, without damaged ones.
func (a *Approles) OfTenant(tenant string) ([]Approle, error) {
	return ofTenant(a.read, tenant, ErrDamagedApprole)
}

// remove removes an approle by its key; os.ErrNotExist if there is none.
func (a *Approles) remove(key string, permitted credential.Condition) error {
	return credential.RemoveIf(a.stored, key, permitted)
}

// AddSecret makes a secret-id of an approle and returns its text, which is not stored.
// uses is how many logins it is good for, and valid how long; zero means no limit.
func (a *Approles) AddSecret(role Approle, uses int, valid time.Duration, now time.Time) (string, error) {
	text, err := newSecret("osus_")
	if err != nil {
		return "", err
	}
	made := now.UTC().Truncate(time.Second)
	secret := SecretID{Tenant: role.Tenant, Approle: role.Name, RoleID: role.RoleID, Made: &made}
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
	return text, credential.Put(a.secrets, hashOf(text), body)
}

// StoredSecret is a secret-id as it is stored: without its text.
type StoredSecret struct {
	// ID is the SHA-256 of the text.
	ID string
	SecretID
}

// Secrets returns the secret-ids of an approle that still let it in, the oldest first. A
// damaged one lets nobody in, and is nobody's.
func (a *Approles) Secrets(role Approle, now time.Time) ([]StoredSecret, error) {
	entries, err := a.secrets.List()
	if err != nil {
		return nil, err
	}
	var all []StoredSecret
	for _, e := range entries {
		body, err := a.secrets.Get(e.Name)
		if errors.Is(err, os.ErrNotExist) {
			continue // It was removed meanwhile.
		}
		if err != nil {
			return nil, err
		}
		secret, err := decodeSecret(e.Name, body)
		if err == nil && secret.RoleID == role.RoleID && secret.good(now) {
			all = append(all, StoredSecret{ID: e.Name, SecretID: secret})
		}
	}
	slices.SortFunc(all, func(x, y StoredSecret) int { return cmp.Or(x.made().Compare(y.made()), cmp.Compare(x.ID, y.ID)) })
	return all, nil
}

func (s SecretID) made() time.Time {
	if s.Made == nil {
		return time.Time{}
	}
	return *s.Made
}

// usesOfSecret and lifeOfSecret are those of a secret-id of an approle that says nothing.
const usesOfSecret, lifeOfSecret = 1, time.Hour

// NewSecret makes a secret-id as AddSecret does, with the uses and seconds of the approle
// where nil is given.
func (a *Approles) NewSecret(role Approle, uses, seconds *int, now time.Time) (string, error) {
	least, life := usesOfSecret, int(lifeOfSecret/time.Second)
	uses, seconds = cmp.Or(uses, role.Uses, &least), cmp.Or(seconds, role.Valid, &life)
	return a.AddSecret(role, *uses, time.Duration(*seconds)*time.Second, now)
}

// RemoveSecret withdraws a secret-id: nobody logs in with it any more.
func (a *Approles) RemoveSecret(id string) error { return credential.Remove(a.secrets, id) }

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
	err = credential.Update(a.secrets, id, func(body []byte) ([]byte, error) {
		secret, err := decodeSecret(id, body)
		if err != nil {
			return nil, err
		}
		if !secret.good(now) || roleID != secret.RoleID && roleID != text {
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

// ended reports whether the approle of a secret-id was removed.
func (a *Approles) ended(secret SecretID) bool {
	role, err := a.Get(secret.Tenant, secret.Approle)
	return errors.Is(err, os.ErrNotExist) || err == nil && role.RoleID != secret.RoleID
}

// sweep removes the secret-ids that are used up, have expired, or are of no approle.
func (a *Approles) sweep(now time.Time) error {
	entries, err := a.secrets.List()
	for _, e := range entries {
		body, readErr := a.secrets.Get(e.Name)
		if readErr != nil {
			continue // It was removed meanwhile, or is read next time.
		}
		secret, readErr := decodeSecret(e.Name, body)
		if readErr == nil && (!secret.good(now) || a.ended(secret)) {
			if removal := credential.Remove(a.secrets, e.Name); !errors.Is(removal, os.ErrNotExist) {
				err = errors.Join(err, removal)
			}
		}
	}
	return err
}
