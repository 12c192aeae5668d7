package access

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestDecide checks the decision, row by row: who, what, and the reason why not; empty
// means that it is allowed.
func TestDecide(t *testing.T) { //nolint:funlen // a table
	t.Parallel()
	const config, state = "/v1/config/tenants/acme/os-upgrade", "/v1/state/tenants/acme/os-upgrade"
	for name, row := range map[string]struct {
		tenant, roles, method, path, why string
	}{
		"no role":                              {"acme", "", "GET", state, "(no role) does not have the right to read this; use a token with admin or operator or approver or viewer or read"},
		"a role that there is not":             {"acme", "root", "GET", state, "(root) does not have the right"},
		"viewer reads the state":               {"acme", "viewer", "GET", state, ""},
		"viewer reads the state, its own":      {"acme", "viewer", "GET", "/v1/state/os-upgrade/runs/7", ""},
		"viewer reads the head":                {"acme", "viewer", "HEAD", state + "/runs", ""},
		"viewer reads a calendar":              {"acme", "viewer", "GET", config + "/calendars/holidays", ""},
		"viewer writes":                        {"acme", "viewer", "PUT", config, "does not have the right to update this; use a token with admin or write"},
		"viewer starts":                        {"acme", "viewer", "POST", state + "/start", "to execute this; use a token with admin or operator or start"},
		"viewer deletes a host":                {"acme", "viewer", "DELETE", state + "/hosts/h01", "to delete this; use a token with admin or write"},
		"viewer reads join tokens":             {"acme", "viewer", "GET", state + "/join-tokens", "use a token with admin or join"},
		"viewer reads one of the join tokens":  {"acme", "viewer", "GET", state + "/join-tokens/1", "does not have the right"},
		"viewer reads tokens":                  {"acme", "viewer", "GET", "/v1/state/strongbox/tokens", "use a token with admin"},
		"viewer reads of another tenant":       {"acme", "viewer", "GET", "/v1/state/tenants/beta/os-upgrade", `is not valid for tenant "beta"`},
		"viewer of the site":                   {"acme", "viewer", "GET", "/v1/state/system/cluster", "belongs to the whole site"},
		"operator starts":                      {"acme", "operator", "POST", state + "/start", ""},
		"operator pauses its own":              {"acme", "operator", "POST", "/v1/state/os-upgrade/pause", ""},
		"operator resumes":                     {"acme", "operator", "POST", state + "/resume", ""},
		"operator aborts":                      {"acme", "operator", "POST", state + "/abort", ""},
		"operator approves":                    {"acme", "operator", "POST", state + "/approve", "use a token with admin or approver or start"},
		"operator releases":                    {"acme", "operator", "POST", state + "/release", ""},
		"operator writes":                      {"acme", "operator", "PATCH", config + "/rollout", "to update this"},
		"operator makes a token":               {"acme", "operator", "POST", "/v1/state/strongbox/tokens", "use a token with admin"},
		"operator makes a join token":          {"acme", "operator", "POST", state + "/join-tokens", "use a token with admin or join"},
		"operator and approver approves":       {"acme", "operator,approver", "POST", state + "/approve", ""},
		"approver approves":                    {"acme", "approver", "POST", state + "/approve", ""},
		"approver reads":                       {"acme", "approver", "GET", state + "/runs", ""},
		"approver starts":                      {"acme", "approver", "POST", state + "/start", "(approver) does not have the right"},
		"approver of another tenant":           {"acme", "approver", "POST", "/v1/state/tenants/beta/os-upgrade/approve", "is not valid for tenant"},
		"calendar reads the feed":              {"acme", "calendar", "GET", state + "/windows.ics", ""},
		"calendar reads the windows":           {"acme", "calendar", "GET", state + "/windows", "does not have the right"},
		"calendar reads the state":             {"acme", "calendar", "GET", state, "does not have the right"},
		"calendar writes the feed":             {"acme", "calendar", "POST", state + "/windows.ics", "use a token with admin"},
		"calendar reads the feed of others":    {"acme", "calendar", "GET", "/v1/state/tenants/beta/os-upgrade/windows.ics", "is not valid for tenant"},
		"viewer reads metrics":                 {"acme", "viewer", "GET", "/metrics", ""},
		"viewer of all reads metrics":          {"*", "viewer", "GET", "/metrics", ""},
		"admin reads metrics":                  {"acme", "admin", "GET", "/metrics", ""},
		"calendar reads metrics":               {"acme", "calendar", "GET", "/metrics", "does not have the right"},
		"write reads metrics":                  {"acme", "write", "GET", "/metrics", "does not have the right"},
		"anybody asks which tenants it sees":   {"acme", "", "GET", "/v1/state/status", ""},
		"any of all asks which it sees":        {"*", "viewer", "GET", "/v1/state/status", ""},
		"viewer posts a status":                {"acme", "viewer", "POST", "/v1/state/status", "does not have the right"},
		"viewer reads below the status":        {"acme", "viewer", "GET", "/v1/state/status/acme", "belongs to the whole site"},
		"viewer posts metrics":                 {"acme", "viewer", "POST", "/metrics", "does not have the right"},
		"calendar extends its token":           {"acme", "calendar", "POST", "/v1/state/strongbox/token/refresh", "does not have the right"},
		"calendar changes its password":        {"acme", "calendar", "POST", "/v1/state/strongbox/password", ""},
		"no role changes its password":         {"acme", "", "POST", "/v1/state/strongbox/password", ""},
		"any of all changes its password":      {"*", "viewer", "POST", "/v1/state/strongbox/password", ""},
		"no role reads a password":             {"acme", "", "GET", "/v1/state/strongbox/password", "does not have the right"},
		"a password below its own":             {"acme", "viewer", "POST", "/v1/state/strongbox/password/bob", "does not have the right"},
		"read is viewer":                       {"acme", "read", "GET", config, ""},
		"read starts":                          {"acme", "read", "POST", state + "/start", "does not have the right"},
		"write writes":                         {"acme", "write", "PUT", config + "/rollout", ""},
		"write deletes a calendar":             {"acme", "write", "DELETE", config + "/calendars/x", ""},
		"write deletes a host":                 {"acme", "write", "DELETE", state + "/hosts/h01", ""},
		"write deletes a join token":           {"acme", "write", "DELETE", state + "/join-tokens/1", "does not have the right"},
		"write reads":                          {"acme", "write", "GET", config, "does not have the right to read this"},
		"write starts":                         {"acme", "write", "POST", state + "/start", "does not have the right"},
		"write makes a token":                  {"acme", "write", "POST", "/v1/state/strongbox/tokens", "does not have the right"},
		"start aborts":                         {"acme", "start", "POST", state + "/abort", ""},
		"start releases":                       {"acme", "start", "POST", state + "/release", ""},
		"start reads":                          {"acme", "start", "GET", state, "does not have the right"},
		"start writes":                         {"acme", "start", "PUT", config, "does not have the right"},
		"join makes join tokens":               {"acme", "join", "POST", state + "/join-tokens", ""},
		"join lists join tokens":               {"acme", "join", "GET", "/v1/state/os-upgrade/join-tokens", ""},
		"join reads":                           {"acme", "join", "GET", state, "does not have the right"},
		"join makes tokens":                    {"acme", "join", "POST", "/v1/state/strongbox/tokens", "does not have the right"},
		"admin makes tokens":                   {"acme", "admin", "POST", "/v1/state/strongbox/tokens", ""},
		"admin makes tokens by the long path":  {"acme", "admin", "POST", "/v1/state/tenants/acme/strongbox/tokens", ""},
		"admin writes":                         {"acme", "admin", "DELETE", config, ""},
		"admin makes tokens of another tenant": {"acme", "admin", "POST", "/v1/state/tenants/beta/strongbox/tokens", `is not valid for tenant "beta"`},
		"admin makes tokens of all tenants":    {"acme", "admin", "POST", "/v1/state/tenants/*/strongbox/tokens", `is not valid for tenant "*"`},
		"admin of a tenant, and the site":      {"acme", "admin", "GET", "/v1/state/system/cluster", "belongs to the whole site"},
		"admin of all, and the site":           {"*", "admin", "GET", "/v1/state/system/cluster", ""},
		"admin of all makes tokens of all":     {"*", "admin", "POST", "/v1/state/strongbox/tokens", ""},
		"admin of all makes tokens of one":     {"*", "admin", "POST", "/v1/state/tenants/beta/strongbox/tokens", ""},
		"admin of all without a tenant":        {"*", "admin", "GET", "/v1/state/os-upgrade", "the path must name one"},
		"admin reads the audit log":            {"acme", "admin", "GET", "/v1/state/tenants/acme/audit", ""},
		"admin reads its own audit log":        {"acme", "admin", "GET", "/v1/state/audit", ""},
		"admin reads the audit log of others":  {"acme", "admin", "GET", "/v1/state/tenants/beta/audit", "is not valid for tenant"},
		"admin reads the audit log of all":     {"acme", "admin", "GET", "/v1/state/tenants/*/audit", `is not valid for tenant "*"`},
		"admin of all reads that":              {"*", "admin", "GET", "/v1/state/tenants/*/audit", ""},
		"viewer reads the audit log":           {"acme", "viewer", "GET", "/v1/state/audit", "use a token with admin"},
		"viewer of all reads the audit log":    {"*", "viewer", "GET", "/v1/state/tenants/*/audit", "use a token with admin"},
		"write reads the audit log":            {"acme", "write", "GET", "/v1/state/audit", "use a token with admin"},
		"admin of all and a tenant named *":    {"*", "admin", "GET", "/v1/state/tenants/*/os-upgrade", "the path must name one"},
		"viewer of all reads one":              {"*", "viewer", "GET", state, ""},
		"admin reads its tenant":               {"acme", "admin", "GET", "/v1/config/tenants/acme", "belongs to the whole site"},
		"admin removes its tenant":             {"acme", "admin", "DELETE", "/v1/config/tenants/acme", "belongs to the whole site"},
		"admin makes a tenant":                 {"acme", "admin", "POST", "/v1/config/tenants", "belongs to the whole site"},
		"admin of all makes a tenant":          {"*", "admin", "POST", "/v1/config/tenants", ""},
		"admin of all removes a tenant":        {"*", "admin", "DELETE", "/v1/config/tenants/acme", ""},
		"viewer of all reads a tenant":         {"*", "viewer", "GET", "/v1/state/tenants/acme", ""},
		"viewer of all makes a tenant":         {"*", "viewer", "PUT", "/v1/config/tenants/acme", "to update this; use a token with admin"},
		"write of all makes a tenant":          {"*", "write", "PUT", "/v1/config/tenants/acme", "to update this; use a token with admin"},
		"viewer of all, and the site":          {"*", "viewer", "GET", "/v1/state/system/cluster", "does not have the right"},
		"viewer of all extends its token":      {"*", "viewer", "POST", "/v1/state/strongbox/token/refresh", ""},
		"a slash in a segment":                 {"acme", "write", "DELETE", "/v1/state/tenants/acme%2Fx/os-upgrade/hosts/h", `is not valid for tenant "acme/x"`},
		"a slash that would be two segments":   {"acme", "write", "DELETE", state + "/hosts%2Fh01", "does not have the right"},
		"an escaped parent":                    {"acme", "calendar", "GET", state + "/x/%2E%2E/windows.ics", "does not have the right"},
		"a parent":                             {"acme", "admin", "GET", "/v1/state/tenants/acme/../beta/os-upgrade", "no role has"},
		"an empty segment":                     {"acme", "admin", "GET", "/v1/state//os-upgrade", "no role has"},
		"no path":                              {"*", "admin", "GET", "", "no role has"},
		"outside of the API":                   {"*", "admin", "GET", "/other", "no role has"},
		"a method that there is not":           {"acme", "viewer", "BREW", state, "to execute this"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			who := Principal{Name: "ann", Tenant: row.tenant}
			if row.roles != "" {
				who.Roles = strings.Split(row.roles, ",")
			}
			err := Decide(who, row.method, row.path)
			if (err == nil) != (row.why == "") || err != nil && !strings.Contains(err.Error(), row.why) {
				t.Errorf("the decision is %v, want %q", err, row.why)
			}
		})
	}
}

