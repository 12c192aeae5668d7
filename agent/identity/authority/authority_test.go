package authority

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
)

var now = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

// box returns the strongbox of the site, as a process that has just started opens it.
func (f Files) box(t *testing.T) *strongbox.Box {
	t.Helper()
	return strongbox.Open(strongbox.Options{Dir: filepath.Join(filepath.Dir(f.CA), "credentials"), Hash: strongbox.Hash{Memory: 64, Time: 1, Threads: 1}})
}

func (f Files) trust(t *testing.T) *x509.CertPool {
	t.Helper()
	text, err := os.ReadFile(f.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return pool
}

func (f Files) verify(t *testing.T, pool *x509.CertPool, name string, at time.Time) error {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, CurrentTime: at})
	return err
}

// TestMake checks whom the certificate is good for, that a second one has the same
// authority, and that nobody else reads the keys.
func TestMake(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir() + "/tls")
	if f.Made() {
		t.Error("it is made before it is made")
	}
	for i, names := range [][]string{{"site.example", "10.0.0.5"}, {"site.example", "new.example", "::1"}} {
		authority, err := f.Make(names, now, f.box(t))
		if err != nil || authority != (i == 0) || !f.Made() {
			t.Fatalf("%v: a new authority: %t, %v", names, authority, err)
		}
		for _, name := range []string{"site.example", "10.0.0.5", "new.example", "::1", "other.example"} {
			asked := name
			if name == "::1" {
				asked = "[::1]"
			}
			if err := f.verify(t, f.trust(t), asked, now); (err == nil) != slices.Contains(names, name) {
				t.Errorf("%v: as %s: %v", names, name, err)
			}
		}
	}
	other := In(t.TempDir())
	if _, err := other.Make([]string{"site.example"}, now, f.box(t)); err != nil {
		t.Fatal(err)
	}
	if err := f.verify(t, other.trust(t), "site.example", now); err == nil {
		t.Error("another authority is as good")
	}
	for file, mode := range map[string]os.FileMode{f.CA: 0o644, f.Cert: 0o644, f.CAKey: 0o600, f.Key: 0o600} {
		if info, err := os.Stat(file); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", file, info.Mode(), err)
		}
	}
	if _, err := f.Make(nil, now, f.box(t)); err == nil {
		t.Error("a certificate for nobody is made")
	}
	if err := os.Rename(other.CAKey, f.CAKey); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Make([]string{"site.example"}, now, f.box(t)); err == nil {
		t.Error("the key of another authority is used")
	}
}

// TestRenew checks that a certificate is renewed before its end, for its names, and
// not otherwise.
func TestRenew(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	if _, err := f.Make([]string{"site.example", "10.0.0.5"}, now, f.box(t)); err != nil {
		t.Fatal(err)
	}
	pool := f.trust(t)
	for _, row := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {life - renewBefore - time.Hour, false}, {life - renewBefore, true}, {life - renewBefore + day, false}, {2 * life, true}} {
		at := now.Add(row.after)
		if renewed, err := f.Renew(at, f.box(t)); err != nil || renewed != row.want {
			t.Errorf("after %s it is renewed: %t, %v", row.after, renewed, err)
		}
		for _, name := range []string{"site.example", "10.0.0.5"} {
			if err := f.verify(t, pool, name, at); err != nil {
				t.Errorf("after %s: %v", row.after, err)
			}
		}
	}
	if err := os.Remove(f.CAKey); err != nil {
		t.Fatal(err)
	}
	if renewed, err := f.Renew(now.Add(4*life), f.box(t)); renewed || err != nil {
		t.Errorf("without the authority's key it is renewed: %t, %v", renewed, err)
	}
}

