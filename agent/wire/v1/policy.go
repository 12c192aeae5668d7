package v1

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
)

// Policy is a set of rules of a tenant, which its users, approles and tokens may name
// besides roles. Requests that no rule allows are refused.
type Policy struct {
	// Name is its name within the tenant. It may be absent if the path has it.
	Name string `json:"name,omitempty"`
	// RestAPI are its rules for requests.
	RestAPI *PolicyRules `json:"rest-api"`
}

// PolicyRules are the rules of a policy.
type PolicyRules struct {
	// Rules may be in any order. Of the rules that match a path and name the operation, the
	// most specific decides; between two with the same path, reject wins.
	Rules []PolicyRule `json:"rules" most:"100"`
}

// PolicyRule says which requests are allowed on some paths.
type PolicyRule struct {
	// Path is a path of the API, with or without /tenants/NAME. * in it stands for any one
	// name, and ** at its end for any number of names.
	Path        string `json:"path"`
	Description string `json:"description,omitempty"`
	// Operations are allow or reject by operation: read (GET), create (POST below
	// /v1/config), update (PUT, PATCH), delete, execute (any other POST), or all for the
	// operations that are not named.
	Operations map[string]string `json:"operations"`
}

// DecodePolicy reads the body of a write of a policy and validates it, as DecodeOSUpgrade
// does. Which paths there can be is decided by who decides by them.
func DecodePolicy(contentType string, body []byte) (Policy, error) {
	p, err := decode(contentType, body, Policy{}, Policy.Validate)
	return p.Canonical(), err
}

// Canonical has no rules as an empty list: written as null, it could not be read again.
func (p Policy) Canonical() Policy {
	if p.RestAPI != nil && p.RestAPI.Rules == nil {
		p.RestAPI = &PolicyRules{Rules: []PolicyRule{}}
	}
	return p
}

// maxPolicyRules bounds the rules of a policy, maxDescription the bytes of a description.
const maxPolicyRules, maxDescription = 100, 1000

// Validate returns what is wrong with the values, and nothing when all is right.
func (p Policy) Validate() Problems {
	if p.RestAPI == nil {
		return Problems{{Field: "rest-api", Message: `it is missing; write {"rules": [...]}, with no rule for a policy that allows nothing`}}
	}
	if count := len(p.RestAPI.Rules); count > maxPolicyRules {
		return Problems{document.TooMany("rest-api.rules", count, maxPolicyRules)}
	}
	var found Problems
	for i, rule := range p.RestAPI.Rules {
		found = append(found, rule.validate("rest-api.rules["+strconv.Itoa(i)+"].")...)
	}
	return found
}

// policyOperations are the names of operations, with that of all.
var policyOperations = []string{"all", "read", "create", "update", "delete", "execute"}

func (r PolicyRule) validate(at string) (found Problems) {
	if len(r.Operations) == 0 {
		found = append(found, Problem{Field: at + "operations", Message: fmt.Sprintf("the rule says nothing; give allow or reject for %s", strings.Join(policyOperations, ", "))})
	}
	for _, operation := range slices.Sorted(maps.Keys(r.Operations)) {
		if !slices.Contains(policyOperations, operation) {
			found = append(found, document.Wrong(at+"operations", operation, "is no operation; use "+strings.Join(policyOperations, ", ")))
		} else if verdict := r.Operations[operation]; verdict != "allow" && verdict != "reject" {
			found = append(found, document.Wrong(at+"operations."+operation, verdict, "is neither allow nor reject"))
		}
	}
	if len(r.Description) > maxDescription {
		found = append(found, Problem{Field: at + "description", Value: document.Clip(r.Description), Message: fmt.Sprintf("it is too long; use at most %d bytes", maxDescription)})
	}
	return found
}
