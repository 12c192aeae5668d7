package access

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// methods has a method for each operation, on a path of the configuration and of the state.
var methods = []string{"GET", "PUT", "PATCH", "DELETE", "POST"}

// decisions returns for each method and path whether a policy of tenant acme allows it.
func decisions(policy []Rule, paths []string) map[string]bool {
	who := Principal{Name: "ann", Tenant: "acme", Roles: []Role{"p"}, Policies: map[Role][]Rule{"p": policy}}
	all := map[string]bool{}
	for _, path := range paths {
		for _, method := range methods {
			all[method+" "+path] = Decide(who, method, path) == nil
		}
	}
	return all
}

// upgradePattern returns a pattern at random of what belongs to the upgrade of acme.
func upgradePattern(r *rand.Rand) string {
	var text strings.Builder
	text.WriteString("/v1/state/tenants/acme/os-upgrade")
	for range r.IntN(3) {
		text.WriteString("/" + []string{"a", "b", "*"}[r.IntN(3)])
	}
	if r.IntN(2) == 0 {
		text.WriteString("/**")
	}
	return text.String()
}

// allPaths are paths up to a length over the names that the patterns have and one that none has.
func allPaths(prefix string, depth int) (all []string) {
	if all = append(all, prefix); depth > 0 {
		for _, name := range []string{"a", "b", "x"} {
			all = append(all, allPaths(prefix+"/"+name, depth-1)...)
		}
	}
	return all
}

func randomRule(r *rand.Rand) Rule {
	rule := Rule{Path: upgradePattern(r)}
	for _, operation := range everything {
		switch r.IntN(4) {
		case 0:
			rule.Allow = append(rule.Allow, operation)
		case 1:
			rule.Reject = append(rule.Reject, operation)
		}
	}
	return rule
}

// TestPolicies checks of policies at random what holds of each: nothing is allowed without
// a rule, one more rule changes only what it matches and names, one that rejects widens
// nothing and one that allows narrows nothing, the one that rejects wins where two are of
// the same path, the order means nothing, and no policy reaches beyond its tenant.
func TestPolicies(t *testing.T) { //nolint:gocognit // each property is an if
	t.Parallel()
	paths := allPaths("/v1/state/tenants/acme/os-upgrade", 3)
	changes := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test
		var policy []Rule
		for range r.IntN(4) {
			policy = append(policy, randomRule(r))
		}
		before := decisions(policy, paths)
		added := randomRule(r)
		more := append(slices.Clone(policy), added)
		after := decisions(more, paths)
		for request, allowed := range after {
			method, path, _ := strings.Cut(request, " ")
			segments, _ := split(path)
			operation := operationOf(method, segments)
			allows, rejects := slices.Contains(added.Allow, operation), slices.Contains(added.Reject, operation)
			if allowed != before[request] {
				changes++
				if !added.matches(segments) || !allows && !rejects {
					t.Fatalf("seed %d: %v changes %s, which it does not match", seed, added, request)
				}
				if allowed != allows {
					t.Fatalf("seed %d: %v makes %s allowed: %t", seed, added, request, allowed)
				}
			}
			if allowed && len(policy) == 0 && !allows {
				t.Fatalf("seed %d: %s is allowed by no rule", seed, request)
			}
		}
		contrary := added
		contrary.Allow, contrary.Reject = nil, everything
		for request, allowed := range decisions(append(more, contrary), paths) {
			segments, _ := split(request[strings.Index(request, "/"):])
			if allowed && added.matches(segments) && !moreSpecific(more, added, segments) {
				t.Fatalf("seed %d: %s is allowed although %v rejects it", seed, request, contrary)
			}
		}
		slices.Reverse(more)
		for request, allowed := range decisions(more, paths) {
			if allowed != after[request] {
				t.Fatalf("seed %d: the order of %v decides %s", seed, more, request)
			}
		}
		wide := append(more, Rule{Path: "/v1/**", Allow: everything})
		for request, allowed := range decisions(wide, []string{"/v1/state/tenants/beta/os-upgrade", "/v1/config/tenants/beta", "/v1/state/tenants/*/strongbox/tokens", "/v1/config/tenants", "/v1/state/system/cluster"}) {
			if allowed {
				t.Fatalf("seed %d: %s is allowed to a policy of acme", seed, request)
			}
		}
	}
	if changes < 200 {
		t.Errorf("the rules change %d decisions: they are not such that it matters", changes)
	}
}

