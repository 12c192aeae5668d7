package principal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// User is a person who logs in with a password.
type User struct {
	// Tenant is the tenant of the user, or access.AnyTenant.
	Tenant string        `json:"tenant"`
	Name   string        `json:"name"`
	Allow  []access.Role `json:"allow"`
	// Hash is the password as it is stored.
	Hash string `json:"hash"`
	// Since is when the password was set. Tokens of logins before are not good any more.
	Since time.Time `json:"since"`
	// Life is that of its logins.
	Life
	// Revision tells this from what it was before and will be; zero means that there is none.
	Revision uint64 `json:"-"`
}

// Life is how long the token of a login is good: for Seconds, which a refresh extends up
// to Last seconds after the login. Zero means the length that all have.
type Life struct {
	Seconds int `json:"life,omitempty"`
	Last    int `json:"last,omitempty"`
}

// or returns the life with what is not set taken from another.
func (l Life) or(life, last time.Duration) (time.Duration, time.Duration) {
	if l.Seconds > 0 {
		life = time.Duration(l.Seconds) * time.Second
	}
	if l.Last > 0 {
		last = time.Duration(l.Last) * time.Second
	}
	return min(life, last), last
}

// proof is what a login proves that it knows: the password that was set then.
func (u User) proof() string { return u.Since.UTC().Format(time.RFC3339Nano) }

// userFile is what the file of a user holds. Sum ties it to its name, so that the file of
// one user is not good for another.
type userFile struct {
	User
	Sum string `json:"sum"`
}

// sumOf returns the sum of a value that is kept under a key.
func sumOf(key string, value any) (string, error) {
	body, err := json.Marshal(value)
	return hashOf(key + "\n" + string(body)), err
}

// ErrDamagedUser means that the file of a user is not as it was written.
var ErrDamagedUser = errors.New("the file of the user is damaged; remove the user with osupgrade-agent credentials remove, and make it anew")

// Users are the users of a site: a credential for each, named by tenant and name.
type Users struct {
	stored credential.Store
	// read returns the user of a key. A damaged one has its revision.
	read   *credential.Decoded[User]
	hasher *hasher
}

// NewUsers returns the users that a store has.
func NewUsers(stored credential.Store) *Users {
	return &Users{stored: stored, read: credential.NewDecoded(stored, "a user", decodeUser), hasher: newHasher()}
}

// KeyOf returns the key under which what has a tenant and a name is kept. The name of a
// tenant has neither "." nor "_".
func KeyOf(tenant, name string) string {
	if tenant == access.AnyTenant {
		tenant = "_"
	}
	return tenant + "." + name
}

// minPassword and maxPassword bound the length of a password, in characters and bytes.
const minPassword, maxPassword = 8, 1024

// CheckName returns a WrongError if a name cannot be that of a user or an approle.
func CheckName(name string) error {
	if !names.ValidLogin(name) {
		return wrong("name", "%.100q is invalid; %s", name, names.LoginForm)
	}
	return nil
}

// checkLogin returns what is wrong with the properties of a user or an approle.
func checkLogin(tenant, name string, allow []access.Role) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if tenant != access.AnyTenant && !names.Valid(tenant) {
		return wrong("tenant", "%.100q is not the name of a tenant; %s, or * for all tenants", tenant, names.Form)
	}
	if len(allow) == 0 {
		return wrong("allow", "without a role nothing is allowed; use %s", strings.Join(access.Roles(), ", "))
	}
	return Token{Name: name, Allow: allow}.Check()
}

// ErrNoPassword means that a user would have no password.
var ErrNoPassword = wrong("password", "it is missing; a new user needs one")

// Check returns a WrongError if a user with these properties and this password cannot be
// written; needed tells that it has no other password.
func (u *Users) Check(user User, password string, needed bool) error {
	if err := checkLogin(user.Tenant, user.Name, user.Allow); err != nil {
		return err
	}
	if password == "" {
		if needed {
			return ErrNoPassword
		}
		return nil
	}
	if utf8.RuneCountInString(password) < minPassword || len(password) > maxPassword {
		return wrong("password", "it is too short or too long; use %d characters at least and %d bytes at most", minPassword, maxPassword)
	}
	return nil
}