// TestRenewForeign checks that a certificate that somebody put in place is left alone.
func TestRenewForeign(t *testing.T) {
	t.Parallel()
	f, other := In(t.TempDir()), In(t.TempDir())
	for _, each := range []Files{f, other} {
		if _, err := each.Make([]string{"site.example"}, now, each.box(t)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(other.Cert, f.Cert); err != nil {
		t.Fatal(err)
	}
	if renewed, err := f.Renew(now.Add(2*life), f.box(t)); renewed || err != nil {
		t.Errorf("it is renewed: %t, %v", renewed, err)
	}
}

// TestSealedKey checks that the key of the authority is sealed at rest, and that a new data
// key seals it anew.
func TestSealedKey(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	box := f.box(t)
	sign := func(want bool) {
		t.Helper()
		if made, err := f.Make([]string{"site.example"}, now, box); err != nil || made != want {
			t.Fatalf("a new authority: %t, %v", made, err)
		}
	}
	sign(true)
	isSealed := func() {
		t.Helper()
		body, err := os.ReadFile(f.CAKey)
		if err != nil || strings.Contains(string(body), "PRIVATE KEY") || !strings.HasPrefix(string(body), `{"format":1,`) {
			t.Errorf("the key is %s, %v", body, err)
		}
	}
	isSealed()
	protect := func(want bool) {
		t.Helper()
		if done, err := f.Protect(box); err != nil || done != want {
			t.Errorf("it is sealed now: %t, %v", done, err)
		}
		isSealed()
		sign(false)
	}
	protect(false)
	if err := box.Rotate(nil); err != nil {
		t.Fatal(err)
	}
	protect(true)
	protect(false)
}

// TestSealedStrongbox checks what is said when the key of the authority cannot be opened.
func TestSealedStrongbox(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	box := f.box(t)
	if _, err := f.Make([]string{"site.example"}, now, box); err != nil {
		t.Fatal(err)
	}
	if err := box.Rewrap(strongbox.Target{Way: strongbox.Passphrase, Secret: []byte("correct horse battery staple")}); err != nil {
		t.Fatal(err)
	}
	box = f.box(t)
	for name, do := range map[string]func() error{
		"make":    func() error { _, err := f.Make([]string{"new.example"}, now, box); return err },
		"renew":   func() error { _, err := f.Renew(now.Add(life), box); return err },
		"protect": func() error { _, err := f.Protect(box); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "cannot open the key of the authority, "+f.CAKey+": strongbox sealed: ") {
			t.Errorf("%s while it is sealed: %v", name, err)
		}
	}
	if err := f.verify(t, f.trust(t), "site.example", now); err != nil {
		t.Errorf("a sealed site has no certificate: %v", err)
	}
	lost := strongbox.Open(strongbox.Options{Dir: t.TempDir()})
	if _, err := f.Protect(lost); err == nil || !strings.Contains(err.Error(), "if the strongbox is lost, remove it and "+f.CA) {
		t.Errorf("with another strongbox: %v", err)
	}
	newer := []byte(`{"format":9,"sealed":""}`)
	if err := os.WriteFile(f.CAKey, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Protect(box); err == nil || !strings.Contains(err.Error(), "written by format 9") {
		t.Error(err)
	}
	if err := os.Remove(f.CAKey); err != nil {
		t.Fatal(err)
	}
	if done, err := f.Protect(box); done || err != nil {
		t.Errorf("without a key: %t, %v", done, err)
	}
}

// TestFormat reads a key of format 1.
func TestFormat(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	body := formattest.Read(t, "testdata/format1/ca.key")
	if err := os.WriteFile(f.CAKey, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.readKey(opener("key of the authority")); err != nil {
		t.Error(err)
	}
}

// opener opens what was sealed for a purpose, as its text is.
type opener string

func (o opener) Seal(secret []byte, purpose string) (string, error) { return string(secret), nil }
func (o opener) Sealed() error                                      { return nil }
func (o opener) Stale(string) bool                                  { return false }
func (o opener) Open(sealed, purpose string) ([]byte, error) {
	if sealed != "text" || purpose != string(o) {
		return nil, errors.New("another text")
	}
	return []byte(sealed), nil
}
