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
	tokens *principal.Tokens
}

// StartSite starts a site for one test. The server's tenant is the first one.
func StartSite(t testing.TB, tenants ...string) Site {
	t.Helper()
	s, err := site.Open(t.Context(), site.Options{
		Name: "test", Zone: time.UTC, Dir: t.TempDir(), Tenants: tenants, API: site.Endpoint{Listen: "127.0.0.1:0"},
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
	running := Site{acctest.Server{Endpoint: "http://" + s.Address(), Tenant: tenants[0]}, s.Tokens()}
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
