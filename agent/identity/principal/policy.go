package principal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Policy is a set of rules that a tenant has made. Users, approles and tokens of that
// tenant name it beside roles.
type Policy struct {
	// Tenant is the tenant of the policy, or access.AnyTenant.
	Tenant string       `json:"tenant"`
	Name   string       `json:"name"`
	Rules  []PolicyRule `json:"rules"`
	// Revision tells this from what it was before and will be; zero means that there is none.
	Revision uint64 `json:"-"`
}

// PolicyRule is a rule as it was written.
type PolicyRule struct {
	Path        string `json:"path"`
	Description string `json:"description,omitempty"`
	// Operations are Allow or Reject by operation, or by Every for those that are not named.
	Operations map[string]string `json:"operations"`
}

// The words of Operations.
const (
	Every  = "all"
	Allow  = "allow"
	Reject = "reject"
)

// Access returns the rules by which access decides.
func (p Policy) Access() (all []access.Rule) {
	for _, rule := range p.Rules {
		one := access.Rule{Path: rule.Path}
		for _, operation := range access.Operations() {
			switch cmp.Or(rule.Operations[string(operation)], rule.Operations[Every]) {
			case Allow:
				one.Allow = append(one.Allow, operation)
			case Reject:
				one.Reject = append(one.Reject, operation)
			}
		}
		all = append(all, one.InTenant()...)
	}
	return all
}

// ErrDamagedPolicy means that the file of a policy is not as it was written. It allows
// nothing.
var ErrDamagedPolicy = errors.New("the file of the policy is damaged, so it allows nothing; write it anew, or delete it")

// Policies are the policies of a site: an entry for each, named by tenant and name.
type Policies struct {
	stored credential.Store
	// read returns the policy of a key. A damaged one has its revision.
	read *credential.Decoded[Policy]
}

// NewPolicies returns the policies that a store has.
func NewPolicies(stored credential.Store) *Policies {
	return &Policies{stored: stored, read: credential.NewDecoded(stored, "a policy", decodePolicy)}
}

type policyFile struct {
	Policy
	Sum string `json:"sum"`
}

// Check returns a WrongError if a policy of that name cannot be written.
func (p *Policies) Check(policy Policy) error {
	switch {
	case access.IsRole(policy.Name):
		return wrong("name", "%q is the name of a role; use another", policy.Name)
	case !names.Valid(policy.Name):
		return wrong("name", "%.100q is not the name of a policy; %s", policy.Name, names.Form)
	}
	return nil
}

// Write makes a policy, or changes it. It counts for the next request.
func (p *Policies) Write(policy Policy, permitted credential.Condition) (Policy, error) {
	if err := p.Check(policy); err != nil {
		return Policy{}, err
	}
	key := KeyOf(policy.Tenant, policy.Name)
	err := p.stored.Change(key, func(body []byte) ([]byte, error) {
		if err := permitted.Check(body); err != nil {
			return nil, err
		}
		sum, err := sumOf(key, policy)
		if err != nil {
			return nil, err
		}
		next, err := format.Policy.Encode(policyFile{Policy: policy, Sum: sum})
		next = append(next, '\n')
		policy.Revision = credential.RevisionOf(next)
		return next, err
	})
	return policy, err
}

// Get returns a policy; os.ErrNotExist if there is none. A damaged one has its revision.
func (p *Policies) Get(tenant, name string) (Policy, error) {
	if !names.Valid(name) {
		return Policy{}, os.ErrNotExist
	}
	return p.read.Get(KeyOf(tenant, name))
}

func decodePolicy(key string, body []byte) (Policy, error) {
	damaged := Policy{Revision: credential.RevisionOf(body)}
	var file policyFile
	if err := format.Policy.Decode(body, &file); format.IsUnsupported(err) {
		return damaged, fmt.Errorf("cannot read the file of policy %s: %w", key, err)
	} else if err != nil {
		return damaged, ErrDamagedPolicy
	}
	if sum, err := sumOf(key, file.Policy); err != nil || sum != file.Sum {
		return damaged, ErrDamagedPolicy
	}
	file.Revision = damaged.Revision
	return file.Policy, nil
}

// Remove removes a policy; os.ErrNotExist if there is none. What names it is allowed
// nothing by it then.
func (p *Policies) Remove(tenant, name string, permitted credential.Condition) error {
	return credential.RemoveIf(p.stored, KeyOf(tenant, name), permitted)
}

// OfTenant returns the policies of a tenant by name, without damaged ones.
func (p *Policies) OfTenant(tenant string) ([]Policy, error) {
	return ofTenant(p.read, tenant, ErrDamagedPolicy)
}

// Of returns the rules of those of the roles that are policies of a tenant. One that was
// removed or is damaged has none: it allows nothing.
func (p *Policies) Of(tenant string, roles []access.Role) (map[access.Role][]access.Rule, error) {
	found := map[access.Role][]access.Rule{}
	for _, role := range roles {
		if access.IsRole(role) {
			continue
		}
		switch policy, err := p.Get(tenant, role); {
		case err == nil:
			found[role] = policy.Access()
		case !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrDamagedPolicy):
			return nil, err
		}
	}
	return found, nil
}

// Known returns a WrongError for the first of the roles that is neither a role nor a
// policy of a tenant; field has the roles.
func (p *Policies) Known(field, tenant string, roles []access.Role) error {
	for _, role := range roles {
		if access.IsRole(role) {
			continue
		}
		if _, err := p.Get(tenant, role); errors.Is(err, os.ErrNotExist) {
			return wrong(field, "%.100q is neither a role nor a policy of the tenant; use %s, or make the policy first", role, strings.Join(access.Roles(), ", "))
		} else if err != nil {
			return err
		}
	}
	return nil
}
