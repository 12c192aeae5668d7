package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/intent"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

func shownPolicy(p principal.Policy) v1.Policy {
	rules := make([]v1.PolicyRule, len(p.Rules))
	for i, rule := range p.Rules {
		rules[i] = v1.PolicyRule(rule)
	}
	return v1.Policy{Name: p.Name, RestAPI: &v1.PolicyRules{Rules: rules}}
}

func samePolicy(p v1.Policy) v1.Policy { return p }

func policyOf(tenant, name string, p v1.Policy) principal.Policy {
	policy := principal.Policy{Tenant: tenant, Name: name, Rules: make([]principal.PolicyRule, len(p.RestAPI.Rules))}
	for i, rule := range p.RestAPI.Rules {
		policy.Rules[i] = principal.PolicyRule(rule)
	}
	return policy
}

// policyPermitted returns why a policy may not be written: its name or a path is none, or
// it allows what who sends the request may not do.
func (s *server) policyPermitted(c *call, policy principal.Policy) error {
	if err := s.Policies.Check(policy); err != nil {
		return err
	}
	for i, rule := range policy.Rules {
		if err := access.CheckPattern(rule.Path); err != nil {
			return problem(http.StatusBadRequest, fmt.Sprintf("rest-api.rules[%d].path", i), rule.Path, "rest-api.rules[%d].path: %s", i, err)
		}
	}
	return refusal(access.Covers(c.who, access.Principal{
		Tenant: c.tenant, Roles: []access.Role{policy.Name}, Policies: map[access.Role][]access.Rule{policy.Name: policy.Access()},
	}, s.requests))
}

// policy returns the policy with the name in the path.
func (s *server) policy(c *call) (*object[v1.Policy], error) {
	if s.Policies == nil {
		return nil, errNoLogins
	}
	name := c.PathValue("name")
	return &object[v1.Policy]{
		server: s, noun: "policy " + name, immediate: true,
		read: func(_ context.Context, tenant string) (v1.Kept[v1.Policy], store.Revision, error) {
			policy, err := s.Policies.Get(tenant, name)
			return v1.Kept[v1.Policy]{Value: shownPolicy(policy)}, revisionOf(policy.Revision), kept(err)
		},
		put: func(_ context.Context, tenant string, value v1.Kept[v1.Policy], base store.Revision) (store.Revision, error) {
			policy, err := s.Policies.Write(policyOf(tenant, name, value.Value), credential.IfRevision(base.Number))
			return revisionOf(policy.Revision), kept(err)
		},
		remove: func(_ context.Context, tenant string, base store.Revision) (store.Revision, error) {
			return store.Revision{}, kept(s.Policies.Remove(tenant, name, credential.IfRevision(base.Number)))
		},
		form: v1.PolicyForm, recorded: samePolicy,
		permitted: func(_ stored[v1.Policy], next v1.Policy) error {
			if err := named(c, next.Name); err != nil {
				return err
			}
			return s.policyPermitted(c, policyOf(c.tenant, name, next))
		},
		inUse: func(context.Context, Controller) error { return s.policyInUse(c.tenant, name) },
	}, nil
}

// policyInUse returns who names a policy.
func (s *server) policyInUse(tenant, name string) error {
	var users []string
	add := func(noun, of string, owner string, roles []access.Role) {
		if of == tenant && slices.Contains(roles, name) {
			users = append(users, noun+" "+owner)
		}
	}
	tokens, err := s.Tokens.List()
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if t.Value.Login == nil {
			add("token", t.Value.Tenant, t.Value.Name, t.Value.Allow)
		}
	}
	if s.Logins != nil {
		people, err := s.Logins.Users.List()
		if err != nil {
			return err
		}
		for _, u := range people {
			add("user", u.Value.Tenant, u.Value.Name, u.Value.Allow)
		}
		programs, err := s.Logins.Approles.List()
		if err != nil {
			return err
		}
		for _, a := range programs {
			add("approle", a.Value.Tenant, a.Value.Name, a.Value.Allow)
		}
	}
	if len(users) == 0 {
		return nil
	}
	const shown = 5
	more := ""
	if len(users) > shown {
		more = fmt.Sprintf(" and %d more", len(users)-shown)
		users = users[:shown]
	}
	return problem(http.StatusPreconditionFailed, "name", name,
		"policy %q is named by %s%s; change these, or add force=true, after which it allows them nothing", name, strings.Join(users, ", "), more)
}

func (s *server) getPolicies(c *call) error {
	if s.Policies == nil {
		return errNoLogins
	}
	all, err := s.Policies.OfTenant(c.tenant)
	if err != nil {
		return err
	}
	return sendList(s, c, shownAs(all, shownPolicy), func(p v1.Policy) string { return p.Name })
}

// postPolicy makes a policy that there is not yet.
func (s *server) postPolicy(c *call) error {
	if s.Policies == nil {
		return errNoLogins
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	wanted, err := v1.DecodePolicy(c.Header.Get("Content-Type"), body)
	if err != nil {
		return err
	}
	policy := policyOf(c.tenant, wanted.Name, wanted)
	if err := s.policyPermitted(c, policy); err != nil {
		return err
	}
	if c.has("validate") {
		c.w.WriteHeader(http.StatusNoContent)
		return nil
	}
	if policy, err = s.Policies.Write(policy, credential.IfNew); err != nil {
		return existing(err, "policy", wanted.Name)
	}
	shown := shownPolicy(policy)
	c.audit.Diff = intent.Diff(nil, &shown, samePolicy)
	s.created(c, "policy", policy.Name, policy.Revision, shown)
	return nil
}