// Write makes a user, or changes it. A new password ends its logins; an empty one means
// the password that the user has.
func (u *Users) Write(ctx context.Context, user User, password string, permitted credential.Condition, now time.Time) (User, error) {
	if err := u.Check(user, password, false); err != nil {
		return User{}, err
	}
	if password != "" {
		hash, err := u.hasher.hash(ctx, "", password)
		if err != nil {
			return User{}, err
		}
		user.Hash, user.Since = hash, now.UTC().Truncate(time.Microsecond)
	}
	key := KeyOf(user.Tenant, user.Name)
	err := u.stored.Change(key, func(body []byte) ([]byte, error) {
		if err := permitted.Check(body); err != nil {
			return nil, err
		}
		if password == "" {
			if body == nil {
				return nil, ErrNoPassword
			}
			old, err := decodeUser(key, body)
			if err != nil {
				return nil, err
			}
			user.Hash, user.Since = old.Hash, old.Since
		}
		next, err := encodeUser(key, user)
		user.Revision = credential.RevisionOf(next)
		return next, err
	})
	return user, err
}

func encodeUser(key string, user User) ([]byte, error) {
	sum, err := sumOf(key, user)
	if err != nil {
		return nil, err
	}
	body, err := format.User.Encode(userFile{User: user, Sum: sum})
	return append(body, '\n'), err
}

// Get returns a user; os.ErrNotExist if there is none.
func (u *Users) Get(tenant, name string) (User, error) {
	if !names.ValidLogin(name) {
		return User{}, os.ErrNotExist
	}
	return u.read.Get(KeyOf(tenant, name))
}

func decodeUser(key string, body []byte) (User, error) {
	damaged := User{Revision: credential.RevisionOf(body)}
	var file userFile
	if err := format.User.Decode(body, &file); format.IsUnsupported(err) {
		return User{}, fmt.Errorf("cannot read the file of user %s: %w", key, err)
	} else if err != nil {
		return damaged, ErrDamagedUser
	}
	if sum, err := sumOf(key, file.User); err != nil || sum != file.Sum {
		return damaged, ErrDamagedUser
	}
	file.Revision = damaged.Revision
	return file.User, nil
}

// List returns all users, by the keys that Logins.RemoveUser takes.
func (u *Users) List() ([]credential.Stored[User], error) { return u.read.List("") }

// OfTenant returns the users of a tenant by name, without damaged ones.
func (u *Users) OfTenant(tenant string) ([]User, error) {
	return ofTenant(u.read, tenant, ErrDamagedUser)
}

// ofTenant returns the entries of a tenant by name, without damaged ones: who asks for one of
// these is told.
func ofTenant[T any](read *credential.Decoded[T], tenant string, damaged error) ([]T, error) {
	stored, err := read.List(KeyOf(tenant, ""))
	if err != nil {
		return nil, err
	}
	all := []T{}
	for _, one := range stored {
		switch {
		case one.Damage == nil:
			all = append(all, one.Value)
		case !errors.Is(one.Damage, damaged):
			return nil, one.Damage
		}
	}
	return all, nil
}

// remove removes a user by its key; os.ErrNotExist if there is none.
func (u *Users) remove(key string, permitted credential.Condition) error {
	return credential.RemoveIf(u.stored, key, permitted)
}

// prove returns the user with a name and a password. The tenant may be empty if no two
// tenants have a user of that name. It takes as long for who does not exist.
func (u *Users) prove(ctx context.Context, from, tenant, name, password string) (User, error) {
	user, found := u.candidate(tenant, name)
	hash := nobody
	if found {
		hash = user.Hash
	}
	right, err := u.hasher.verify(ctx, from, hash, password)
	switch {
	case errors.Is(err, errDamagedHash):
		return User{}, ErrDamagedUser
	case err != nil:
		return User{}, err
	case !found || !right:
		return User{}, ErrWrongLogin
	}
	return user, nil
}

func (u *Users) candidate(tenant, name string) (user User, found bool) {
	if !names.ValidLogin(name) || tenant != "" && tenant != access.AnyTenant && !names.Valid(tenant) {
		return User{}, false
	}
	if tenant != "" {
		user, err := u.Get(tenant, name)
		return user, err == nil
	}
	entries, err := u.stored.List()
	if err != nil {
		return User{}, false
	}
	for _, e := range entries {
		if _, its, _ := strings.Cut(e.Name, "."); its != name {
			continue
		}
		if found {
			return User{}, false // Several tenants have one: which of them is meant?
		}
		if user, err = u.read.Get(e.Name); err != nil {
			return User{}, false
		}
		found = true
	}
	return user, found
}
