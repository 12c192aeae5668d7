package certificate_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/certificate"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/certtest"
)

// authorities are the files of authorities of client certificates.
type authorities struct {
	t       *testing.T
	ca, crl string
	// seen is where the newest lists are kept; empty for nowhere.
	seen string
	log  bytes.Buffer
	*certificate.Authorities
}

func newAuthorities(t *testing.T, ca, crl []byte) *authorities {
	t.Helper()
	dir := t.TempDir()
	a := &authorities{t: t, ca: filepath.Join(dir, "ca.pem")}
	a.put(a.ca, ca)
	if crl != nil {
		a.crl = filepath.Join(dir, "crl.pem")
		a.put(a.crl, crl)
	}
	return a
}

func (a *authorities) put(file string, text []byte) {
	a.t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authorities) load() (err error) {
	a.Authorities, err = certificate.LoadAuthorities(a.ca, a.crl, a.seen, now, slog.New(slog.NewTextHandler(&a.log, nil)))
	return err
}

// wants checks the verdict about a chain: part of why it is not good, or nothing.
func (a *authorities) wants(what, want string, chain ...certtest.Pair) {
	a.t.Helper()
	var certs []*x509.Certificate
	for _, pair := range chain {
		certs = append(certs, pair.Leaf(a.t))
	}
	err := a.Verify(certs, now)
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		a.t.Errorf("%s: %v, want %q", what, err, want)
	}
}

// TestVerify checks which client certificates are good, and that why one is not says what
// would be right.
func TestVerify(t *testing.T) {
	t.Parallel()
	site, other := certtest.NewAuthority(t, "site", now), certtest.NewAuthority(t, "other", now)
	// The same name does not make it the same authority.
	forged := certtest.NewAuthority(t, "site", now)
	sub := site.Sub(t, "sub")
	a := newAuthorities(t, site.Cert, nil)
	if err := a.load(); err != nil {
		t.Fatal(err)
	}
	ann := pkix.Name{CommonName: "ann", Organization: []string{"acme"}}
	usage := func(usages ...x509.ExtKeyUsage) certtest.Pair {
		return site.Sign(t, x509.Certificate{Subject: ann, ExtKeyUsage: usages})
	}
	a.wants("none", "there is no client certificate")
	a.wants("good", "", site.User(t, "acme", "ann"))
	a.wants("for servers, too", "", usage(x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth))
	a.wants("of an authority in between", "", sub.User(t, "acme", "ann"), sub.Pair)
	a.wants("of an authority in between that is missing", "in its client-ca-file", sub.User(t, "acme", "ann"))
	a.wants("of another authority", `signed by "CN=other", and no authority that this site trusts`, other.User(t, "acme", "ann"))
	a.wants("of another authority, which is sent along", "client-ca-file", other.User(t, "acme", "ann"), other.Pair)
	a.wants("of a forged authority", "client-ca-file", forged.User(t, "acme", "ann"), forged.Pair)
	a.wants("signed by itself", "client-ca-file", certtest.NewAuthority(t, "x", now).User(t, "acme", "ann"))
	a.wants("of a server", "lacks the extended key usage clientAuth", usage(x509.ExtKeyUsageServerAuth))
	a.wants("for anything", "lacks the extended key usage clientAuth", usage(x509.ExtKeyUsageAny))
	a.wants("for servers and anything", "lacks the extended key usage clientAuth", usage(x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageAny))
	a.wants("for anything and clients", "", usage(x509.ExtKeyUsageAny, x509.ExtKeyUsageClientAuth))
	forAny, forServers := site.Sub(t, "any", x509.ExtKeyUsageAny), site.Sub(t, "servers", x509.ExtKeyUsageServerAuth)
	a.wants("of an authority for anything", "", forAny.User(t, "acme", "ann"), forAny.Pair)
	a.wants("of an authority for servers", "cannot be verified", forServers.User(t, "acme", "ann"), forServers.Pair)
	a.wants("without a usage", "lacks the extended key usage clientAuth", usage([]x509.ExtKeyUsage{}...))
	a.wants("the authority itself", "is that of an authority", site.Pair)
	a.wants("expired", "expired on 2026-11-22 00:59 UTC; ask for a new one", site.Sign(t, x509.Certificate{Subject: ann, NotAfter: now.Add(-time.Second)}))
	a.wants("not valid yet", "is not valid before 2026-11-22 01:01 UTC; compare that with the clock of the site", site.Sign(t, x509.Certificate{Subject: ann, NotBefore: now.Add(time.Minute)}))
	a.wants("a signature by who may not sign", "", site.User(t, "acme", "ann"), site.User(t, "acme", "bob"))
	long := []certtest.Pair{site.User(t, "acme", "ann")}
	for range 5 {
		long = append(long, sub.Pair)
	}
	a.wants("a long chain", "comes with 5 further ones; send those between it and its authority, 4 at most", long...)
}

