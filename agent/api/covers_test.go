package api

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
)

// TestCoversEachRoute gives away policies at random and checks that who receives one may send
// no request of the API that the giver may not send.
func TestCoversEachRoute(t *testing.T) {
	t.Parallel()
	requests := requestsOf(routes())
	if len(requests) < 90 {
		t.Fatalf("there are %d requests", len(requests))
	}
	given, refused := 0, 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 22)) //nolint:gosec // a test
		who, other := randomPrincipal(r, requests), randomPrincipal(r, requests)
		if err := access.Covers(who, other, requests); err == nil {
			given++
		} else if _, exceeds := errors.AsType[*access.ExceedsError](err); exceeds {
			refused++
			continue
		} else {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, request := range requests {
			for _, value := range []string{"a", "b", "x"} {
				path := parameterOf.ReplaceAllString(strings.Replace(request.Path, "{tenant}", "demo", 1), value)
				if access.Decide(other, request.Method, path) == nil && access.Decide(who, request.Method, path) != nil {
					t.Fatalf("seed %d: %v gives %v, which may %s %s then", seed, who.Policies, other.Policies, request.Method, path)
				}
			}
		}
	}
	if given < 20 || refused < 20 {
		t.Errorf("%d are given and %d refused: the policies are not such that it matters", given, refused)
	}
}

var parameterOf = regexp.MustCompile(`\{[a-z]+\}`)

// randomPrincipal returns a principal with a policy of up to four rules, each of which
// matches some request.
func randomPrincipal(r *rand.Rand, requests []access.Request) access.Principal {
	var rules []access.Rule
	for range 1 + r.IntN(4) {
		parts := strings.Split(strings.TrimPrefix(requests[r.IntN(len(requests))].Path, "/"), "/")
		for i, part := range parts {
			if strings.HasPrefix(part, "{") || r.IntN(5) == 0 {
				parts[i] = []string{"*", "*", "a", "b"}[r.IntN(4)]
			}
		}
		if keep := r.IntN(len(parts) + 2); keep < len(parts) {
			parts = append(parts[:keep], "**")
		}
		rule := access.Rule{Path: "/" + strings.Join(parts, "/")}
		if operations := access.Operations(); r.IntN(4) == 0 {
			rule.Reject = operations[:1+r.IntN(len(operations))]
		} else {
			rule.Allow = operations[r.IntN(len(operations)):]
		}
		rules = append(rules, rule)
	}
	return access.Principal{Name: "ann", Tenant: "demo", Roles: []access.Role{"p"}, Policies: map[access.Role][]access.Rule{"p": rules}}
}
