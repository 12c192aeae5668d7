package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
)

// TestRoutes checks that each operation is described, and that none is there twice.
func TestRoutes(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	for _, r := range routes() {
		for _, path := range r.paths() {
			if there[r.method+" "+path] {
				t.Errorf("%s %s is there twice", r.method, path)
			}
			there[r.method+" "+path] = true
		}
		if r.summary == "" || r.group == "" || len(r.returns) == 0 || r.handle == nil {
			t.Errorf("%s %s lacks a summary, a group, what it returns or its handler", r.method, r.path)
		}
		// To read is no change; anything else has an audit record.
		if audited := r.action != "" && r.object != ""; audited != (r.method != http.MethodGet) {
			t.Errorf("%s %s: give a route that changes something the action and the object of its audit record, and no other", r.method, r.path)
		}
		if r.own && !strings.Contains(r.path, ofTenant) {
			t.Errorf("%s %s is of the own tenant, but names none", r.method, r.path)
		}
		for _, p := range r.query {
			if p.about == "" || p.schema == nil {
				t.Errorf("%s %s: parameter %s is not described", r.method, r.path, p.name)
			}
		}
	}
	for _, own := range []string{"GET /v1/state/os-upgrade/hosts", "PUT /v1/config/os-upgrade", "POST /v1/state/os-upgrade/start"} {
		if !there[own] {
			t.Errorf("%s is missing", own)
		}
	}
}

// TestOtherMethods checks OPTIONS, HEAD and 405 (RFC 9110 9.3.2, 9.3.7 and 15.5.6).
func TestOtherMethods(t *testing.T) {
	t.Parallel()
	s := serve(t, &memory{}, access.Reads)
	const path = "/v1/config/tenants/acme/os-upgrade"
	const allow = "GET, HEAD, PUT, PATCH, DELETE, OPTIONS"
	options := s.want("OPTIONS", path, "", http.StatusNoContent, "")
	if options.Get("Allow") != allow || !strings.Contains(options.Get("Accept-Patch"), "application/json") {
		t.Errorf("OPTIONS answers Allow %q and Accept-Patch %q", options.Get("Allow"), options.Get("Accept-Patch"))
	}
	if got := s.want("POST", path, "{}", http.StatusMethodNotAllowed, "use "+allow).Get("Allow"); got != allow {
		t.Errorf("405 has Allow %q", got)
	}
	s.want("OPTIONS", "/v1/config/nothing", "", http.StatusNotFound, "there is nothing at")
	s.want("HEAD", "/healthz", "", http.StatusOK, "")
	s.want("HEAD", "/v1/state/os-upgrade/start", "", http.StatusMethodNotAllowed, "")
}

// ofAllTenants comes before the roles of an operation that only a token of all tenants may
// send.
const ofAllTenants = "of all tenants:"

// rolesOf returns the roles that may send an operation: those of a token of the tenant or,
// if there is none, of a token of all tenants. It panics if the latter may less, which would be a defect of package access.
func rolesOf(r route) []string {
	path := pathParameter.ReplaceAllString(strings.Replace(r.path, "{tenant}", "acme", 1), "x")
	may := func(tenant string) (roles []string) {
		for _, role := range access.Roles() {
			if access.Decide(access.Principal{Tenant: tenant, Roles: []access.Role{role}}, r.method, path) == nil {
				roles = append(roles, role)
			}
		}
		return roles
	}
	one, all := may("acme"), may(access.AnyTenant)
	for _, role := range one {
		if !slices.Contains(all, role) {
			panic(r.method + " " + r.path + ": " + role + " may with a token of the tenant, and not with one of all")
		}
	}
	if len(one) > 0 {
		return one
	}
	return append([]string{ofAllTenants}, all...)
}

// TestRolesOfRoutes shows for each operation the roles that may send it. Whoever adds an
// operation decides here who may; the table is printed with -update, and read.
func TestRolesOfRoutes(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	for _, r := range routes() {
		who := "everybody"
		if !r.public {
			who = strings.Join(rolesOf(r), " ")
		}
		_, _ = fmt.Fprintf(&table, "%-6s %s: %s\n", r.method, r.path, who)
	}
	lines := strings.SplitAfter(table.String(), "\n")
	slices.Sort(lines)
	formattest.Golden(t, "testdata/roles.txt", []byte(strings.Join(lines, "")))
}
