package access

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// requestsOf returns a request of each method that means an operation, for each path.
func requestsOf(paths ...string) (all []Request) {
	for _, path := range paths {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPost} {
			all = append(all, Request{method, path})
		}
	}
	return all
}

// apiRequests are requests like those of the API.
var apiRequests = requestsOf(
	"/v1/config/tenants", "/v1/config/tenants/{tenant}", "/v1/config/tenants/{tenant}/os-upgrade", "/v1/config/tenants/{tenant}/os-upgrade/calendars/{name}",
	"/v1/config/tenants/{tenant}/policy/policies/{name}", "/v1/state/tenants/{tenant}/os-upgrade/hosts/{host}", "/v1/state/tenants/{tenant}/os-upgrade/windows.ics",
	"/v1/state/tenants/{tenant}/os-upgrade/fleetlock/v1/pre-reboot",
	"/v1/state/tenants/{tenant}/os-upgrade/start", "/v1/state/tenants/{tenant}/os-upgrade/approve", "/v1/state/tenants/{tenant}/os-upgrade/abort",
	"/v1/state/tenants/{tenant}/os-upgrade/webhooks/{name}/test", "/v1/state/tenants/{tenant}/os-upgrade/join-tokens/{id}",
	"/v1/state/tenants/{tenant}/strongbox/tokens/{id}", "/v1/state/tenants/{tenant}/audit", "/v1/state/strongbox/token/refresh", "/v1/state/strongbox/password",
	"/v1/state/machine/certificate", "/metrics",
)

// TestCovers tries to give away each role with each other, and checks which can be given.
func TestCovers(t *testing.T) {
	t.Parallel()
	given := map[Role]string{
		Admin: "admin operator approver viewer calendar fleetlock read write start join", Operator: "operator viewer calendar read",
		Approver: "approver viewer calendar read", Viewer: "viewer calendar read", Calendar: "calendar", Reads: "viewer calendar read",
		FleetLock: "fleetlock", Writes: "write", Starts: "start", Joins: "join",
	}
	for _, tenant := range []string{"acme", AnyTenant} {
		for _, has := range Roles() {
			var can []string
			for _, gives := range Roles() {
				err := Covers(Principal{Name: "ann", Tenant: tenant, Roles: []Role{has}}, Principal{Tenant: tenant, Roles: []Role{gives}}, apiRequests)
				if err == nil {
					can = append(can, gives)
				} else if _, exceeds := errors.AsType[*ExceedsError](err); !exceeds {
					t.Errorf("%s gives %s: %v", has, gives, err)
				}
			}
			if got := strings.Join(can, " "); got != given[has] {
				t.Errorf("tenant %s: %s can give %q, want %q", tenant, has, got, given[has])
			}
		}
	}
	ann := Principal{Name: "ann", Tenant: "acme", Roles: []Role{Viewer, Writes}}
	if err := Covers(ann, Principal{Tenant: "acme", Roles: []Role{Writes, Reads}}, apiRequests); err != nil {
		t.Errorf("two roles do not give two: %v", err)
	}
	if err := Covers(ann, Principal{Tenant: "acme", Roles: []Role{Starts}}, apiRequests); err == nil || !strings.Contains(err.Error(), `"ann" cannot give a right that it does not have: to execute /v1/state/tenants/acme/os-upgrade/`) {
		t.Errorf("a role beyond its own: %v", err)
	}
	for _, tenant := range []string{"beta", AnyTenant} {
		if _, foreign := errors.AsType[*ForeignError](Covers(ann, Principal{Tenant: tenant, Roles: []Role{Reads}}, apiRequests)); !foreign {
			t.Errorf("a principal of acme lets somebody in to %s", tenant)
		}
	}
	if err := Covers(Principal{Tenant: AnyTenant, Roles: []Role{Viewer}}, Principal{Tenant: "acme", Roles: []Role{Viewer}}, apiRequests); err != nil {
		t.Errorf("one of all tenants gives the right to one: %v", err)
	}
}

// TestCoversWhatIsNotNamed checks that a right at a path which no rule of the giver names is
// compared, too.
func TestCoversWhatIsNotNamed(t *testing.T) {
	t.Parallel()
	policies := []Operation{Create, Read, Update, Delete}
	ann := Principal{Name: "ann", Tenant: "acme", Roles: []Role{"writer"}, Policies: map[Role][]Rule{
		"writer": {{Path: "/v1/config/tenants/*/policy/policies/*", Allow: policies}, {Path: "/v1/config/tenants/*/policy/policies", Allow: policies}},
	}}
	for _, path := range []string{"/v1/**", "/**", "/*/*/tenants/*/**", "/*/*/*/*/*/*", "/v1/state/tenants/*/audit", "/v1/*/tenants/acme/strongbox/**"} {
		other := Principal{Tenant: "acme", Roles: []Role{"p"}, Policies: map[Role][]Rule{"p": {{Path: path, Allow: everything}}}}
		if _, exceeds := errors.AsType[*ExceedsError](Covers(ann, other, apiRequests)); !exceeds {
			t.Errorf("who may write policies gives away %s", path)
		}
	}
	if err := Covers(ann, ann, apiRequests); err != nil {
		t.Errorf("who may write policies cannot give that away: %v", err)
	}
}

