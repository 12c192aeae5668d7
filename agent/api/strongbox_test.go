package api

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/audit"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/strongbox"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const passphrase = "correct horse battery staple"

// sealedSite is the API of a site whose strongbox a person opens.
type sealedSite struct {
	t     *testing.T
	dir   string
	token string
	audit *audit.Logs
	// handler is checked against the OpenAPI text, bare is not and is quick.
	handler, bare http.Handler
}

func newSealedSite(t *testing.T, target strongbox.Target) *sealedSite {
	t.Helper()
	s := &sealedSite{t: t, dir: t.TempDir(), audit: audit.Open(t.TempDir())}
	t.Cleanup(func() { _ = s.audit.Close() })
	if err := strongbox.Open(strongbox.Options{Dir: s.dir, Hash: strongbox.Hash{Memory: 64, Time: 1, Threads: 1}}).Rewrap(target); err != nil {
		t.Fatal(err)
	}
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	var err error
	if s.token, err = tokens.Add(principal.Token{Name: "root", Tenant: access.AnyTenant, Allow: []string{access.Admin}}); err != nil {
		t.Fatal(err)
	}
	b := broken{err: errors.New("the store was asked")}
	s.bare = New(Options{
		Site: "test", Tenants: Fixed{"acme": b}, Store: b, Tokens: tokens, Webhooks: brokenWebhooks(b), Audit: s.audit,
		Strongbox: strongbox.Open(strongbox.Options{Dir: s.dir}), Healthy: func() error { return nil }, Log: slog.New(slog.DiscardHandler),
	})
	s.handler = checked(t, s.bare)
	return s
}

func (s *sealedSite) ask(method, target, from, body string) *httptest.ResponseRecorder {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	r.RemoteAddr = from
	r.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

const here, elsewhere = "192.0.2.1:1000", "192.0.2.2:1000"

func (s *sealedSite) unseal(from, text string) *httptest.ResponseRecorder {
	s.t.Helper()
	return s.ask("POST", "/v1/state/strongbox/system/unseal", from, `{"passphrase":"`+text+`"}`)
}

func (s *sealedSite) want(w *httptest.ResponseRecorder, status int, says string) {
	s.t.Helper()
	if w.Code != status || !strings.Contains(w.Body.String(), says) {
		s.t.Errorf("it is answered %d %s, and should be %d with %q", w.Code, w.Body, status, says)
	}
}

// TestSealedSite checks that a sealed site answers each operation below /v1 but one with 503
// "strongbox sealed", before it looks at the token or does anything, that it says so on
// /readyz and is alive, and that it works once it is unsealed.
func TestSealedSite(t *testing.T) {
	t.Parallel()
	s := newSealedSite(t, strongbox.Target{Way: strongbox.Passphrase, Secret: []byte(passphrase)})
	fill := strings.NewReplacer("{tenant}", "acme", "{host}", "h01", "{id}", "1", "{name}", "x")
	asked := 0
	for _, r := range routes() {
		for _, pattern := range r.paths() {
			if r.unseals || !strings.HasPrefix(pattern, "/v1/") {
				continue
			}
			if asked++; asked == 20 {
				s.handler = s.bare
			}
			w := s.ask(r.method, fill.Replace(pattern), here, "")
			begins := `{"errors":[{"error-message":"strongbox sealed: it is opened by a passphrase; run osupgrade-agent unseal","error-info":`
			if strings.Contains(pattern, "/fleetlock/") { // Its protocol has errors of its own.
				begins = `{"kind":"not_ready","value":"strongbox sealed: it is opened by a passphrase; run osupgrade-agent unseal"}`
			}
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "10" ||
				!strings.HasPrefix(w.Body.String(), begins) {
				t.Errorf("%s %s is answered %d, Retry-After %q: %s", r.method, pattern, w.Code, w.Header().Get("Retry-After"), w.Body)
			}
		}
	}
	if asked < 100 {
		t.Errorf("%d operations were asked for", asked)
	}
	s.handler = checked(t, s.bare)
	s.want(s.ask("GET", "/healthz", here, ""), 200, "ok")
	s.want(s.ask("GET", "/readyz", here, ""), 503, "the strongbox is not ready: strongbox sealed: it is opened by a passphrase; run osupgrade-agent unseal")
	s.want(s.unseal(here, "wrong"), 403, "the passphrase is wrong; the site stays sealed")
	s.want(s.ask("POST", "/v1/state/strongbox/system/unseal", here, `{"passphrase":""}`), 400, "passphrase")
	s.want(s.ask("POST", "/v1/state/strongbox/system/unseal", here, `{"remote-sealkey":"x"}`), 400, "remote-sealkey")
	s.want(s.unseal(here, passphrase), 204, "")
	s.want(s.unseal(here, "whatever"), 204, "")
	s.want(s.ask("GET", "/v1/config/tenants/acme/os-upgrade", here, ""), 503, "the store was asked")
	if w := s.ask("GET", "/readyz", here, ""); strings.Contains(w.Body.String(), "strongbox") {
		t.Errorf("/readyz says %s", w.Body)
	}
	var all uint64
	read, err := s.audit.Read(audit.AllTenants, v1.AuditFilter{After: &all, Object: "strongbox"})
	if err != nil || len(read.Records) != 5 {
		t.Fatalf("the audit log is %+v, %v", read, err)
	}
	for i, want := range []v1.AuditRecord{{Result: v1.AuditRefused, Status: 403}, {Result: v1.AuditRefused, Status: 400}, {Result: v1.AuditRefused, Status: 400}, {Result: v1.AuditDone, Status: 204, By: "passphrase", As: "passphrase"}, {Result: v1.AuditDone, Status: 204, Detail: "it was open already"}} {
		got := read.Records[i]
		if got.Result != want.Result || got.Status != want.Status || got.By != want.By || got.As != want.As || got.Detail != want.Detail || got.From != here || got.Action != "unseal" {
			t.Errorf("record %d is %+v, and should be %+v", i, got, want)
		}
	}
}

// TestUnsealAttempts checks that who gives wrong passphrases is not heard for a while, with
// the right one neither, and that nobody else is kept out by that.
func TestUnsealAttempts(t *testing.T) {
	t.Parallel()
	s := newSealedSite(t, strongbox.Target{Way: strongbox.Passphrase, Secret: []byte(passphrase)})
	for range maxAttempts {
		s.want(s.unseal(here, "wrong"), 403, "is wrong")
	}
	for _, text := range []string{"wrong", passphrase} {
		w := s.unseal(here, text)
		s.want(w, 429, "too many wrong passphrases have come from 192.0.2.1; try again in ")
		if w.Header().Get("Retry-After") == "" {
			t.Error("it is not told when to try again")
		}
	}
	s.want(s.ask("GET", "/readyz", here, ""), 503, "strongbox sealed")
	s.want(s.unseal(elsewhere, passphrase), 204, "")
}

// TestUnsealsAtOnce checks that attempts which come at once are not more than those that come
// in turn.
func TestUnsealsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSealedSite(t, strongbox.Target{Way: strongbox.Passphrase, Secret: []byte(passphrase)})
	var tried, refused atomic.Int32
	var all sync.WaitGroup
	for range 4 * maxAttempts {
		all.Go(func() {
			switch s.unseal(here, "wrong").Code {
			case http.StatusForbidden:
				tried.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
			}
		})
	}
	all.Wait()
	if tried.Load() != maxAttempts || refused.Load() != 3*maxAttempts {
		t.Errorf("%d were tried, and %d refused", tried.Load(), refused.Load())
	}
}

