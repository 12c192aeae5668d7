package fakeapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	identitytenant "github.com/osupgrade/terraform-provider-osupgrade/agent/identity/tenant"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
)

// SessionToken is how each token begins, also that of a login. A test can look for it in
// whatever was written.
const SessionToken = "osu_"

// identity is who is let in. Users and approles belong to all tenants and may do everything.
type identity struct {
	token  string
	tokens *principal.Tokens
	logins *principal.Logins
	// policies are those of the tenants.
	policies *principal.Policies
	tenants  tenantObjects

	mu   sync.Mutex
	made int
	// renamed are the tokens of logins at Avassa that were refreshed, as clients have them, by
	// the tokens that they are here.
	renamed map[string]string
}

func newIdentity(t testing.TB) identity {
	t.Helper()
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	logins := principal.NewLogins(principal.NewUsers(&credentialtest.Memory{}), principal.NewApproles(&credentialtest.Memory{}, &credentialtest.Memory{}), tokens)
	token, err := tokens.Add(principal.Token{Name: "fakeapi", Tenant: access.AnyTenant, Allow: append(access.Rights(), access.Admin)})
	if err != nil {
		t.Fatal(err)
	}
	return identity{token: token, tokens: tokens, logins: logins, policies: principal.NewPolicies(&credentialtest.Memory{}), tenants: tenantObjects{identitytenant.New(&credentialtest.Memory{})}, renamed: map[string]string{}}
}

// must panics on an error of the temporary folder.
func must[T any](value T, err error) T {
	if err != nil {
		panic("fakeapi: " + err.Error())
	}
	return value
}

// SetUser makes a user, or gives one another password. Its logins are good for life; zero
// is the time that is usual.
func (s *Server) SetUser(name, password string, life ...time.Duration) {
	user := principal.User{Tenant: access.AnyTenant, Name: name, Allow: access.Rights()}
	for _, l := range life {
		user.Life = principal.Life{Seconds: int(l / time.Second)}
	}
	must(s.identity.logins.WriteUser(context.Background(), user, password, nil, time.Now()))
}

// SetUserOf makes a user of a tenant, or changes it.
func (s *Server) SetUserOf(user principal.User, password string) {
	must(s.identity.logins.WriteUser(context.Background(), user, password, nil, time.Now()))
}

// SetApproleOf makes an approle of a tenant, or changes it.
func (s *Server) SetApproleOf(role principal.Approle) {
	must(s.identity.logins.WriteApprole(role, nil, time.Now()))
}

// SetPolicy makes a policy of a tenant, or changes it.
func (s *Server) SetPolicy(p principal.Policy) { must(s.identity.policies.Write(p, nil)) }

// NewApprole makes an approle with a secret-id that is good for so many logins; zero is for
// any number.
func (s *Server) NewApprole(name string, uses int) (roleID, secretID string) {
	role := must(s.identity.logins.Approles.Write(principal.Approle{Tenant: access.AnyTenant, Name: name, Allow: access.Rights()}, nil, time.Now()))
	return role.RoleID, must(s.identity.logins.Approles.AddSecret(role, uses, 0, time.Now()))
}

// EndSessions withdraws the token of each login.
func (s *Server) EndSessions() {
	for _, token := range must(s.identity.tokens.List()) {
		if token.Value.Login == nil {
			continue
		}
		if err := s.identity.tokens.Remove(token.Key); err != nil && !errors.Is(err, os.ErrNotExist) {
			panic("fakeapi: " + err.Error())
		}
	}
}

// Logins is how many logins had success.
func (s *Server) Logins() int {
	s.identity.mu.Lock()
	defer s.identity.mu.Unlock()
	return s.identity.made
}

// sessions counts the logins, and has those at Avassa's server have its form.
func (s *Server) sessions(serve http.Handler) http.Handler {
	const refresh = "/v1/state/strongbox/token/refresh"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, isBearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if isBearer {
			r.Header.Set("Authorization", "Bearer "+s.identity.original(token))
		}
		if r.URL.Path != "/v1/login" && r.URL.Path != "/v1/approle-login" && r.URL.Path != refresh {
			serve.ServeHTTP(w, r)
			return
		}
		done := httptest.NewRecorder()
		serve.ServeHTTP(done, r)
		if done.Code == http.StatusOK {
			if r.URL.Path != refresh {
				s.identity.mu.Lock()
				s.identity.made++
				s.identity.mu.Unlock()
			}
			if s.chosen().avassa {
				s.identity.asAvassa(done, r.URL.Path == refresh)
			}
		}
		replay(w, done)
	})
}

// original is the token that a client means: at Avassa's server a refresh gives another one,
// and the one before is not good any more.
func (i *identity) original(token string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	for original, renamed := range i.renamed {
		switch token {
		case renamed:
			return original
		case original:
			return renamed
		}
	}
	return token
}

// asAvassa turns the answer to a login into that of Avassa's server, which has another
// opinion in each of its members and gives another token with each refresh.
func (i *identity) asAvassa(done *httptest.ResponseRecorder, refreshed bool) {
	var body map[string]any
	if err := json.Unmarshal(done.Body.Bytes(), &body); err != nil {
		panic("fakeapi: the answer to a login is not JSON: " + err.Error())
	}
	body["expires-in"], body["disabled"] = 1209600, false
	body["totp-required"], body["passkey-required"] = false, false
	if original := body["token"].(string); refreshed { //nolint:forcetypeassert // A login has one.
		i.mu.Lock()
		i.renamed[original] = cmp.Or(i.renamed[original], original) + "-r"
		body["token"] = i.renamed[original]
		i.mu.Unlock()
	}
	done.Body.Reset()
	if err := json.NewEncoder(done.Body).Encode(body); err != nil {
		panic("fakeapi: " + err.Error())
	}
}
