// Package realagent runs the real agent for tests of the provider. It is not part
// of package acctest, so that tests against the fake API do not import the agent.
package realagent

import (
	"log/slog"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// Start starts the agent for one test, with simulated hosts that upgrade without
// delay, and returns its folder. The first host is DIR/hosts/h01.
func Start(t testing.TB, hosts int) (acctest.Server, string) {
	t.Helper()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Tenant: acctest.Tenant, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return acctest.Server{Endpoint: d.Endpoint, Token: d.Token, Tenant: d.Tenant}, dir
}

// Site is a running site without hosts, whose token is for all of its tenants.
type Site struct {
	acctest.Server
	// Logins are the users and approles.
	Logins *principal.Logins
	tokens *principal.Tokens
}

// StartSite starts a site for one test. The server's tenant is the first one.
func StartSite(t testing.TB, tenants ...string) Site {
	t.Helper()
	dir := t.TempDir()
	s, err := site.Open(t.Context(), site.Options{
		Name: "test", Zone: time.UTC, Dir: dir, Tenants: tenants, API: site.Endpoint{Listen: "127.0.0.1:0"},
		Holder: "a test of the provider", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	logins, err := site.OpenLogins(dir)
	if err != nil {
		t.Fatal(err)
	}
	running := Site{acctest.Server{Endpoint: "http://" + s.Address(), Tenant: tenants[0]}, logins, s.Tokens()}
	running.Token = running.TokenOf(t, access.AnyTenant, access.Admin)
	return running
}

// TokenOf returns a token of a tenant with one role.
func (s Site) TokenOf(t testing.TB, tenant string, role access.Role) string {
	t.Helper()
	token, err := s.tokens.Add(principal.Token{Name: role, Tenant: tenant, Allow: []access.Role{role}})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// Secret makes an approle of a tenant with a secret-id that is good for so many logins; 0 is
// for any number.
func (s Site) Secret(t testing.TB, tenant, name string, uses int, roles ...access.Role) (roleID, secretID string) {
	t.Helper()
	role, err := s.Logins.Approles.Put(tenant, name, roles, time.Now())
	if err == nil {
		secretID, err = s.Logins.Approles.AddSecret(role, uses, time.Hour, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	return role.RoleID, secretID
}
