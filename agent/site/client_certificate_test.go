package site

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// certified is a site that takes client certificates.
type certified struct {
	*Site
	t         *testing.T
	authority *certtest.Authority
	dir       string
	ca, crl   string
	trusted   *x509.CertPool
}

// newCertified opens a site with TLS; it takes client certificates if taken is set.
func newCertified(t *testing.T, taken bool) *certified {
	t.Helper()
	cert, key := certificates(t)
	dir := t.TempDir()
	c := &certified{t: t, authority: certtest.NewAuthority(t, "users", time.Now()), dir: t.TempDir(), ca: filepath.Join(dir, "ca.pem"), crl: filepath.Join(dir, "crl.pem"), trusted: x509.NewCertPool()}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	c.trusted.AppendCertsFromPEM(text)
	c.put(c.ca, c.authority.Cert)
	c.put(c.crl, c.authority.Revoke(t, time.Now(), time.Now().Add(time.Hour)))
	endpoint := Endpoint{Listen: "127.0.0.1:0", CertFile: cert, KeyFile: key}
	options := Options{
		Name: "test", Zone: time.UTC, Dir: c.dir, Tenants: []string{"acme"}, API: endpoint, NATS: endpoint, Holder: "a test", Log: slog.New(slog.DiscardHandler),
	}
	if taken {
		options.ClientCAFile, options.ClientCRLFile = c.ca, c.crl
	}
	if c.Site, err = Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Logins.WriteUser(t.Context(), principal.User{Tenant: "acme", Name: "ann", Allow: []access.Role{access.Viewer}}, "correct horse", nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *certified) put(file string, text []byte) {
	c.t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// client returns a client that presents a certificate whenever it is asked for one, and notes
// that it was asked.
func (c *certified) client(pair certtest.Pair, two bool) (client *http.Client, asked *[][]byte) {
	c.t.Helper()
	own, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		c.t.Fatal(err)
	}
	asked = new([][]byte)
	protocols := &http.Protocols{}
	protocols.SetHTTP2(two)
	protocols.SetHTTP1(!two)
	transport := &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{
		RootCAs: c.trusted, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			*asked = append([][]byte{}, r.AcceptableCAs...)
			return &own, nil
		},
	}}
	c.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, asked
}

const stateOfAcme = "/v1/state/tenants/acme/os-upgrade"

// get returns the status and the body of an answer, and the protocol.
func (c *certified) get(client *http.Client, method, path string) (status, major int, body string) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, "https://"+c.Address()+path, strings.NewReader("{}"))
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, response.ProtoMajor, string(text)
}

// TestClientCertificate checks that a listener asks for client certificates, of its authorities
// alone, if and only if it is told to, over both versions of HTTP, and who asked is in the
// audit log.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		c := newCertified(t, taken)
		ann := c.authority.User(t, "acme", "ann")
		for _, two := range []bool{true, false} {
			client, asked := c.client(ann, two)
			status, major, body := c.get(client, http.MethodGet, stateOfAcme)
			if want := map[bool]int{true: 200, false: 401}[taken]; status != want || (major == 2) != two {
				t.Errorf("taken %t, HTTP/2 %t: answered %d %s over HTTP/%d", taken, two, status, body, major)
			}
			if was := *asked; (was != nil) != taken || taken && (len(was) != 1 || string(was[0]) != string(c.authority.Leaf(t).RawSubject)) {
				t.Errorf("taken %t: the listener asks for certificates of %q", taken, was)
			}
			if status, _, body := c.get(client, http.MethodPost, stateOfAcme+"/start"); taken && (status != 403 || !strings.Contains(body, `user \"ann\" (viewer)`)) {
				t.Errorf("a viewer starts a run: %d %s", status, body)
			}
		}
		if taken {
			c.audited(ann)
		}
		c.expires(taken)
	}
}

// expires checks that the end of the authority is shown, if it is one.
func (c *certified) expires(taken bool) {
	c.t.Helper()
	shown := map[string]time.Time{}
	for _, cert := range c.expiries(time.Now()) {
		shown[cert.Listener] = cert.NotAfter
	}
	if end, there := shown["client-ca"]; there != taken || taken && !end.Equal(c.authority.Leaf(c.t).NotAfter) {
		c.t.Errorf("taken %t: the certificates end at %v", taken, shown)
	}
}

