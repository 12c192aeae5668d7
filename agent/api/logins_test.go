package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
)

const (
	usersPath     = "/v1/config/tenants/demo/strongbox/authentication/userpass"
	approlesPath  = "/v1/config/tenants/demo/strongbox/authentication/approles"
	approlesState = "/v1/state/tenants/demo/strongbox/authentication/approles"
	usersState    = "/v1/state/tenants/demo/strongbox/authentication/userpass"
)

// login logs in and returns the header with the token.
func (c *caller) login(name, password string) []string {
	c.t.Helper()
	a := c.call("POST", "/v1/login", `{"username":"`+name+`","tenant":"demo","password":"`+password+`"}`, "Authorization", "")
	return []string{"Authorization", "Bearer " + c.session(a).Token}
}

// TestUsersOfTheAPI makes, lists, changes and removes users. A password is shown once and
// kept as a hash alone; what is changed counts for the logins at once.
func TestUsersOfTheAPI(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.want(c.call("POST", usersPath+"?validate=true", `{"name":"ann","token-policies":["operator"]}`), 204, "")
	c.want(c.call("GET", usersPath+"/ann", ""), 404, `tenant \"demo\" has no user ann`)
	a := c.want(c.call("POST", usersPath, `{"name":"ann","token-policies":["operator"],"token-ttl":"1h"}`), 201, `"token-ttl":"1h"`)
	var made struct{ Password string }
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || len(made.Password) < 15 || a.header.Get("Location") != usersPath+"/ann" {
		t.Fatalf("it is made as %s at %s", a.body, a.header.Get("Location"))
	}
	c.want(c.call("POST", usersPath, `{"name":"ann","token-policies":["operator"]}`), 409, `the user \"ann\" is there already`)
	got := c.want(c.call("GET", "/v1/config/strongbox/authentication/userpass/ann", ""), 200, `{"name":"ann","token-policies":["operator"],"token-ttl":"1h"}`)
	if tag := got.header.Get("ETag"); tag == "" || tag != a.header.Get("ETag") {
		t.Errorf("its ETag is %s, after %s", tag, a.header.Get("ETag"))
	}
	c.want(c.call("GET", usersPath+"?keys=true", ""), 200, `["ann"]`)
	c.want(c.call("GET", usersPath, ""), 200, `[{"name":"ann","token-policies":["operator"],"token-ttl":"1h"}]`)
	c.want(c.call("GET", usersState, ""), 200, `"password-set":"`)
	c.want(c.call("GET", usersState+"/ann", ""), 200, `"password-set":"`)
	c.want(c.call("GET", usersState+"/eve", ""), 404, "has no user")

	ann := c.login("ann", made.Password)
	if a := c.call("POST", "/v1/state/strongbox/token/refresh", "", ann...); c.session(a).ExpiresIn != 3600 {
		t.Errorf("the token is good for %s", a.body)
	}
	c.want(c.call("POST", statePath+"/start", `{}`, ann...), 404, "") // Nothing is configured.
	patched := c.want(c.call("PATCH", usersPath+"/ann", `{"token-policies":["viewer"],"token-ttl":null}`, "If-Match", got.header.Get("ETag")), 204, "")
	c.want(c.call("PATCH", usersPath+"/ann", `{"token-policies":["admin"]}`, "If-Match", got.header.Get("ETag")), 412, "has ETag "+strings.ReplaceAll(patched.header.Get("ETag"), `"`, `\"`))
	c.want(c.call("POST", statePath+"/start", `{}`, ann...), 401, "the token is unknown")
	ann = c.login("ann", made.Password)
	c.want(c.call("POST", statePath+"/start", `{}`, ann...), 403, "(viewer) does not have the right")
	c.want(c.call("PATCH", usersPath+"/ann", `{"password":"another one"}`), 204, "")
	c.want(c.call("GET", statePath, "", ann...), 401, "the token is unknown")
	ann = c.login("ann", "another one")
	c.want(c.call("PUT", usersPath+"/ann", `{"token-policies":["approver"]}`), 204, "")
	c.want(c.call("GET", statePath, "", ann...), 401, "the token is unknown")
	c.want(c.call("GET", usersPath+"/ann", ""), 200, `{"name":"ann","token-policies":["approver"]}`)
	c.want(c.call("PUT", usersPath+"/bob", `{"password":"long enough","token-policies":["viewer"]}`, "If-None-Match", "*"), 201, "")
	c.login("bob", "long enough")

	files, err := filepath.Glob(c.dir + "/credentials/users/*.json")
	if err != nil || len(files) != 2 {
		t.Fatalf("there are %v, %v", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), "$argon2id$") || strings.Contains(string(text), "another one") || strings.Contains(string(text), "long enough") {
			t.Errorf("%s holds %s, %v", name, text, err)
		}
	}
	c.want(c.call("DELETE", usersPath+"/ann?validate=true", ""), 204, "")
	c.want(c.call("DELETE", usersPath+"/ann", "", "If-Match", got.header.Get("ETag")), 412, "")
	c.want(c.call("DELETE", usersPath+"/ann", ""), 204, "")
	c.want(c.call("GET", statePath, "", ann...), 401, "the token is unknown")
	c.want(c.call("DELETE", usersPath+"/ann", ""), 404, "has no user ann")
	if a := c.call("GET", tokensPath, ""); strings.Contains(a.body, `"ann"`) {
		t.Errorf("tokens of the removed user are there: %s", a.body)
	}
}

