package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const (
	passwordPath = "/v1/state/strongbox/password"
	newPassword  = "another horse"
)

// loggedIn logs a user in and returns the header of its token.
func (c *caller) loggedIn(name, password string) string {
	c.t.Helper()
	return "Bearer " + c.session(c.call("POST", "/v1/login", `{"username":"`+name+`","password":"`+password+`"}`, "Authorization", "")).Token
}

func passwords(current, next string) string {
	return `{"current-password":"` + current + `","password":"` + next + `"}`
}

// TestOwnPassword changes the password of the user who asks: what ends by that, what goes on,
// and what is recorded.
func TestOwnPassword(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.user(access.Viewer)
	c.want(c.call("PUT", usersPath+"/bob", `{"password":"`+password+`","token-policies":["viewer"]}`), 201, "")
	mine, other, bob := c.loggedIn("ann", password), c.loggedIn("ann", password), c.loggedIn("bob", password)
	a := c.want(c.call("POST", passwordPath, passwords(password, newPassword), "Authorization", mine), 200, `"name":"ann"`)
	var changed v1.PasswordChanged
	id := principal.ID(strings.TrimPrefix(other, "Bearer "))
	if err := json.Unmarshal([]byte(a.body), &changed); err != nil || len(changed.Withdrawn) != 1 || changed.Withdrawn[0].ID != id || time.Since(changed.PasswordSet) > time.Minute {
		t.Errorf("it is answered %s, %v", a.body, err)
	}
	for name, row := range map[string]struct {
		token  string
		status int
	}{"the login that asked": {mine, 200}, "its other login": {other, 401}, "the login of another user": {bob, 200}, "a token": {"Bearer " + c.dev.Token, 200}} {
		if a := c.call("GET", statePath, "", "Authorization", row.token); a.status != row.status {
			t.Errorf("%s is answered %d %s", name, a.status, a.body)
		}
	}
	c.want(c.call("POST", "/v1/state/strongbox/token/refresh", "", "Authorization", mine), 200, "")
	c.want(c.call("POST", "/v1/login", `{"username":"ann","password":"`+password+`"}`, "Authorization", ""), 401, "the login is wrong")
	c.loggedIn("ann", newPassword)
	c.loggedIn("bob", password)
	c.want(c.call("GET", usersPath+"/ann", ""), 200, `"token-policies":["viewer"]`)
	c.want(c.call("POST", passwordPath, passwords("wrong", password), "Authorization", mine), 403, "the current password is wrong")
	var records []string
	for _, r := range c.audit(auditPath+"?after=1&object=user/ann", "Bearer "+c.dev.Token).Records {
		if r.By != "ann" || r.As != v1.AuditUser || strings.Contains(r.Detail+r.Error+r.Diff, "horse") {
			t.Errorf("the record is %+v", r)
		}
		records = append(records, r.Action+" "+r.Result+" "+r.Detail+r.Error)
	}
	if got, want := strings.Join(records, "\n"), "change-password done logins withdrawn: "+id[:12]+"\nchange-password refused the current password is wrong"; got != want {
		t.Errorf("the records are\n%s\nnot\n%s", got, want)
	}
}