// audited checks the audit record of what was refused.
func (c *certified) audited(ann certtest.Pair) {
	c.t.Helper()
	read, err := c.audit.Read("acme", v1.AuditFilter{By: "ann"})
	if err != nil || len(read.Records) == 0 {
		c.t.Fatalf("the audit log has %+v, %v", read, err)
	}
	r := read.Records[0]
	serial := ann.Leaf(c.t).SerialNumber.Text(16)
	if r.As != v1.AuditUser || !strings.HasPrefix(r.Certificate, "serial "+serial+", SHA-256 ") || r.Token != "" || r.Result != v1.AuditRefused {
		c.t.Errorf("the audit log has %+v", r)
	}
	if who := audit.Sender(r); who != "user ann by certificate" {
		c.t.Errorf("the sender is %s", who)
	}
}

// TestClientAuthorityTakenUp checks that an authority that is not trusted any more, and a
// certificate that was revoked, are good no more on a connection that is open, after SIGHUP.
func TestClientAuthorityTakenUp(t *testing.T) {
	t.Parallel()
	c := newCertified(t, true)
	pair := c.authority.User(t, "acme", "ann")
	client, _ := c.client(pair, true)
	want := func(what string, want int, part string) {
		t.Helper()
		if status, _, body := c.get(client, http.MethodGet, stateOfAcme); status != want || !strings.Contains(body, part) {
			t.Errorf("%s: answered %d %s", what, status, body)
		}
	}
	want("at first", 200, "")
	c.put(c.crl, c.authority.Revoke(t, time.Now(), time.Now().Add(time.Hour), pair.Leaf(t).SerialNumber))
	c.Reload()
	want("revoked", 401, "was revoked on")
	c.put(c.crl, c.authority.Revoke(t, time.Now(), time.Now().Add(time.Hour), big.NewInt(7)))
	c.Reload()
	want("another is revoked", 200, "")
	other := certtest.NewAuthority(t, "others", time.Now())
	c.put(c.ca, other.Cert)
	c.put(c.crl, other.Revoke(t, time.Now(), time.Now().Add(time.Hour)))
	c.Reload()
	want("of an authority that is not trusted any more", 401, "in its client-ca-file")
	client, asked := c.client(other.User(t, "acme", "ann"), true)
	want("of the new authority", 200, "")
	if len(*asked) != 1 || string((*asked)[0]) != string(other.Leaf(t).RawSubject) {
		t.Errorf("the listener asks for certificates of %q", *asked)
	}
}

// TestRemovedUserStream checks that the event stream of a client certificate ends when its
// user is removed: no token is withdrawn with it that would end it.
func TestRemovedUserStream(t *testing.T) {
	t.Parallel()
	c := newCertified(t, true)
	client, _ := c.client(c.authority.User(t, "acme", "ann"), false)
	// Less than a heartbeat, after which it would end in any case.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.Address()+stateOfAcme+"/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); err != nil || line != ": hello\n" {
		t.Fatalf("the stream begins with %q, %v", line, err)
	}
	if err := c.Logins.RemoveUser(principal.KeyOf("acme", "ann"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		t.Errorf("the stream goes on after its user was removed: %v", err)
	}
}

// TestCertificateIsNoHost checks that a client certificate lets no host in: the log does not
// even ask for one. Hosts have keys, which are no certificates.
func TestCertificateIsNoHost(t *testing.T) {
	t.Parallel()
	c := newCertified(t, true)
	pair := c.authority.User(t, "acme", "ann")
	ann, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	asked := false
	nc, err := nats.Connect("tls://"+c.NATSAddress(), nats.MaxReconnects(0), nats.Secure(&tls.Config{
		RootCAs: c.trusted, MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { asked = true; return &ann, nil },
	}))
	if err == nil {
		nc.Close()
	}
	if !errors.Is(err, nats.ErrAuthorization) || asked {
		t.Errorf("the log lets a client certificate in: %v, and asks for one: %t", err, asked)
	}
}

// TestClientAuthorityOptions checks what is refused at the start, and that the error says what
// to do.
func TestClientAuthorityOptions(t *testing.T) {
	t.Parallel()
	cert, key := certificates(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	for want, o := range map[string]Options{
		"client-crl-file is set without client-ca-file":                       {ClientCRLFile: ca},
		"client-ca-file is set, but the REST API has no TLS":                  {ClientCAFile: ca},
		"client-ca-file: open " + ca:                                          {ClientCAFile: ca, API: Endpoint{CertFile: cert, KeyFile: key}},
		"client-crl-file: " + cert + " holds no list of revoked certificates": {ClientCAFile: cert, ClientCRLFile: cert, API: Endpoint{CertFile: cert, KeyFile: key}},
	} {
		o.Name, o.Zone, o.Dir, o.Holder, o.Log, o.API.Listen = "test", time.UTC, t.TempDir(), "a test", slog.New(slog.DiscardHandler), "127.0.0.1:0"
		s, err := Open(t.Context(), o)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