// TestRemovedUserIsCutOff checks that the event stream of a user ends with the user.
func TestRemovedUserIsCutOff(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.want(c.call("PUT", usersPath+"/ann", `{"password":"long enough","token-policies":["viewer"]}`), 201, "")
	ann := c.login("ann", "long enough")
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.dev.Endpoint+statePath+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set(ann[0], ann[1])
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	if !lines.Scan() {
		t.Fatal("nothing comes")
	}
	c.want(c.call("DELETE", usersPath+"/ann", ""), 204, "")
	begun := time.Now()
	for lines.Scan() {
	}
	if ctx.Err() != nil {
		t.Error("the stream goes on")
	}
	t.Logf("it ends after %s", time.Since(begun))
}

// TestApprolesOfTheAPI makes, changes and removes approles and secret-ids.
func TestApprolesOfTheAPI(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	var made struct {
		RoleID string `json:"role-id"`
	}
	a := c.want(c.call("POST", approlesPath, `{"name":"tf","token-policies":["read"],"secret-id-num-uses":2,"secret-id-ttl":"0s","token-ttl":"10m","token-max-ttl":"1h"}`), 201, `"secret-id-ttl":"0s"`)
	if err := json.Unmarshal([]byte(a.body), &made); err != nil || len(made.RoleID) != 36 {
		t.Fatalf("it is made as %s", a.body)
	}
	c.want(c.call("POST", approlesPath, `{"name":"tf","token-policies":["read"]}`), 409, `the approle \"tf\" is there already`)
	c.want(c.call("GET", approlesPath, ""), 200, `[{"name":"tf","token-policies":["read"],"secret-id-num-uses":2,"secret-id-ttl":"0s","token-ttl":"10m","token-max-ttl":"1h"}]`)
	c.want(c.call("GET", approlesState+"?count=true", ""), 200, `1`)
	c.want(c.call("GET", approlesState+"/tf?fields=role-id", ""), 200, `{"role-id":"`+made.RoleID+`"}`)

	type secretID struct {
		ID      string
		Text    string `json:"secret-id"`
		Uses    *int   `json:"secret-id-num-uses"`
		Expires *time.Time
	}
	secret := func(body string) (s secretID) {
		t.Helper()
		a := c.want(c.call("POST", approlesState+"/tf/secret-ids", body), 201, `"secret-id":"`)
		if err := json.Unmarshal([]byte(a.body), &s); err != nil || a.header.Get("Location") != approlesState+"/tf/secret-ids/"+s.ID {
			t.Fatalf("%v: %s", err, a.body)
		}
		return s
	}
	login := func(s secretID) answer {
		t.Helper()
		return c.call("POST", "/v1/approle-login", `{"role-id":"`+made.RoleID+`","secret-id":"`+s.Text+`"}`, "Authorization", "")
	}
	two, one := secret(``), secret(`{"secret-id-num-uses":1,"secret-id-ttl":"10m"}`)
	if two.Uses == nil || *two.Uses != 2 || two.Expires != nil || *one.Uses != 1 || time.Until(*one.Expires) > 10*time.Minute {
		t.Errorf("they are %+v and %+v", two, one)
	}
	got := c.session(login(one))
	if got.ExpiresIn != 600 {
		t.Errorf("the token is good for %d s", got.ExpiresIn)
	}
	c.want(login(one), 401, "the login is wrong")
	c.session(login(two))
	list := c.want(c.call("GET", approlesState+"/tf/secret-ids", ""), 200, `"id":"`+two.ID+`","role-id":"`+made.RoleID+`","secret-id-num-uses":1`)
	if strings.Contains(list.body, two.Text) || strings.Contains(list.body, one.ID) {
		t.Errorf("the list is %s", list.body)
	}
	c.want(c.call("DELETE", approlesState+"/tf/secret-ids/"+two.ID, ""), 204, "")
	c.want(c.call("DELETE", approlesState+"/tf/secret-ids/"+two.ID, ""), 404, "has no secret-id")
	c.want(login(two), 401, "the login is wrong")

	mine := []string{"Authorization", "Bearer " + got.Token}
	c.want(c.call("PATCH", approlesPath+"/tf", `{"token-policies":["start"]}`), 204, "")
	c.want(c.call("GET", statePath, "", mine...), 401, "the token is unknown")
	c.want(c.call("GET", approlesState+"/tf", ""), 200, made.RoleID)
	left := secret(``)
	c.want(c.call("DELETE", approlesPath+"/tf", ""), 204, "")
	c.want(c.call("GET", statePath, "", mine...), 401, "the token is unknown")
	c.want(login(left), 401, "the login is wrong")
	c.want(c.call("GET", approlesState+"/tf/secret-ids", ""), 404, `has no approle`)
	c.want(c.call("POST", approlesState+"/tf/secret-ids", ""), 404, `has no approle`)
	c.want(c.call("PUT", approlesPath+"/tf", `{"token-policies":["read"]}`), 201, "")
	c.want(login(left), 401, "the login is wrong")
	if a := c.call("GET", approlesState+"/tf", ""); strings.Contains(a.body, made.RoleID) {
		t.Errorf("another approle of the name has the role-id: %s", a.body)
	}
}