// TestUnsealKeyFile checks that no passphrase opens what a key file opens, and that the
// answer says which one.
func TestUnsealKeyFile(t *testing.T) {
	t.Parallel()
	s := newSealedSite(t, strongbox.Target{Way: strongbox.Credential, Name: "tpm", Secret: []byte(strings.Repeat("k", 32))})
	s.want(s.unseal(here, passphrase), 409, "no passphrase opens it: strongbox sealed: it is opened by the credential tpm of systemd")
	s.want(s.ask("GET", "/v1/state/tenants", here, ""), 503, "with LoadCredentialEncrypted=tpm")
}

// TestSealedIsQuick checks that a site says that it is sealed while it tries a passphrase,
// which takes a while.
func TestSealedIsQuick(t *testing.T) {
	t.Parallel()
	trying, ended := make(chan struct{}), make(chan struct{})
	s := newSealedSite(t, strongbox.Target{Way: strongbox.Passphrase, Secret: []byte(passphrase)})
	s.handler = New(Options{Site: "test", Tenants: Fixed{}, Strongbox: dawdler{trying: trying, ended: ended}, Log: slog.New(slog.DiscardHandler)})
	var unsealing sync.WaitGroup
	unsealing.Go(func() { s.want(s.unseal(here, passphrase), 403, "is wrong") })
	<-trying
	s.want(s.ask("GET", "/v1/state/tenants", elsewhere, ""), 503, "strongbox sealed")
	close(ended)
	unsealing.Wait()
}

// dawdler is a strongbox that tries a passphrase until ended is closed.
type dawdler struct {
	Strongbox

	trying, ended chan struct{}
}

func (s dawdler) Sealed() error      { return &strongbox.SealedError{Why: "a test"} }
func (s dawdler) Way() strongbox.Way { return strongbox.Passphrase }
func (s dawdler) Unseal([]byte) error {
	close(s.trying)
	<-s.ended
	return strongbox.ErrWrong
}