// TestOwnPasswordIsRefused checks which passwords are refused, and to whom: there is no way
// to name another user, and what is no user has no password.
func TestOwnPasswordIsRefused(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.user(access.Viewer)
	c.want(c.call("PUT", usersPath+"/bob", `{"password":"`+password+`","token-policies":["viewer"]}`), 201, "")
	role, err := c.dev.Logins.Approles.Write(principal.Approle{Tenant: "demo", Name: "tf", Allow: []access.Role{access.Admin}}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret, err := c.dev.Logins.Approles.AddSecret(role, 1, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	approle := "Bearer " + c.session(c.call("POST", "/v1/approle-login", `{"secret-id":"`+secret+`"}`, "Authorization", "")).Token
	ann, good := c.loggedIn("ann", password), passwords(password, newPassword)
	for name, row := range map[string]struct {
		method, path, token, body string
		status                    int
		part                      string
	}{
		"a short one":                      {"POST", passwordPath, ann, passwords(password, "short"), 400, "password: it is too short or too long; use 8 characters at least"},
		"the same":                         {"POST", passwordPath, ann, passwords(password, password), 400, "password: it is the one that you have"},
		"none":                             {"POST", passwordPath, ann, passwords(password, ""), 400, `password: \"\" is missing`},
		"a long one":                       {"POST", passwordPath, ann, passwords(password, strings.Repeat("x", 1025)), 400, `password: \"\" is missing or too long`},
		"without the current one":          {"POST", passwordPath, ann, `{"password":"` + newPassword + `"}`, 400, `current-password: \"\" is missing`},
		"the current one is wrong":         {"POST", passwordPath, ann, passwords(newPassword, "a third horse"), 403, "the current password is wrong"},
		"of another user":                  {"POST", passwordPath, ann, `{"name":"bob",` + good[1:], 400, "name"},
		"of another user, by path":         {"POST", passwordPath + "/bob", ann, good, 404, ""},
		"of another user, as who may not":  {"PATCH", usersPath + "/bob", ann, `{"password":"` + newPassword + `"}`, 403, "does not have the right"},
		"its own, without the current one": {"PATCH", usersPath + "/ann", ann, `{"password":"` + newPassword + `"}`, 403, "does not have the right"},
		"of a tenant":                      {"POST", "/v1/state/tenants/demo/strongbox/password", ann, good, 404, ""},
		"by an approle":                    {"POST", passwordPath, approle, good, 400, "not that of the login of a user"},
		"by a token":                       {"POST", passwordPath, "Bearer " + c.dev.Token, good, 400, "not that of the login of a user"},
		"by nobody":                        {"POST", passwordPath, "", good, 401, "no token"},
		"by a token in the URL":            {"POST", passwordPath + "?token=" + strings.TrimPrefix(ann, "Bearer "), "", good, 401, ""},
	} {
		a := c.call(row.method, row.path, row.body, "Authorization", row.token)
		if a.status != row.status || !strings.Contains(a.body, row.part) || strings.Contains(a.body, "horse") {
			t.Errorf("%s is answered %d %s", name, a.status, a.body)
		}
	}
	for range maxAttempts - 1 {
		c.want(c.call("POST", passwordPath, passwords("wrong", newPassword), "Authorization", ann), 403, "the current password is wrong")
	}
	c.want(c.call("POST", passwordPath, good, "Authorization", ann), 429, "too many logins have failed from 127.0.0.1")
	for _, name := range []string{"ann", "bob"} {
		if _, err := c.dev.Logins.User(t.Context(), "", "demo", name, password, time.Now); err != nil {
			t.Errorf("%s has another password: %v", name, err)
		}
	}
}

// TestOwnPasswordOfAnyRole checks that a user needs no role to change its password, and that
// it has none more by that.
func TestOwnPasswordOfAnyRole(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.want(c.call("PUT", "/v1/config/tenants/demo/policy/policies/nothing", `{"rest-api":{"rules":[]}}`), 201, "")
	for _, role := range append(access.Roles(), "nothing") {
		c.want(c.call("PUT", usersPath+"/"+role, `{"password":"`+password+`","token-policies":["`+role+`"]}`), 201, "")
		mine := c.loggedIn(role, password)
		c.want(c.call("POST", passwordPath, passwords(password, newPassword), "Authorization", mine), 200, `"withdrawn":[]`)
		c.want(c.call("GET", usersPath+"/"+role, ""), 200, `"token-policies":["`+role+`"]`)
	}
	// A user of all tenants names none.
	root := principal.User{Tenant: access.AnyTenant, Name: "root", Allow: []access.Role{access.Viewer}}
	if _, err := c.dev.Logins.WriteUser(t.Context(), root, password, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	c.want(c.call("POST", passwordPath, passwords(password, newPassword), "Authorization", c.loggedIn("root", password)), 200, `"name":"root"`)
}

// TestOwnPasswordsAtOnce checks that of changes at once, by the same password, one is made.
func TestOwnPasswordsAtOnce(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.user(access.Viewer)
	var all sync.WaitGroup
	var mu sync.Mutex
	made := 0
	tokens := []string{c.loggedIn("ann", password), c.loggedIn("ann", password), c.loggedIn("ann", password)}
	for i, token := range tokens {
		all.Go(func() {
			change := func() answer {
				return c.call("POST", passwordPath, passwords(password, newPassword+strings.Repeat("!", i)), "Authorization", token)
			}
			a := change()
			for a.status == http.StatusServiceUnavailable && t.Context().Err() == nil {
				a = change() // On a machine with much to do, one waits too long for its turn, and may try again.
			}
			switch a.status {
			case http.StatusOK:
				mu.Lock()
				defer mu.Unlock()
				made++
			case http.StatusUnauthorized, http.StatusForbidden, http.StatusConflict:
			default:
				t.Errorf("answered %d %s", a.status, a.body)
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Errorf("%d were made", made)
	}
}