// TestWrongUsersOfTheAPI checks what is answered to a body or a path that is wrong.
func TestWrongUsersOfTheAPI(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.want(c.call("PUT", usersPath+"/ann", `{"password":"long enough","token-policies":["viewer"]}`), 201, "")
	for name, row := range map[string]struct {
		method, path, body string
		status             int
		part               string
	}{
		"no body":                        {"POST", usersPath, ``, 400, ""},
		"no name":                        {"POST", usersPath, `{"token-policies":["viewer"]}`, 400, `name: \"\" is invalid; use 1 to`},
		"a name that is a path":          {"POST", usersPath, `{"name":"../x","token-policies":["viewer"]}`, 400, `name: \"../x\" is invalid`},
		"no role":                        {"POST", usersPath, `{"name":"x"}`, 400, `token-policies: without a role nothing is allowed`},
		"a role that there is not":       {"POST", usersPath, `{"name":"x","token-policies":["root"]}`, 400, `root`},
		"a short password":               {"POST", usersPath, `{"name":"x","token-policies":["viewer"],"password":"hunter2"}`, 400, `password: it is too short or too long; use 8 characters`},
		"a new user without a password":  {"PUT", usersPath + "/x", `{"token-policies":["viewer"]}`, 400, `password: it is missing`},
		"another name than the path":     {"PUT", usersPath + "/ann", `{"name":"bob","token-policies":["viewer"]}`, 400, `name: \"bob\" is not the name in the path`},
		"a strange name in the path":     {"PUT", usersPath + "/a%20b", `{"name":"a b"}`, 400, `name: \"a b\" is invalid; use 1 to 63 of a-z, 0-9, \"-\", \".\", \"_\" and \"@\"`},
		"a name that begins with a dot":  {"PUT", usersPath + "/.ann", `{"token-policies":["viewer"]}`, 400, `name: \".ann\" is invalid; use 1 to 63 of a-z, 0-9, \"-\", \".\", \"_\" and \"@\", with no \"-\" or \".\" at the start`},
		"a strange name of an approle":   {"PUT", approlesPath + "/Tf", `{"no":"member"}`, 400, `name: \"Tf\" is invalid; use 1 to 63`},
		"a strange name, to be changed":  {"PATCH", usersPath + "/a%20b", `{"token-policies":["viewer"]}`, 404, `has no user a b`},
		"a time that is none":            {"PATCH", usersPath + "/ann", `{"token-ttl":"soon"}`, 400, `token-ttl`},
		"an unknown member":              {"PATCH", usersPath + "/ann", `{"tenant":"other"}`, 400, `tenant`},
		"nobody is changed":              {"PATCH", usersPath + "/eve", `{"token-policies":["viewer"]}`, 404, `has no user eve`},
		"a user that is there, as new":   {"PUT", usersPath + "/ann?validate=true", `{"token-policies":["root"]}`, 400, `root`},
		"uses below zero":                {"POST", approlesPath, `{"name":"x","token-policies":["viewer"],"secret-id-num-uses":-1}`, 400, `secret-id-num-uses`},
		"a secret-id of nobody":          {"POST", approlesState + "/x/secret-ids", ``, 404, `has no approle`},
		"a secret-id that is for ever":   {"POST", approlesState + "/x/secret-ids", `{"secret-id-ttl":"9999999d"}`, 400, `secret-id-ttl`},
		"a user of another tenant":       {"PUT", "/v1/config/tenants/other/strongbox/authentication/userpass/eve", `{"password":"long enough","token-policies":["viewer"]}`, 403, `is not valid for tenant`},
		"a user of all tenants":          {"PUT", "/v1/config/tenants/*/strongbox/authentication/userpass/eve", `{"password":"long enough","token-policies":["viewer"]}`, 403, `is not valid for tenant`},
		"a parameter that is not there":  {"GET", usersPath + "?all=true", ``, 400, `is not a query parameter`},
		"a user whose name has a slash":  {"GET", usersPath + "/a%2Fb", ``, 404, `has no user`},
		"an approle with another's name": {"PUT", approlesPath + "/tf", `{"name":"x","token-policies":["viewer"]}`, 400, `is not the name in the path`},
	} {
		a := c.call(row.method, row.path, row.body)
		if a.status != row.status || !strings.Contains(a.body, row.part) {
			t.Errorf("%s: answered %d %s; want %d with %s", name, a.status, a.body, row.status, row.part)
		}
		if strings.Contains(a.body, "hunter2") || strings.Contains(a.body, "long enough") {
			t.Errorf("%s: the answer has the password: %s", name, a.body)
		}
	}
	all := c.token(access.AnyTenant, access.Admin)
	c.want(c.call("POST", "/v1/config/strongbox/authentication/userpass", `{"name":"root","token-policies":["admin"]}`, "Authorization", all), 201, `"password":"`)
	c.want(c.call("GET", "/v1/config/strongbox/authentication/userpass", "", "Authorization", all), 200, `"name":"root"`)
	if a := c.call("GET", usersPath, "", "Authorization", all); strings.Contains(a.body, "root") {
		t.Errorf("a tenant has a user of all: %s", a.body)
	}
}

