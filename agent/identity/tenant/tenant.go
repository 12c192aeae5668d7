// Package tenant keeps which tenants were made and removed while a site runs.
//
// It decides nothing: the site serves those that are here and not removed, beside those of
// its configuration. What a removed tenant had stays where it is, and its entry says so.
package tenant

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Tenant is a tenant as it is stored.
type Tenant struct {
	Name string `json:"name"`
	// DescriptiveName is its name for people.
	DescriptiveName string `json:"descriptive-name,omitempty"`
	// Made is when it was made.
	Made time.Time `json:"made"`
	// Removed is when it was removed; nil while it is there.
	Removed *time.Time `json:"removed,omitempty"`
	// Revision tells this from what it was before and will be; zero means that there is none.
	Revision uint64 `json:"-"`
}

// ErrDamaged means that the file of a tenant is not as it was written. The tenant is
// neither served nor forgotten.
var ErrDamaged = errors.New("the file of the tenant is damaged")

// Tenants are the tenants of a site: an entry for each, by its name.
type Tenants struct{ stored credential.Store }

// New returns the tenants that a store has.
func New(stored credential.Store) *Tenants { return &Tenants{stored: stored} }

// member is the member of the file that has the tenant.
const member = "tenant"

// Get returns a tenant; os.ErrNotExist if there is no entry of that name.
func (t *Tenants) Get(name string) (Tenant, error) {
	if !names.Valid(name) {
		return Tenant{}, os.ErrNotExist
	}
	body, err := t.stored.Get(name)
	if err != nil {
		return Tenant{}, fmt.Errorf("cannot look up a tenant: %w", err)
	}
	return decode(name, body)
}

func decode(name string, body []byte) (Tenant, error) {
	var kept Tenant
	err := format.Tenant.DecodeSummed(body, member, &kept)
	switch {
	case format.IsUnsupported(err):
		return Tenant{}, fmt.Errorf("cannot read the file of tenant %s: %w", name, err)
	case err != nil || kept.Name != name:
		return Tenant{Name: name, Revision: credential.RevisionOf(body)}, ErrDamaged
	}
	kept.Revision = credential.RevisionOf(body)
	return kept, nil
}

// List returns all entries by name. A damaged one fails it: a site must not go on without a
// tenant that it has.
func (t *Tenants) List() ([]Tenant, error) {
	entries, err := t.stored.List()
	if err != nil {
		return nil, err
	}
	all := []Tenant{}
	for _, e := range entries {
		kept, err := t.Get(e.Name)
		if err != nil {
			return nil, fmt.Errorf("tenant %s: %w; restore the file from a backup, or remove it, after which the tenant is not served", e.Name, err)
		}
		all = append(all, kept)
	}
	return all, nil
}

// Put stores a tenant durably.
func (t *Tenants) Put(tenant Tenant, permitted credential.Condition) (Tenant, error) {
	next, err := format.Tenant.EncodeSummed(member, tenant)
	if err != nil {
		return Tenant{}, err
	}
	err = t.stored.Change(tenant.Name, func(body []byte) ([]byte, error) { return next, permitted.Check(body) })
	tenant.Revision = credential.RevisionOf(next)
	return tenant, err
}

// Forget removes the entry of a tenant that could not be made.
func (t *Tenants) Forget(name string) error { return credential.Remove(t.stored, name) }