// randomPattern returns the path of a rule at random, one that matches some of apiRequests.
func randomPattern(r *rand.Rand) string {
	parts := patternOf(Rule{Path: apiRequests[r.IntN(len(apiRequests))].Path})
	for i, part := range parts {
		switch {
		case r.IntN(4) == 0:
			parts[i] = "*"
		case part == "{tenant}":
			parts[i] = []string{"acme", "beta", "*"}[r.IntN(3)]
		case isParameter(part):
			parts[i] = []string{"a", "b", "*"}[r.IntN(3)]
		}
	}
	if keep := r.IntN(len(parts) + 2); keep < len(parts) {
		parts = append(parts[:keep], "**")
	}
	return "/" + strings.Join(parts, "/")
}

func randomRules(r *rand.Rand) (set []Rule) {
	for range 1 + r.IntN(4) {
		rule := Rule{Path: randomPattern(r), Allow: []Operation{everything[r.IntN(len(everything))], everything[r.IntN(len(everything))]}}
		if r.IntN(3) == 0 {
			rule.Allow, rule.Reject = nil, rule.Allow
		}
		set = append(set, rule)
	}
	return set
}

// instances returns a request with each value of its parameters that matters to the rules of
// randomPattern.
func instances(request Request) []Request {
	before, rest, ok := strings.Cut(request.Path, "{")
	if !ok {
		return []Request{request}
	}
	name, after, _ := strings.Cut(rest, "}")
	values := []string{"a", "b", "x"}
	if name == "tenant" {
		values = []string{"acme", "beta", "gamma", "*"}
	}
	var all []Request
	for _, value := range values {
		all = append(all, instances(Request{request.Method, before + value + after})...)
	}
	return all
}

// TestCoversIsRight compares the answer with the decision on each request, for two principals
// with rules at random.
func TestCoversIsRight(t *testing.T) {
	t.Parallel()
	covered := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		tenant := func(all ...string) string { return all[r.IntN(len(all))] }
		who := Principal{Tenant: tenant("acme", AnyTenant), Roles: []Role{"w", Roles()[r.IntN(len(Roles()))]}, Policies: map[Role][]Rule{"w": randomRules(r)}}
		other := Principal{Tenant: who.Tenant, Roles: []Role{"o"}, Policies: map[Role][]Rule{"o": randomRules(r)}}
		if who.Tenant == AnyTenant {
			other.Tenant = tenant("acme", "gamma", AnyTenant)
		}
		var exceeds []string
		for _, request := range apiRequests {
			for _, one := range instances(request) {
				if Decide(other, one.Method, one.Path) == nil && Decide(who, one.Method, one.Path) != nil {
					exceeds = append(exceeds, one.Method+" "+one.Path)
				}
			}
		}
		err := Covers(who, other, apiRequests)
		if (err == nil) != (len(exceeds) == 0) {
			t.Fatalf("seed %d: %v gives %v: %v; it exceeds at %v", seed, who, other, err, exceeds)
		}
		if err == nil {
			covered++
		} else if _, ok := errors.AsType[*ExceedsError](err); !ok {
			t.Fatalf("seed %d: %v; it exceeds at %v", seed, err, exceeds)
		}
	}
	if covered < 100 || covered > 900 {
		t.Errorf("%d of 1000 are covered: the rules are not such that it matters", covered)
	}
}

// hostile returns a principal with so many rules that no answer is found in time.
func hostile() Principal {
	var rules []Rule
	for i := range 400 {
		for _, path := range []string{"/v1/state/tenants/t%d/os-upgrade/hosts/*", "/v1/state/tenants/*/os-upgrade/hosts/h%d"} {
			rules = append(rules, Rule{Path: fmt.Sprintf(path, i), Allow: everything})
		}
	}
	return Principal{Name: "ann", Tenant: AnyTenant, Roles: []Role{"h"}, Policies: map[Role][]Rule{"h": rules}}
}

// TestCoversEnds checks that rules which would take for ever are refused.
func TestCoversEnds(t *testing.T) {
	t.Parallel()
	who := hostile()
	if _, refused := errors.AsType[*ComplexError](Covers(who, who, apiRequests)); !refused {
		t.Error("it is compared to the end")
	}
}

// BenchmarkCovers measures the rules that are compared the longest before they are refused,
// and all roles.
func BenchmarkCovers(b *testing.B) {
	who := hostile()
	all := Principal{Name: "eve", Tenant: AnyTenant, Roles: Roles()}
	for name, p := range map[string]Principal{"hostile": who, "roles": all} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = Covers(p, p, apiRequests)
			}
		})
	}
}