// moreSpecific reports whether there is a rule for a path that is more specific than one.
func moreSpecific(policy []Rule, than Rule, segments []string) bool {
	return slices.ContainsFunc(policy, func(rule Rule) bool {
		return rule.matches(segments) && compare(patternOf(rule), patternOf(than)) > 0
	})
}

// TestUnion checks that of several roles and policies the most permissive one decides,
// as Avassa's page "Policy" has it, and that one that is not there allows nothing.
func TestUnion(t *testing.T) {
	t.Parallel()
	who := Principal{Tenant: "acme", Roles: []Role{"none", "gone", "hosts"}, Policies: map[Role][]Rule{
		"none": {{Path: "/v1/**", Reject: everything}}, "hosts": {{Path: "/v1/state/tenants/*/os-upgrade/hosts/**", Allow: []Operation{Read}}},
	}}
	if err := Decide(who, "GET", "/v1/state/os-upgrade/hosts/h01"); err != nil {
		t.Error(err)
	}
	if err := Decide(who, "GET", "/v1/state/os-upgrade"); err == nil || !strings.Contains(err.Error(), "(none, gone, hosts) does not have the right") {
		t.Error(err)
	}
	who.Roles = append(who.Roles, Viewer)
	if err := Decide(who, "GET", "/v1/state/os-upgrade"); err != nil {
		t.Error(err)
	}
	who = Principal{Tenant: "acme", Roles: []Role{Viewer}, Policies: map[Role][]Rule{Viewer: {{Path: "/v1/**", Allow: everything}}}}
	if err := Decide(who, "DELETE", "/v1/config/os-upgrade"); err == nil {
		t.Error("a policy has the name of a role, and is taken for it")
	}
}

// TestCheckPattern checks which paths a rule may have, and what one without a tenant means.
func TestCheckPattern(t *testing.T) {
	t.Parallel()
	for path, right := range map[string]bool{
		"/v1/**": true, "/**": true, "/v1/config/os-upgrade/calendars/*": true, "/metrics": true, "/v1/*/tenants/*/strongbox/**": true,
		"": false, "v1/config": false, "/v1//config": false, "/v1/**/hosts": false, "/v1/h*": false, "/v1/../config": false, "/v1/config/": false,
		"/v1/%2A": true, "/" + strings.Repeat("a/", 20) + "a": false, "/" + strings.Repeat("a", 400): false,
	} {
		if err := CheckPattern(path); (err == nil) != right {
			t.Errorf("%q: %v", path, err)
		}
	}
	for path, want := range map[string]string{
		"/v1/*/os-upgrade/**":             "/v1/*/os-upgrade/** /v1/*/tenants/*/os-upgrade/**",
		"/v1/config/tenants/*/os-upgrade": "/v1/config/tenants/*/os-upgrade",
		"/v1/**":                          "/v1/**",
		"/v1/state/strongbox/tokens":      "/v1/state/strongbox/tokens /v1/state/tenants/*/strongbox/tokens",
	} {
		var got []string
		for _, rule := range (Rule{Path: path}).InTenant() {
			got = append(got, rule.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s means %v", path, got)
		}
	}
}

// TestPolicy_releases checks that whoever may declare a release need not be able to promote it, and the
// other way round.
func TestPolicy_releases(t *testing.T) {
	t.Parallel()
	const release, environment = "/v1/config/os-upgrade/releases/nov", "/v1/config/os-upgrade/environments/basel"
	write := []Operation{Update, Delete}
	for name, row := range map[string]struct {
		rules    []Rule
		releases bool
	}{
		"declares": {Rule{Path: "/v1/config/os-upgrade/releases/**", Allow: write}.InTenant(), true},
		"promotes": {Rule{Path: "/v1/config/os-upgrade/environments/**", Allow: write}.InTenant(), false},
		"writes all but releases": {append(Rule{Path: "/v1/config/os-upgrade/**", Allow: write}.InTenant(),
			Rule{Path: "/v1/config/os-upgrade/releases/**", Reject: write}.InTenant()...), false},
	} {
		got := decisions(row.rules, []string{release, environment})
		for _, method := range []string{"PUT", "PATCH", "DELETE"} {
			if got[method+" "+release] != row.releases || got[method+" "+environment] == row.releases {
				t.Errorf("%s: %s of the release %v, of the environment %v", name, method, got[method+" "+release], got[method+" "+environment])
			}
		}
	}
}