// TestNoRoleLetsIn tries each operation on users, approles, secret-ids and tokens with each
// role and right but admin.
func TestNoRoleLetsIn(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.want(c.call("PUT", approlesPath+"/tf", `{"token-policies":["calendar"]}`), 201, "")
	for _, role := range access.Roles() {
		if role == access.Admin {
			continue
		}
		mine := []string{"Authorization", c.token("demo", role)}
		for _, row := range [][3]string{
			{"GET", usersPath},
			{"GET", usersPath + "/ann"},
			{"GET", usersState},
			{"GET", usersState + "/ann"},
			{"GET", approlesPath},
			{"GET", approlesState + "/tf"},
			{"POST", usersPath, `{"name":"ann","token-policies":["calendar"]}`},
			{"PUT", usersPath + "/ann", `{"token-policies":["calendar"]}`},
			{"PATCH", usersPath + "/ann", `{"password":"long enough"}`},
			{"DELETE", usersPath + "/ann"},
			{"POST", approlesPath, `{"name":"x","token-policies":["calendar"]}`},
			{"PUT", approlesPath + "/tf", `{"token-policies":["calendar"]}`},
			{"PATCH", approlesPath + "/tf", `{}`},
			{"DELETE", approlesPath + "/tf"},
			{"GET", approlesState + "/tf/secret-ids"},
			{"POST", approlesState + "/tf/secret-ids", ``},
			{"DELETE", approlesState + "/tf/secret-ids/1"},
			{"POST", tokensPath, `{"name":"x","allow":["calendar"]}`},
			{"GET", tokensPath},
		} {
			if a := c.call(row[0], row[1], row[2], mine...); a.status != 403 || !strings.Contains(a.body, "use a token with admin") {
				t.Errorf("%s: %s %s is answered %d %s", role, row[0], row[1], a.status, a.body)
			}
		}
	}
}