// TestForeign checks that the answer about another tenant does not depend on what is
// asked for there, nor on the roles: nothing of it can be guessed.
func TestForeign(t *testing.T) {
	t.Parallel()
	for _, role := range Roles() {
		for _, method := range []string{"GET", "PUT", "POST", "DELETE", "PATCH"} {
			for _, path := range []string{"/os-upgrade", "/os-upgrade/runs/1", "/strongbox/tokens", "/nothing"} {
				err := Decide(Principal{Name: "ann", Tenant: "acme", Roles: []Role{role}}, method, "/v1/state/tenants/beta"+path)
				if foreign, ok := errors.AsType[*ForeignError](err); !ok || foreign.Tenant != "beta" {
					t.Errorf("%s of %s with %s: %v", method, path, role, err)
				}
			}
		}
	}
}

// TestAllows checks which rule decides: the most specific one that says something of the
// operation, and if there are two of the same path the one that rejects.
func TestAllows(t *testing.T) {
	t.Parallel()
	read, execute := []Operation{Read}, []Operation{Execute}
	for name, row := range map[string]struct {
		rules []Rule
		path  string
		want  bool
	}{
		"none":                          {nil, "/a", false},
		"the very path":                 {[]Rule{{Path: "/a/b", Allow: read}}, "/a/b", true},
		"a longer path":                 {[]Rule{{Path: "/a", Allow: read}}, "/a/b", false},
		"a shorter path":                {[]Rule{{Path: "/a/b", Allow: read}}, "/a", false},
		"another operation":             {[]Rule{{Path: "/a", Allow: execute}}, "/a", false},
		"one segment":                   {[]Rule{{Path: "/a/*", Allow: read}}, "/a/b", true},
		"one segment, not two":          {[]Rule{{Path: "/a/*", Allow: read}}, "/a/b/c", false},
		"one segment, not none":         {[]Rule{{Path: "/a/*", Allow: read}}, "/a", false},
		"within a segment":              {[]Rule{{Path: "/a/b*", Allow: read}}, "/a/bc", false},
		"any number":                    {[]Rule{{Path: "/a/**", Allow: read}}, "/a/b/c", true},
		"any number, also none":         {[]Rule{{Path: "/a/**", Allow: read}}, "/a", true},
		"a rejection below":             {[]Rule{{Path: "/a/**", Allow: read}, {Path: "/a/b/**", Reject: read}}, "/a/b/c", false},
		"beside the rejection":          {[]Rule{{Path: "/a/**", Allow: read}, {Path: "/a/b/**", Reject: read}}, "/a/c", true},
		"a permission below":            {[]Rule{{Path: "/a/b", Allow: read}, {Path: "/a/**", Reject: read}}, "/a/b", true},
		"a name before any":             {[]Rule{{Path: "/a/*", Reject: read}, {Path: "/a/b", Allow: read}}, "/a/b", true},
		"any before any number":         {[]Rule{{Path: "/a/**", Allow: read}, {Path: "/a/*", Reject: read}}, "/a/b", false},
		"the first difference counts":   {[]Rule{{Path: "/*/b/c", Allow: read}, {Path: "/a/**", Reject: read}}, "/a/b/c", false},
		"both of one path":              {[]Rule{{Path: "/a", Allow: read}, {Path: "/a", Reject: read}}, "/a", false},
		"both of one path, in reverse":  {[]Rule{{Path: "/a", Reject: read}, {Path: "/a", Allow: read}}, "/a", false},
		"a specific one that is silent": {[]Rule{{Path: "/a/**", Allow: read}, {Path: "/a/b", Reject: execute}}, "/a/b", true},
	} {
		segments, _ := split(row.path)
		if got := allows(row.rules, Read, segments); got != row.want {
			t.Errorf("%s: %t", name, got)
		}
		reversed := slices.Clone(row.rules)
		slices.Reverse(reversed)
		if got := allows(reversed, Read, segments); got != row.want {
			t.Errorf("%s, in reverse: %t", name, got)
		}
	}
}

// TestRoles checks that each role has rules, and no rules are of none.
func TestRoles(t *testing.T) {
	t.Parallel()
	for _, role := range Roles() {
		if len(rules[role]) == 0 {
			t.Errorf("role %s has no rules", role)
		}
	}
	if len(rules) != len(Roles()) || IsRole("root") {
		t.Errorf("there are rules of %d roles, and %d roles", len(rules), len(Roles()))
	}
}

// FuzzDecide checks that no path gets a token beyond its tenant: the tenant that the
// handlers serve is the one that was decided on.
func FuzzDecide(f *testing.F) {
	for _, path := range []string{"/v1/state/tenants/acme/os-upgrade", "/v1/config/os-upgrade/x", "/v1/state/tenants/%61cme/strongbox", "/v1/state/strongbox/token/refresh", "//", "/v1/state/tenants/acme%2f..%2fbeta/os-upgrade"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		who := Principal{Name: "ann", Tenant: "acme", Roles: []Role{Admin}}
		if Decide(who, "GET", path) != nil {
			return
		}
		segments, _ := split(path)
		if tenant := Tenant(path, who.Tenant); tenant != who.Tenant && !ofCaller(segments) {
			t.Errorf("%q is allowed, of tenant %q", path, tenant)
		}
	})
}