// TestLeafSigns checks that a user's certificate makes no other user.
func TestLeafSigns(t *testing.T) {
	t.Parallel()
	site := certtest.NewAuthority(t, "site", now)
	a := newAuthorities(t, site.Cert, nil)
	if err := a.load(); err != nil {
		t.Fatal(err)
	}
	ann, forged := site.Signer(t, "acme", "ann")
	a.wants("the signer", "", ann)
	a.wants("whom it signs", "client certificate", forged, ann)
}

// TestRevoked checks that a revoked certificate is good no more, that another with its serial
// number stays good, and that a list of a stranger is refused.
func TestRevoked(t *testing.T) {
	t.Parallel()
	site, other := certtest.NewAuthority(t, "site", now), certtest.NewAuthority(t, "other", now)
	ann, bob := site.User(t, "acme", "ann"), site.User(t, "acme", "bob")
	twin := other.Sign(t, x509.Certificate{Subject: pkix.Name{CommonName: "ann"}, SerialNumber: ann.Leaf(t).SerialNumber})
	sub := site.Sub(t, "sub")
	below := sub.User(t, "acme", "ann")
	list := site.Revoke(t, now, now.Add(time.Hour), ann.Leaf(t).SerialNumber, sub.Leaf(t).SerialNumber)
	a := newAuthorities(t, append(bytes.Clone(site.Cert), other.Cert...), append(list, other.Revoke(t, now, now.Add(time.Hour))...))
	if err := a.load(); err != nil {
		t.Fatal(err)
	}
	a.wants("revoked", "serial number "+ann.Leaf(t).SerialNumber.Text(16)+" was revoked on 2026-11-22 01:00 UTC; ask for a new one", ann)
	a.wants("not revoked", "", bob)
	a.wants("of another authority with the same number", "", twin)
	a.wants("of a revoked authority in between", "was revoked", below, sub.Pair)

	forged := certtest.NewAuthority(t, "site", now)
	for what, list := range map[string][]byte{
		"is signed by none of the authorities in client-ca-file": forged.Revoke(t, now, now.Add(time.Hour)),
		"holds no list of revoked certificates":                  site.Cert,
	} {
		a.put(a.crl, list)
		if err := a.load(); err == nil || !strings.Contains(err.Error(), what) || !strings.HasPrefix(err.Error(), "client-crl-file: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	a.put(a.crl, site.Revoke(t, now.Add(-2*time.Hour), now.Add(-time.Hour), ann.Leaf(t).SerialNumber))
	if err := a.load(); err != nil {
		t.Fatal(err)
	}
	a.wants("revoked by a list that is out of date", "was revoked", ann)
	if text := a.log.String(); !strings.Contains(text, "a list of revoked certificates is out of date") {
		t.Errorf("logged %s", text)
	}
}

// TestLoadAuthorities checks what is refused at the start.
func TestLoadAuthorities(t *testing.T) {
	t.Parallel()
	site := certtest.NewAuthority(t, "site", now)
	old := certtest.NewAuthority(t, "old", now.Add(-72*time.Hour))
	for want, text := range map[string][]byte{
		"":                                      append(bytes.Clone(old.Cert), site.Cert...),
		"holds no certificate that is valid":    old.Cert,
		"holds no certificate in PEM form":      site.Key,
		"holds a certificate that cannot":       append(bytes.Clone(site.Cert), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"...),
		`"CN=ann,O=acme" is not that of an aut`: site.User(t, "acme", "ann").Cert,
	} {
		err := newAuthorities(t, text, nil).load()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "client-ca-file: ")) {
			t.Errorf("%s: %v", want, err)
		}
	}
	a := newAuthorities(t, site.Cert, nil)
	if err := os.Remove(a.ca); err != nil {
		t.Fatal(err)
	}
	if err := a.load(); err == nil || !strings.HasSuffix(err.Error(), "no such file or directory") {
		t.Errorf("without the file: %v", err)
	}
}

// TestAuthoritiesTakenUp checks that new files count without a restart, and that files which
// cannot be read change nothing and are logged once.
func TestAuthoritiesTakenUp(t *testing.T) {
	t.Parallel()
	first, second := certtest.NewAuthority(t, "first", now), certtest.NewAuthority(t, "second", now)
	ann, bob := first.User(t, "acme", "ann"), second.User(t, "acme", "bob")
	a := newAuthorities(t, first.Cert, first.Revoke(t, now, now.Add(time.Hour)))
	if err := a.load(); err != nil {
		t.Fatal(err)
	}
	a.wants("the first", "", ann)
	a.put(a.crl, first.Revoke(t, now, now.Add(time.Hour), ann.Leaf(t).SerialNumber))
	a.Look(now)
	a.wants("the first, revoked", "was revoked", ann)
	a.put(a.ca, []byte("nonsense"))
	for range 4 {
		a.Look(now)
	}
	a.wants("the first, with a damaged file", "was revoked", ann)
	if n := strings.Count(a.log.String(), "cannot take up"); n != 1 {
		t.Errorf("logged %d times: %s", n, a.log.String())
	}
	a.put(a.ca, second.Cert)
	a.put(a.crl, second.Revoke(t, now, now.Add(time.Hour)))
	a.Look(now)
	a.wants("the first, which is not trusted any more", "client-ca-file", ann)
	a.wants("the second", "", bob)
}

// TestOlderList checks that a list of revoked certificates which is older than the one in force
// is refused, and takes back nothing.
func TestOlderList(t *testing.T) {
	t.Parallel()
	site, other := certtest.NewAuthority(t, "site", now), certtest.NewAuthority(t, "other", now)
	ann, bob := site.User(t, "acme", "ann"), site.User(t, "acme", "bob")
	both, revoked := append(bytes.Clone(site.Cert), other.Cert...), ann.Leaf(t).SerialNumber
	list := func(by *certtest.Authority, number int64, at time.Time, serials ...*big.Int) []byte {
		numbered := &x509.RevocationList{ThisUpdate: at, NextUpdate: at.Add(time.Hour)}
		if number > 0 {
			numbered.Number = big.NewInt(number)
		}
		return by.List(t, numbered, serials...)
	}
	later := now.Add(time.Minute)
	for what, row := range map[string]struct {
		first, next []byte
		// want is what the log says; empty if the next list counts.
		want string
	}{
		"a lower number":           {list(site, 7, now, revoked), list(site, 6, later), `the list of \"CN=site\" in %s has number 6, and the one in force has number 7: an older list would take back revocations`},
		"the same number":          {list(site, 7, now, revoked), list(site, 7, later), ""},
		"a higher number":          {list(site, 255, later, revoked), list(site, 256, now), ""},
		"one of two":               {append(list(other, 3, now), list(site, 7, now, revoked)...), append(list(site, 6, now), list(other, 4, now)...), `has number 6, and the one in force has number 7`},
		"a number of another":      {list(site, 7, now, revoked), append(list(site, 8, now), list(other, 1, now)...), ""},
		"no number, an older date": {list(site, 7, later, revoked), list(site, 0, now), `is dated 2026-11-22 01:00 UTC, and the one in force 2026-11-22 01:01 UTC`},
		"no number, a newer date":  {list(site, 0, now, revoked), list(site, 0, later), ""},
		"two of one, the last old": {append(list(site, 7, now, revoked), list(site, 5, now)...), list(site, 6, now), `has number 6, and the one in force has number 7`},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a := newAuthorities(t, both, row.first)
			if err := a.load(); err != nil {
				t.Fatal(err)
			}
			a.wants("revoked", "was revoked", ann)
			a.put(a.crl, row.next)
			for range 3 {
				a.Look(now)
			}
			if row.want == "" {
				a.wants("no more revoked", "", ann)
				return
			}
			want := strings.ReplaceAll(row.want, "%s", a.crl)
			if text := a.log.String(); strings.Count(text, want) != 1 {
				t.Errorf("logged %s", text)
			}
			a.wants("still revoked", "was revoked", ann)
			a.put(a.crl, list(site, 8, later, bob.Leaf(t).SerialNumber))
			a.Look(now)
			a.wants("revoked by the next list", "was revoked", bob)
			a.wants("not any more", "", ann)
		})
	}
}

