package access

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestCovers tries to give away each role with each other, and checks which can be given.
func TestCovers(t *testing.T) {
	t.Parallel()
	given := map[Role]string{
		Admin: "admin operator approver viewer calendar read write start join", Operator: "operator viewer calendar read",
		Approver: "approver viewer calendar read", Viewer: "viewer calendar read", Calendar: "calendar", Reads: "viewer calendar read",
		Writes: "write", Starts: "start", Joins: "join",
	}
	for _, tenant := range []string{"acme", AnyTenant} {
		for _, has := range Roles() {
			var can []string
			for _, gives := range Roles() {
				err := Covers(Principal{Name: "ann", Tenant: tenant, Roles: []Role{has}}, Principal{Tenant: tenant, Roles: []Role{gives}})
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
	if err := Covers(ann, Principal{Tenant: "acme", Roles: []Role{Writes, Reads}}); err != nil {
		t.Errorf("two roles do not give two: %v", err)
	}
	if err := Covers(ann, Principal{Tenant: "acme", Roles: []Role{Starts}}); err == nil || !strings.Contains(err.Error(), `"ann" cannot give a right that it does not have: to execute /v1/state/tenants/acme/os-upgrade/`) {
		t.Errorf("a role beyond its own: %v", err)
	}
	for _, tenant := range []string{"beta", AnyTenant} {
		if _, foreign := errors.AsType[*ForeignError](Covers(ann, Principal{Tenant: tenant, Roles: []Role{Reads}})); !foreign {
			t.Errorf("a principal of acme lets somebody in to %s", tenant)
		}
	}
	if err := Covers(Principal{Tenant: AnyTenant, Roles: []Role{Viewer}}, Principal{Tenant: "acme", Roles: []Role{Viewer}}); err != nil {
		t.Errorf("one of all tenants gives the right to one: %v", err)
	}
}

// randomPattern returns a pattern at random; wild ones may end with "**".
func randomPattern(r *rand.Rand, wild bool) string {
	var text strings.Builder
	text.WriteString("/v1/state/tenants/acme/os-upgrade")
	for range r.IntN(3) {
		text.WriteString("/" + []string{"a", "b", "*"}[r.IntN(3)])
	}
	if wild && r.IntN(2) == 0 {
		text.WriteString("/**")
	}
	return text.String()
}

func randomRules(r *rand.Rand) (set []Rule) {
	for range 1 + r.IntN(3) {
		rule := Rule{Path: randomPattern(r, true)}
		if r.IntN(3) == 0 {
			rule.Reject = []Operation{Read}
		} else {
			rule.Allow = []Operation{Read}
		}
		set = append(set, rule)
	}
	return set
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

// TestCoversIsRight compares the answer with the decision on each path, for rules at random.
func TestCoversIsRight(t *testing.T) {
	t.Parallel()
	paths := allPaths("/v1/state/tenants/acme/os-upgrade", 4)
	covered := 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test
		who, other := randomRules(r), randomRules(r)
		var exceeds []string
		for _, path := range paths {
			segments, _ := split(path)
			if allows(other, Read, segments) && !allows(who, Read, segments) {
				exceeds = append(exceeds, path)
			}
		}
		err := Covers(
			Principal{Tenant: "acme", Roles: []Role{"w"}, Policies: map[Role][]Rule{"w": who}},
			Principal{Tenant: "acme", Roles: []Role{"o"}, Policies: map[Role][]Rule{"o": other}},
		)
		if (err == nil) != (len(exceeds) == 0) {
			t.Fatalf("seed %d: %v gives %v: %v; it exceeds at %v", seed, who, other, err, exceeds)
		}
		if err == nil {
			covered++
		} else if e, ok := errors.AsType[*ExceedsError](err); !ok || !slices.Contains(exceeds, strings.ReplaceAll(e.Path, "*", "x")) {
			t.Fatalf("seed %d: %v; it exceeds at %v", seed, err, exceeds)
		}
	}
	if covered < 100 || covered > 900 {
		t.Errorf("%d of 1000 are covered: the rules are not such that it matters", covered)
	}
}

// TestCoversEnds checks that rules which would take for ever are refused.
func TestCoversEnds(t *testing.T) {
	t.Parallel()
	var hostile []Rule
	for i := range 60 {
		path := "/v1/state"
		for j := range 12 {
			if (i>>(j%6))&1 == 0 {
				path += "/*"
			} else {
				path += fmt.Sprintf("/n%d", (i*7+j)%13)
			}
		}
		hostile = append(hostile, Rule{Path: path, Allow: everything})
	}
	who := Principal{Name: "ann", Tenant: AnyTenant, Roles: []Role{"h"}, Policies: map[Role][]Rule{"h": hostile}}
	if _, refused := errors.AsType[*ComplexError](Covers(who, who)); !refused {
		t.Error("it is compared to the end")
	}
}
