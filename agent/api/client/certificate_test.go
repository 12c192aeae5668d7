package client

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
)

// TestClientCertificate checks when a client presents its certificate, that it needs no token
// then, and what it says if nobody has asked for one.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	authority := certtest.NewAuthority(t, "users", time.Now())
	ann := authority.User(t, "acme", "ann")
	for name, c := range map[string]struct {
		ask    tls.ClientAuthType
		token  string
		status int
		// want is the common name that the server sees and the token, or part of the error.
		want string
	}{
		"alone":                       {tls.RequestClientCert, "", 200, "ann "},
		"with a token":                {tls.RequestClientCert, "osu_x", 200, "ann Bearer osu_x"},
		"not asked for, with a token": {tls.NoClientCert, "osu_x", 200, " Bearer osu_x"},
		"not asked for":               {tls.NoClientCert, "", 401, "the server does not ask for a client certificate, and there is no token; have the site take certificates (osupgrade-agent serve --client-ca-file)"},
		"refused":                     {tls.RequestClientCert, "", 401, "the certificate is of nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := ""
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if certs := r.TLS.PeerCertificates; len(certs) > 0 {
					seen = certs[0].Subject.CommonName
				}
				seen += " " + r.Header.Get("Authorization")
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				if c.status == http.StatusOK {
					_, _ = w.Write([]byte(`{}`))
					return
				}
				_, _ = w.Write([]byte(`{"errors":[{"error-message":"the certificate is of nobody"}]}`))
			}))
			// It would like certificates of another authority: one is sent all the same.
			others := x509.NewCertPool()
			others.AddCert(certtest.NewAuthority(t, "others", time.Now()).Leaf(t))
			server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: c.ask, ClientCAs: others}
			server.StartTLS()
			t.Cleanup(server.Close)
			api, err := New(Options{Endpoint: server.URL, Insecure: true, Token: c.token, ClientCertPEM: ann.Cert, ClientKeyPEM: ann.Key, Retries: -1})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(api.Close)
			_, err = api.State(t.Context(), "acme", "")
			got := seen
			if err != nil {
				got = err.Error()
			}
			if c.status == http.StatusOK && got != c.want || !strings.Contains(got, c.want) {
				t.Errorf("the server sees %q, and the client says %v; want %q", seen, err, c.want)
			}
			if tenant, user := api.CertifiedUser(); (tenant+" "+user == "acme ann") != (c.token == "") {
				t.Errorf("the certificate says that user %q of tenant %q sends the requests", user, tenant)
			}
		})
	}
}

// TestWrongClientCertificate checks what is refused before anything is sent, and that no error
// shows the key.
func TestWrongClientCertificate(t *testing.T) {
	t.Parallel()
	authority := certtest.NewAuthority(t, "users", time.Now())
	ann, bob := authority.User(t, "acme", "ann"), authority.User(t, "acme", "bob")
	encrypted := []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nc2VjcmV0\n-----END ENCRYPTED PRIVATE KEY-----\n")
	const https = "https://site.example"
	for want, o := range map[string]Options{
		"and not its private key; set both or neither":                 {Endpoint: https, ClientCertPEM: ann.Cert},
		"and not the certificate; set both or neither":                 {Endpoint: https, ClientKeyPEM: ann.Key, Token: "x"},
		"do not belong together":                                       {Endpoint: https, ClientCertPEM: ann.Cert, ClientKeyPEM: bob.Key},
		"or cannot be read":                                            {Endpoint: https, ClientCertPEM: []byte("secret"), ClientKeyPEM: []byte("secret")},
		"is encrypted, and nobody is asked for its passphrase":         {Endpoint: https, ClientCertPEM: ann.Cert, ClientKeyPEM: encrypted},
		"the endpoint is http, which knows no certificates; use https": {Endpoint: "http://127.0.0.1:4646", ClientCertPEM: ann.Cert, ClientKeyPEM: ann.Key},
		"token is empty":                                               {Endpoint: https},
	} {
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
