package authority

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/certificate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/strongbox"
)

// box returns the strongbox of the site, as a process that has just started opens it.
func (u Users) box(t *testing.T) *strongbox.Box {
	t.Helper()
	return strongbox.Open(strongbox.Options{Dir: strings.TrimSuffix(u.CA, "client-ca.pem") + "credentials", Hash: strongbox.Hash{Memory: 64, Time: 1, Threads: 1}})
}

// issue signs a certificate, and returns it as a site sees it.
func (u Users) issue(t *testing.T, tenant, name string) (Issued, []*x509.Certificate) {
	t.Helper()
	issued, err := u.Sign(tenant, name, time.Hour, now, u.box(t))
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(issued.Cert, issued.Key)
	if err != nil {
		t.Fatal(err)
	}
	return issued, []*x509.Certificate{pair.Leaf}
}

// TestUsers checks that a site takes the certificates of the authority of users until they are
// revoked, that the key of the authority is sealed, and that neither authority of a site is
// good for what the other is.
func TestUsers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u := UsersIn(dir)
	for i := range 2 {
		if made, err := u.Make(now, u.box(t)); err != nil || made != (i == 0) {
			t.Fatalf("it is made: %t, %v", made, err)
		}
	}
	if body, err := os.ReadFile(u.CAKey); err != nil || strings.Contains(string(body), "PRIVATE") {
		t.Errorf("the key of the authority is not sealed, %v", err)
	}
	first, chain := u.issue(t, "acme", "ann")
	second, other := u.issue(t, "acme", "ann")
	if leaf := chain[0]; leaf.Subject.String() != "CN=ann,O=acme" || !leaf.NotAfter.Equal(now.Add(time.Hour)) || first.Serial == second.Serial || leaf.SerialNumber.Text(16) != first.Serial {
		t.Errorf("the certificate is %s until %s", leaf.Subject, leaf.NotAfter)
	}
	site, err := certificate.LoadAuthorities(u.CA, u.CRL, now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := site.Verify(chain, now); err != nil {
		t.Error(err)
	}
	for i := range 2 {
		if err := u.Revoke(first.Serial, now, u.box(t)); i == 0 && err != nil || i == 1 && !errors.Is(err, ErrRevoked) {
			t.Errorf("revoked: %v", err)
		}
	}
	site.Look(now)
	if err := site.Verify(chain, now); err == nil || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("the revoked one: %v", err)
	}
	if err := site.Verify(other, now); err != nil {
		t.Errorf("the other one: %v", err)
	}
	if err := u.Revoke(second.Serial, now, u.box(t)); err != nil {
		t.Fatal(err)
	}
	site.Look(now)
	if site.Verify(chain, now) == nil || site.Verify(other, now) == nil {
		t.Error("of two that were revoked one is good")
	}
	for _, wrong := range []string{"", "x", "-1", "0", strings.Repeat("f", 41)} {
		if err := u.Revoke(wrong, now, u.box(t)); err == nil || !strings.Contains(err.Error(), "is not the serial number of a certificate") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestUsersOfAnotherAuthority checks that a certificate of the site is that of no user, even if
// its authority is trusted for users.
func TestUsersOfAnotherAuthority(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, u := In(dir), UsersIn(dir)
	if _, err := f.Make([]string{"ann"}, now, f.box(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Make(now, u.box(t)); err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, ca := range []string{f.CA, u.CA} {
		site, err := certificate.LoadAuthorities(ca, "", now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := site.Verify([]*x509.Certificate{pair.Leaf}, now); err == nil || !strings.Contains(err.Error(), "lacks the extended key usage clientAuth") {
			t.Errorf("the certificate of the site, with %s: %v", ca, err)
		}
	}
	// Its own is good for no server.
	_, chain := u.issue(t, "acme", "localhost")
	roots := x509.NewCertPool()
	text, err := os.ReadFile(u.CA)
	if err != nil {
		t.Fatal(err)
	}
	roots.AppendCertsFromPEM(text)
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now}); err == nil {
		t.Error("the certificate of a user is good for a server")
	}
	// The sealed key of one authority is not that of the other.
	sealed, err := os.ReadFile(f.CAKey)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(u.CAKey, sealed, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := u.Sign("acme", "ann", time.Hour, now, u.box(t)); err == nil {
		t.Error("the key of another authority is used")
	}
}
