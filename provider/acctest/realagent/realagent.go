// Package realagent runs the real agent for tests of the provider. It is not part
// of package acctest, so that tests against the fake API do not import the agent.
package realagent

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/dial"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// Start starts the agent for one test, with simulated hosts that upgrade without
// delay, and returns its folder. The first host is DIR/hosts/h01.
func Start(t testing.TB, hosts int) (acctest.Server, string) {
	t.Helper()
	return start(t, dev.Options{Hosts: hosts})
}

// StartLabelled is Start with hosts that have labels, by the names of the hosts.
func StartLabelled(t testing.TB, hosts int, labels map[string]map[string]string) (acctest.Server, string) {
	t.Helper()
	return start(t, dev.Options{Hosts: hosts, Labels: labels})
}

func start(t testing.TB, o dev.Options) (acctest.Server, string) {
	t.Helper()
	dir := t.TempDir()
	o.Dir, o.Tenant = dir, acctest.Tenant
	d, err := dev.Start(t.Context(), o)
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
	// CACertPEM is the certificate to trust; empty without TLS.
	CACertPEM []byte
	tokens    *principal.Tokens
}

// StartSite starts a site for one test. The server's tenant is the first one.
func StartSite(t testing.TB, tenants ...string) Site {
	t.Helper()
	return startSite(t, site.Options{Tenants: tenants})
}

// StartLocalSite is StartSite with connections to any address of this machine, such as those
// to a receiver of a test.
func StartLocalSite(t testing.TB, tenants ...string) Site {
	t.Helper()
	local, err := dial.Parse([]string{dial.Any})
	if err != nil {
		t.Fatal(err)
	}
	return startSite(t, site.Options{Tenants: tenants, Local: local})
}

// StartTLSSite is StartSite with TLS, for clients with certificates of an authority.
func StartTLSSite(t testing.TB, clients *certtest.Authority, tenants ...string) Site {
	t.Helper()
	dir, server := t.TempDir(), certtest.Make(t, "site", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	cert, key, ca := filepath.Join(dir, "site.pem"), filepath.Join(dir, "site.key"), filepath.Join(dir, "client-ca.pem")
	server.Write(t, cert, key)
	if err := os.WriteFile(ca, clients.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	s := startSite(t, site.Options{Tenants: tenants, API: site.Endpoint{CertFile: cert, KeyFile: key}, ClientCAFile: ca})
	s.Endpoint, s.CACertPEM = strings.Replace(s.Endpoint, "http:", "https:", 1), server.Cert
	return s
}

func startSite(t testing.TB, o site.Options) Site {
	t.Helper()
	dir := t.TempDir()
	o.Name, o.Zone, o.Dir, o.API.Listen, o.Holder, o.Log = "test", time.UTC, dir, "127.0.0.1:0", "a test of the provider", slog.New(slog.DiscardHandler)
	s, err := site.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	running := Site{Server: acctest.Server{Endpoint: "http://" + s.Address(), Tenant: o.Tenants[0]}, Logins: s.Logins, tokens: s.Tokens}
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

// Count returns how many tokens there are, those of logins too.
func (s Site) Count(t testing.TB) int {
	t.Helper()
	all, err := s.tokens.List()
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Secret makes an approle of a tenant with a secret-id that is good for so many logins; 0 is
// for any number.
func (s Site) Secret(t testing.TB, tenant, name string, uses int, roles ...access.Role) (roleID, secretID string) {
	t.Helper()
	role, err := s.Logins.Approles.Write(principal.Approle{Tenant: tenant, Name: name, Allow: roles}, nil, time.Now())
	if err == nil {
		secretID, err = s.Logins.Approles.AddSecret(role, uses, time.Hour, time.Now())
	}
	if err != nil {
		t.Fatal(err)
	}
	return role.RoleID, secretID
}
