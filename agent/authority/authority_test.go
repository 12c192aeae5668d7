package authority

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"slices"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

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
		authority, err := f.Make(names, now)
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
	if _, err := other.Make([]string{"site.example"}, now); err != nil {
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
	if _, err := f.Make(nil, now); err == nil {
		t.Error("a certificate for nobody is made")
	}
	if err := os.Rename(other.CAKey, f.CAKey); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Make([]string{"site.example"}, now); err == nil {
		t.Error("the key of another authority is used")
	}
}

// TestRenew checks that a certificate is renewed before its end, for its names, and
// not otherwise.
func TestRenew(t *testing.T) {
	t.Parallel()
	f := In(t.TempDir())
	if _, err := f.Make([]string{"site.example", "10.0.0.5"}, now); err != nil {
		t.Fatal(err)
	}
	pool := f.trust(t)
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{0, false}, {life - renewBefore - time.Hour, false}, {life - renewBefore, true}, {life - renewBefore + day, false}, {2 * life, true}} {
		at := now.Add(step.after)
		if renewed, err := f.Renew(at); err != nil || renewed != step.want {
			t.Errorf("after %s it is renewed: %t, %v", step.after, renewed, err)
		}
		for _, name := range []string{"site.example", "10.0.0.5"} {
			if err := f.verify(t, pool, name, at); err != nil {
				t.Errorf("after %s: %v", step.after, err)
			}
		}
	}
	if err := os.Remove(f.CAKey); err != nil {
		t.Fatal(err)
	}
	if renewed, err := f.Renew(now.Add(4 * life)); renewed || err != nil {
		t.Errorf("without the authority's key it is renewed: %t, %v", renewed, err)
	}
}

// TestRenewForeign checks that a certificate that somebody put in place is left alone.
func TestRenewForeign(t *testing.T) {
	t.Parallel()
	f, other := In(t.TempDir()), In(t.TempDir())
	for _, each := range []Files{f, other} {
		if _, err := each.Make([]string{"site.example"}, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Rename(other.Cert, f.Cert); err != nil {
		t.Fatal(err)
	}
	if renewed, err := f.Renew(now.Add(2 * life)); renewed || err != nil {
		t.Errorf("it is renewed: %t, %v", renewed, err)
	}
}
