package api

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/certificate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/run"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
)

// exceeding sends requests by what somebody has of each role in tenant acme.
type exceeding struct {
	t      *testing.T
	server *httptest.Server
	logins *principal.Logins
	tokens *principal.Tokens
	site   *certtest.Authority
}

func newExceeding(t *testing.T) *exceeding {
	t.Helper()
	e := &exceeding{t: t, site: certtest.NewAuthority(t, "site", time.Now())}
	e.tokens = principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	e.logins = principal.NewLogins(principal.NewUsers(&credentialtest.Memory{}), principal.NewApproles(&credentialtest.Memory{}, &credentialtest.Memory{}), e.tokens)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	err := os.WriteFile(ca, e.site.Cert, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := certificate.LoadAuthorities(ca, "", "", time.Now(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	b := broken{err: errors.Join(run.ErrNotReady, errors.New("nothing works here"))}
	e.server = httptest.NewUnstartedServer(New(Options{
		Site: "test", Tenants: Fixed{"acme": b, "other": b}, Store: b, Tokens: e.tokens, Logins: e.logins, ClientCertificates: clients,
		Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	}))
	server := certtest.Make(t, "server", time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
	pair, err := tls.X509KeyPair(server.Cert, server.Key)
	if err != nil {
		t.Fatal(err)
	}
	e.server.TLS = clients.Ask(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}})
	e.server.StartTLS()
	t.Cleanup(e.server.Close)
	return e
}

// sender sends a request and returns the status of the answer.
type sender func(method, path string) int

func (e *exceeding) send(client *http.Client, token string) sender {
	return func(method, path string) int {
		e.t.Helper()
		r, err := http.NewRequestWithContext(e.t.Context(), method, e.server.URL+path, strings.NewReader("{}"))
		if err != nil {
			e.t.Fatal(err)
		}
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := client.Do(r)
		if err != nil {
			e.t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode
	}
}

// withToken returns who sends requests with a token of a role; empty for none.
func (e *exceeding) withToken(role access.Role) sender {
	e.t.Helper()
	if role == "" {
		return e.send(e.server.Client(), "")
	}
	token, err := e.tokens.Add(principal.Token{Name: "test-" + role, Tenant: "acme", Allow: []access.Role{role}})
	if err != nil {
		e.t.Fatal(err)
	}
	return e.send(e.server.Client(), token)
}

// withCertificate returns who sends requests with the certificate of a user of a role; empty
// for the certificate of nobody.
func (e *exceeding) withCertificate(role access.Role) sender {
	e.t.Helper()
	user := "user-" + role + "x"
	if role != "" {
		if _, err := e.logins.WriteUser(e.t.Context(), principal.User{Tenant: "acme", Name: user, Allow: []access.Role{role}}, "correct horse", nil, time.Now()); err != nil {
			e.t.Fatal(err)
		}
	}
	return e.send(e.client(e.site.User(e.t, "acme", user)), "")
}

// client returns a client that presents a certificate.
func (e *exceeding) client(pairs ...certtest.Pair) *http.Client {
	e.t.Helper()
	transport, ok := e.server.Client().Transport.(*http.Transport)
	if !ok {
		e.t.Fatal("the client has another transport")
	}
	transport = transport.Clone()
	for i, p := range pairs {
		pair, err := tls.X509KeyPair(p.Cert, p.Key)
		if err != nil {
			e.t.Fatal(err)
		}
		if i == 0 {
			transport.TLSClientConfig.Certificates = []tls.Certificate{pair}
		} else { // It comes with the first.
			all := transport.TLSClientConfig.Certificates
			all[0].Certificate = append(all[0].Certificate, pair.Certificate...)
		}
	}
	// A hostile client does not care whom the server would trust.
	if all := transport.TLSClientConfig.Certificates; len(all) > 0 {
		transport.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &all[0], nil }
	}
	e.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// TestRolesAreNotExceeded sends each operation over HTTP with a token of each role, and with
// none: it is refused exactly where testdata/roles.txt does not have the role, for the own
// tenant; and always for another one, with 403. The same is true of the client certificates
// of users with these roles.
func TestRolesAreNotExceeded(t *testing.T) {
	t.Parallel()
	e := newExceeding(t)
	for what, with := range map[string]func(access.Role) sender{"a token": e.withToken, "a certificate": e.withCertificate} {
		for _, role := range append(access.Roles(), "") {
			e.exceed(what, role, with(role))
		}
	}
}

func (e *exceeding) exceed(what string, role access.Role, send sender) {
	e.t.Helper()
	for _, r := range routes() {
		if r.public {
			continue
		}
		may := role != "" && slices.Contains(rolesOf(r), role) && rolesOf(r)[0] != "of all tenants:"
		for _, pattern := range r.paths() {
			own := pathParameter.ReplaceAllString(strings.Replace(pattern, "{tenant}", "acme", 1), "x")
			status := send(r.method, own)
			switch refused := status == http.StatusForbidden; {
			case role == "" && status != http.StatusUnauthorized:
				e.t.Errorf("%s %s without %s is answered %d", r.method, own, what, status)
			case role != "" && refused == may:
				e.t.Errorf("%s %s with %s of %s is answered %d, and testdata/roles.txt says that it may: %t", r.method, own, what, role, status, may)
			}
			if foreign := strings.Replace(own, "/tenants/acme/", "/tenants/other/", 1); role != "" && foreign != own {
				if status := send(r.method, foreign); status != http.StatusForbidden {
					e.t.Errorf("%s %s of another tenant with %s of %s is answered %d", r.method, foreign, what, role, status)
				}
			}
		}
	}
}
