package api

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
)

const stateOfAcme = "/v1/state/tenants/acme/os-upgrade"

// user makes or changes user ann of acme.
func (e *exceeding) user(allow ...access.Role) {
	e.t.Helper()
	if _, err := e.logins.WriteUser(e.t.Context(), principal.User{Tenant: "acme", Name: "ann", Allow: allow}, "correct horse", nil, time.Now()); err != nil {
		e.t.Fatal(err)
	}
}

// want sends a request and checks the status of the answer and a part of it. headers are
// pairs of name and value.
func (e *exceeding) want(what string, client *http.Client, method, path string, status int, part string, headers ...string) {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, e.server.URL+path, strings.NewReader("{}"))
	if err != nil {
		e.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := client.Do(r)
	if err != nil {
		e.t.Fatalf("%s: %v", what, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		e.t.Fatal(err)
	}
	if response.StatusCode != status || !strings.Contains(string(body), part) {
		e.t.Errorf("%s: answered %d %s; want %d with %q", what, response.StatusCode, body, status, part)
	}
}

// TestCertificate checks whom a client certificate stands for: the user that it names, as this
// is now, also on a connection that is open.
func TestCertificate(t *testing.T) {
	t.Parallel()
	e := newExceeding(t)
	ann := e.client(e.site.User(t, "acme", "ann"))
	e.want("before the user is made", ann, "GET", stateOfAcme, 401, `user \"ann\" of tenant \"acme\", and this site has no such user`)
	e.user(access.Viewer)
	e.want("a viewer", ann, "GET", stateOfAcme, 503, "")
	e.want("a viewer", ann, "POST", stateOfAcme+"/start", 403, `user \"ann\" (viewer) does not have the right to execute this`)
	e.want("a viewer of another tenant", ann, "GET", "/v1/state/tenants/other/os-upgrade", 403, `user \"ann\" is not valid for tenant \"other\"`)
	e.want("a viewer lets somebody in", ann, "POST", "/v1/config/tenants/acme/strongbox/authentication/userpass", 403, `user \"ann\" (viewer) does not have the right`)
	e.user(access.Operator)
	e.want("an operator", ann, "POST", stateOfAcme+"/start", 503, "")
	e.want("the life of a token", ann, "POST", refreshPath, 401, "the request has no token")
	// Renamed: the name of before means nothing any more.
	_, err := e.logins.WriteUser(t.Context(), principal.User{Tenant: "acme", Name: "anna", Allow: []access.Role{access.Operator}}, "correct horse", nil, time.Now())
	if err = errors.Join(err, e.logins.RemoveUser(principal.KeyOf("acme", "ann"), nil)); err != nil {
		t.Fatal(err)
	}
	e.want("a removed user", ann, "GET", stateOfAcme, 401, "no such user")
	e.want("the user by its new name", e.client(e.site.User(t, "acme", "anna")), "GET", stateOfAcme, 503, "")
}

// TestBadCertificates checks that no other certificate stands for a user, that the answer says
// why, and that who has such a one does as those who have none do.
func TestBadCertificates(t *testing.T) {
	t.Parallel()
	e := newExceeding(t)
	e.user(access.Admin)
	token, err := e.tokens.Add(principal.Token{Name: "test", Tenant: "acme", Allow: []access.Role{access.Viewer}})
	if err != nil {
		t.Fatal(err)
	}
	subject := pkix.Name{CommonName: "ann", Organization: []string{"acme"}}
	forged := certtest.NewAuthority(t, "site", time.Now())
	user, signed := e.site.Signer(t, "acme", "mallory")
	long := []certtest.Pair{e.site.User(t, "acme", "ann")}
	for range 5 {
		long = append(long, e.site.Pair)
	}
	for what, c := range map[string]struct {
		chain []certtest.Pair
		want  string
	}{
		"of a forged authority":         {[]certtest.Pair{forged.User(t, "acme", "ann"), forged.Pair}, "no authority that this site trusts for users"},
		"signed by a user":              {[]certtest.Pair{signed, user}, "the client certificate"},
		"of a host or a server":         {[]certtest.Pair{e.site.Sign(t, x509.Certificate{Subject: subject, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})}, "lacks the extended key usage clientAuth"},
		"of a host, for clients":        {[]certtest.Pair{e.site.User(t, "acme", "h01")}, "no such user"},
		"of the authority":              {[]certtest.Pair{e.site.Pair}, "is that of an authority"},
		"that has expired":              {[]certtest.Pair{e.site.Sign(t, x509.Certificate{Subject: subject, NotAfter: time.Now().Add(-time.Hour)})}, "expired on"},
		"that is not valid yet":         {[]certtest.Pair{e.site.Sign(t, x509.Certificate{Subject: subject, NotBefore: time.Now().Add(time.Hour)})}, "is not valid before"},
		"with a long chain":             {long, "comes with 5 further ones"},
		"of a user of another tenant":   {[]certtest.Pair{e.site.User(t, "other", "ann")}, "no such user"},
		"of a user of all tenants":      {[]certtest.Pair{e.site.User(t, "*", "ann")}, "no such user"},
		"that does not name the tenant": {[]certtest.Pair{e.site.Sign(t, x509.Certificate{Subject: pkix.Name{CommonName: "ann"}})}, "it needs one, the tenant of the user"},
	} {
		client := e.client(c.chain...)
		e.want(what, client, "GET", stateOfAcme, 401, c.want)
		e.want(what, client, "GET", "/metrics", 401, c.want)
		e.want(what+", with a token", client, "GET", stateOfAcme, 503, "", "Authorization", "Bearer "+token)
		e.want(what+", health", client, "GET", "/healthz", 200, "")
		e.want(what+", login", client, "POST", "/v1/login", 400, "username")
	}
	e.want("none", e.server.Client(), "GET", stateOfAcme, 401, "has neither a token nor a client certificate; send Authorization: Bearer TOKEN, or a certificate of one of the authorities")
}

// TestTokenDecides checks that a request with a token and a client certificate is that of the
// token, also when the token is not good, whatever the certificate allows.
func TestTokenDecides(t *testing.T) {
	t.Parallel()
	e := newExceeding(t)
	e.user(access.Admin)
	ann := e.client(e.site.User(t, "acme", "ann"))
	token := func(tenant string, allow ...access.Role) string {
		text, err := e.tokens.Add(principal.Token{Name: "bob", Tenant: tenant, Allow: allow})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	feed := token("acme", access.Calendar)
	bearer := func(text string) []string { return []string{"Authorization", "Bearer " + text} }
	start := stateOfAcme + "/start"
	e.want("the certificate alone", ann, "POST", start, 503, "")
	e.want("the token of a viewer", ann, "POST", start, 403, `token \"bob\" (viewer)`, bearer(token("acme", access.Viewer))...)
	e.want("a token of another tenant", ann, "GET", stateOfAcme, 403, `token \"bob\" is not valid for tenant`, bearer(token("other", access.Admin))...)
	e.want("a wrong token", ann, "GET", stateOfAcme, 401, "the token is unknown", bearer("osu_wrong")...)
	e.want("an empty token", ann, "GET", stateOfAcme, 401, "", "Authorization", "Bearer ")
	e.want("another scheme", ann, "GET", stateOfAcme, 401, "", "Authorization", "Basic YW5uOng=")
	e.want("a strong token in the URL", ann, "GET", stateOfAcme+"/windows.ics?token="+token("acme", access.Viewer), 401, "a token in a URL may have the role calendar alone")
	e.want("a wrong token in the URL", ann, "GET", stateOfAcme+"/windows.ics?token=osu_wrong", 401, "the token is unknown")
	e.want("a token in the URL", ann, "GET", stateOfAcme+"/windows.ics?token="+feed, 503, "")
}

// TestCertificateOfBrowser checks that a page of another site changes nothing with the client
// certificate that a browser sends with its requests, and that the browser's user can.
func TestCertificateOfBrowser(t *testing.T) {
	t.Parallel()
	e := newExceeding(t)
	e.user(access.Admin)
	ann, start := e.client(e.site.User(t, "acme", "ann")), stateOfAcme+"/start"
	const why = "a page of another site has sent this request"
	e.want("another site", ann, "POST", start, 403, why, "Sec-Fetch-Site", "cross-site")
	e.want("another machine of the domain", ann, "POST", start, 403, why, "Sec-Fetch-Site", "same-site")
	e.want("another site, of an old browser", ann, "POST", start, 403, why, "Origin", "https://evil.example")
	e.want("a form of another site", ann, "POST", start, 403, why, "Origin", "null", "Content-Type", "text/plain")
	e.want("another site deletes", ann, "DELETE", "/v1/config/tenants/acme/os-upgrade", 403, why, "Sec-Fetch-Site", "cross-site")
	e.want("the site itself", ann, "POST", start, 503, "", "Sec-Fetch-Site", "same-origin", "Origin", e.server.URL)
	e.want("typed by the user", ann, "GET", stateOfAcme, 503, "", "Sec-Fetch-Site", "none")
	e.want("a link of another site", ann, "GET", stateOfAcme, 503, "", "Sec-Fetch-Site", "cross-site")
	token, err := e.tokens.Add(principal.Token{Name: "bob", Tenant: "acme", Allow: []access.Role{access.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	e.want("another site with a token of its own", ann, "POST", start, 503, "", "Sec-Fetch-Site", "cross-site", "Authorization", "Bearer "+token)
}

// TestHugeChain checks that a connection whose certificates are huge ends in the handshake,
// and costs others nothing.
func TestHugeChain(t *testing.T) {
	t.Parallel()
	e := newExceeding(t)
	e.user(access.Viewer)
	huge := e.site.Sign(t, x509.Certificate{Subject: pkix.Name{CommonName: "ann", Organization: []string{"acme"}}, ExtraExtensions: []pkix.Extension{
		{Id: []int{1, 2, 3, 4}, Value: make([]byte, 17<<10)},
	}})
	many := []certtest.Pair{e.site.User(t, "acme", "ann")}
	for range 100 {
		many = append(many, e.site.Pair)
	}
	for what, chain := range map[string][]certtest.Pair{"one huge certificate": {huge}, "a hundred": many} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.server.URL+stateOfAcme, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := e.client(chain...).Do(r); err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: answered %d", what, response.StatusCode)
		}
	}
	e.want("another client", e.client(e.site.User(t, "acme", "ann")), "GET", stateOfAcme, 503, "")
}
