package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const password = "correct horse"

// user makes the user ann on the site's machine, as the command line does.
func (c *caller) user(allow ...access.Role) {
	c.t.Helper()
	local, err := site.OpenLocal(c.t.Context(), site.LocalOptions{Dir: c.dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.t.Fatal(err)
	}
	api, err := client.New(client.Options{Endpoint: "http://site", Transport: local, Retries: -1})
	if err == nil {
		err = api.SetUser(c.t.Context(), "demo", v1.User{Name: "ann", TokenPolicies: allow, Password: password})
		api.Close()
	}
	if err = errors.Join(err, local.Close()); err != nil {
		c.t.Fatal(err)
	}
}

// session is what Avassa's clients read of a login.
type session struct {
	Token     string
	ExpiresIn int `json:"expires-in"`
	Expires   time.Time
	Creation  time.Time `json:"creation-time"`
	Renewal   time.Time `json:"renewal-time"`
	Accessor  string
}

func (c *caller) session(a answer) session {
	c.t.Helper()
	var s session
	if err := json.Unmarshal([]byte(a.body), &s); err != nil || a.status != http.StatusOK {
		c.t.Fatalf("answered %d %s, %v", a.status, a.body, err)
	}
	return s
}

// TestLogin logs in as Avassa's clients do, with no token, uses the token and
// refreshes it.
func TestLogin(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.user(access.Operator)
	none := []string{"Authorization", ""}
	a := c.call("POST", "/v1/login", `{"username":"ann","password":"`+password+`","tenant":"demo","otp":"","cookie":false}`, none...)
	got := c.session(a)
	// The client for Python reads six digits of a second; that for Rust fails without any of these.
	form := regexp.MustCompile(`"expires":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z".*"creation-time":"[^"]*\.\d{6}Z","renewal-time":"[^"]*\.\d{6}Z","totp-required":false,"totp-enabled":false,"passkey-required":false,"passkey-enabled":false`)
	if !form.MatchString(a.body) || got.ExpiresIn != 12*60*60 || time.Until(got.Expires) > 12*time.Hour || !regexp.MustCompile(`^\w{8}(-\w{4}){3}-\w{12}$`).MatchString(got.Accessor) {
		t.Errorf("it is answered %s", a.body)
	}
	mine := []string{"Authorization", "Bearer " + got.Token}
	c.want(c.call("GET", statePath, "", mine...), 200, "idle")
	c.want(c.call("PUT", configPath, body, mine...), 403, "(operator) does not have the right")
	c.want(c.call("GET", tokensPath, ""), 200, `"login":"user"`)
	for _, empty := range []string{"", "{}"} {
		if again := c.session(c.call("POST", "/v1/state/strongbox/token/refresh", empty, mine...)); again.Token != got.Token || !again.Creation.Equal(got.Creation) || again.Renewal.Before(got.Renewal) {
			t.Errorf("it is refreshed to %+v", again)
		}
	}
	c.want(c.call("POST", "/v1/state/strongbox/token/refresh", `{"ttl":1}`, mine...), 400, "has no body")
	c.want(c.call("POST", "/v1/state/strongbox/token/refresh", ""), 400, "the token is not that of a login")
	c.want(c.call("POST", "/v1/state/strongbox/token/refresh", "", none...), 401, "has no token")
	c.user(access.Viewer)
	c.want(c.call("GET", statePath, "", mine...), 401, "the token is unknown")
}

// TestApproleLogin logs in as a program does, with the secret-id in both places.
func TestApproleLogin(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	role, err := c.dev.Logins.Approles.Write(principal.Approle{Tenant: "demo", Name: "tf", Allow: []access.Role{access.Viewer, access.Writes}}, nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	secret, err := c.dev.Logins.Approles.AddSecret(role, 2, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	none := []string{"Authorization", ""}
	got := c.session(c.call("POST", "/v1/approle-login", `{"role-id":"`+secret+`","secret-id":"`+secret+`"}`, none...))
	c.want(c.call("PUT", configPath, body, "Authorization", "Bearer "+got.Token), 201, "")
	c.session(c.call("POST", "/v1/approle-login", `{"role-id":"`+role.RoleID+`","secret-id":"`+secret+`"}`, none...))
	a := c.want(c.call("POST", "/v1/approle-login", `{"role-id":"`+role.RoleID+`","secret-id":"`+secret+`"}`, none...), 401, "the login is wrong")
	if strings.Contains(a.body, secret) {
		t.Errorf("the secret is in the answer: %s", a.body)
	}
	c.want(c.call("POST", "/v1/approle-login", `{}`, none...), 400, "secret-id: ")
}

// TestWrongLogins checks that the answer to a wrong login is the same whatever is wrong,
// that it repeats no password, and that the place it comes from is not heard after some.
func TestWrongLogins(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.user(access.Operator)
	none := []string{"Authorization", ""}
	c.want(c.call("POST", "/v1/login", `{"password":"x"}`, none...), 400, "username: ")
	c.want(c.call("POST", "/v1/login", `{"username":"ann"}`, none...), 400, "password: ")
	c.want(c.call("POST", "/v1/login", `{"username":"ann","password":"x","tenant":"A"}`, none...), 400, "tenant: ")
	c.want(c.call("POST", "/v1/login", `{"username":"ann","pass":"hunter22"}`, none...), 400, "pass")
	var answers []string
	for _, wrong := range []string{
		`{"username":"ann","password":"hunter22"}`, `{"username":"eve","password":"hunter22"}`,
		`{"username":"ann","password":"hunter22","tenant":"demo"}`, `{"username":"ann","password":"hunter22","tenant":"beta"}`,
		`{"username":"../ann","password":"hunter22"}`,
	} {
		a := c.want(c.call("POST", "/v1/login", wrong, none...), 401, "the login is wrong")
		answers = append(answers, a.body)
		if strings.Contains(a.body, "hunter22") {
			t.Errorf("the password is in %s", a.body)
		}
	}
	if len(slices.Compact(answers)) != 1 {
		t.Errorf("the answers differ: %s", answers)
	}
	for range 5 {
		c.call("POST", "/v1/login", `{"username":"ann","password":"hunter22"}`, none...)
	}
	a := c.want(c.call("POST", "/v1/login", `{"username":"ann","password":"`+password+`"}`, none...), 429, "too many logins have failed from 127.0.0.1")
	if a.header.Get("Retry-After") == "" {
		t.Error("it does not tell when to try again")
	}
	c.want(c.call("GET", statePath, ""), 200, "idle")
}

// TestManyLogins checks that a flood of logins is refused or waits, and that other requests
// do not wait for it.
func TestManyLogins(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.user(access.Operator)
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
	defer stop()
	var flood sync.WaitGroup
	var mu sync.Mutex
	statuses := map[int]int{}
	for range 20 {
		flood.Go(func() {
			for ctx.Err() == nil {
				a := c.call("POST", "/v1/login", `{"username":"ann","password":"`+password+`"}`, "Authorization", "")
				mu.Lock()
				statuses[a.status]++
				mu.Unlock()
			}
		})
	}
	var took []time.Duration
	for ctx.Err() == nil {
		begun := time.Now()
		c.want(c.call("GET", statePath, ""), 200, "idle")
		took = append(took, time.Since(begun))
		time.Sleep(10 * time.Millisecond)
	}
	flood.Wait()
	slices.Sort(took)
	t.Logf("logins by status: %v; other requests: %d, half within %s, 99%% within %s", statuses, len(took), took[len(took)/2], took[len(took)*99/100])
	if statuses[200] == 0 || statuses[503] == 0 || len(statuses) != 2 {
		t.Errorf("the logins are answered %v", statuses)
	}
	if half := took[len(took)/2]; half > time.Second {
		t.Errorf("half of the other requests take longer than %s", half)
	}
}