// TestOlderListAfterARestart checks that a list of revoked certificates which is older than one
// that an earlier process took up is refused at the start, whatever the file held in between.
func TestOlderListAfterARestart(t *testing.T) {
	t.Parallel()
	site := certtest.NewAuthority(t, "site", now)
	ann := site.User(t, "acme", "ann")
	list := func(number int64, serials ...*big.Int) []byte {
		return site.List(t, &x509.RevocationList{Number: big.NewInt(number), ThisUpdate: now, NextUpdate: now.Add(time.Hour)}, serials...)
	}
	a := newAuthorities(t, site.Cert, list(6))
	a.seen = filepath.Join(t.TempDir(), "revocations.json")
	start := func() error {
		t.Helper()
		err := a.load()
		if err == nil { // As the site does once it has the lock of its folder.
			ctx, stop := context.WithCancel(t.Context())
			stop()
			a.Watch(ctx)
		}
		return err
	}
	refused := func(what string) {
		t.Helper()
		want := `has number 6, and the one in force has number 7: an older list would take back revocations; put the newest one in place`
		if err := start(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	a.put(a.crl, list(7, ann.Leaf(t).SerialNumber))
	a.Look(now)
	a.put(a.crl, list(6))
	refused("an older list")
	file := a.crl
	a.crl = ""
	if err := start(); err != nil {
		t.Fatal(err)
	}
	a.crl = file
	refused("an older list after none")
	a.put(a.crl, list(7, ann.Leaf(t).SerialNumber))
	if err := start(); err != nil {
		t.Errorf("the newest list: %v", err)
	}
	a.wants("revoked", "was revoked", ann)
	a.put(a.seen, []byte(`{"format":1}`))
	if err := start(); err == nil || !strings.Contains(err.Error(), "put the newest list in place as client-crl-file, then remove this file") {
		t.Errorf("a damaged file: %v", err)
	}
	a.put(a.seen, []byte(`{"format":9}`))
	if err := start(); err == nil || !strings.Contains(err.Error(), "was written by format 9, this version reads 1; start a version that reads it") {
		t.Errorf("a file of a newer version: %v", err)
	}
}

// TestWatchAuthorities checks that a change of the file is seen by itself.
func TestWatchAuthorities(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	first, second := certtest.NewAuthority(t, "first", begun), certtest.NewAuthority(t, "second", begun)
	bob := []*x509.Certificate{second.User(t, "acme", "bob").Leaf(t)}
	a := newAuthorities(t, first.Cert, nil)
	watched, err := certificate.LoadAuthorities(a.ca, "", "", begun, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); watched.Watch(ctx) }()
	for watched.Verify(bob, begun) != nil {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("the new authority is not taken up")
		}
		a.put(a.ca, second.Cert) // Again and again: the watch may not have begun yet.
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	<-ended
}

// FuzzAuthorities reads files of authorities and of what they revoked as anything may be in
// them.
func FuzzAuthorities(f *testing.F) {
	site := certtest.NewAuthority(f, "site", now)
	f.Add(site.Cert, site.Revoke(f, now, now.Add(time.Hour), site.Leaf(f).SerialNumber))
	f.Add(site.Cert, []byte("0"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte{})
	leaf := []*x509.Certificate{site.User(f, "acme", "ann").Leaf(f)}
	f.Fuzz(func(t *testing.T, ca, crl []byte) {
		dir := t.TempDir()
		caFile, crlFile := filepath.Join(dir, "ca"), filepath.Join(dir, "crl")
		for file, text := range map[string][]byte{caFile: ca, crlFile: crl} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		a, err := certificate.LoadAuthorities(caFile, crlFile, "", now, slog.New(slog.DiscardHandler))
		if err == nil {
			_ = a.Verify(leaf, now)
		}
	})
}
