package api_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const policiesPath = "/v1/config/tenants/demo/policy/policies"

// policy makes a policy of one rule.
func (c *caller) policy(name, path, operations string) {
	c.t.Helper()
	c.want(c.call("PUT", policiesPath+"/"+name, `{"rest-api":{"rules":[{"path":"`+path+`","operations":`+operations+`}]}}`), 201, "")
}

// TestPoliciesOfTheAPI makes, reads, changes and deletes policies, and checks that a user, a
// token and an approle that name one may do what it allows at the time, and no more.
func TestPoliciesOfTheAPI(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	const night = `{"name":"night","rest-api":{"rules":[{"path":"/v1/*/os-upgrade/**","description":"the night shift","operations":{"all":"reject","read":"allow"}},` +
		`{"path":"/v1/state/os-upgrade/pause","operations":{"execute":"allow"}}]}}`
	c.want(c.call("POST", policiesPath+"?validate=true", night), 204, "")
	made := c.want(c.call("POST", "/v1/config/policy/policies", night), 201, night)
	c.want(c.call("POST", policiesPath, night), 409, `the policy \"night\" is there already`)
	if got := c.want(c.call("GET", policiesPath+"/night", ""), 200, night); got.header.Get("ETag") != made.header.Get("ETag") {
		t.Errorf("its ETag is %s", got.header.Get("ETag"))
	}
	c.want(c.call("GET", policiesPath+"?keys=true", ""), 200, `["night"]`)

	c.want(c.call("PUT", usersPath+"/ann", `{"password":"long enough","token-policies":["night"]}`), 201, "")
	ann := c.login("ann", "long enough")
	token := c.decodeToken(c.want(c.call("POST", tokensPath, `{"name":"ci","allow":["night"]}`), 201, ""))
	c.want(c.call("PUT", approlesPath+"/tf", `{"token-policies":["night","write"]}`), 201, "")
	for _, mine := range [][]string{ann, {"Authorization", "Bearer " + token.Token}} {
		c.want(c.call("GET", statePath, "", mine...), 200, "idle")
		c.want(c.call("GET", "/v1/state/os-upgrade/hosts", "", mine...), 200, "")
		c.want(c.call("POST", statePath+"/pause", `{"reason":"r"}`, mine...), 412, "no run is in progress")
		c.want(c.call("POST", statePath+"/start", `{}`, mine...), 403, "(night) does not have the right to execute this")
		c.want(c.call("PUT", configPath, body, mine...), 403, "(night) does not have the right to update this")
		c.want(c.call("GET", tokensPath, "", mine...), 403, "does not have the right")
		c.want(c.call("GET", "/v1/state/tenants/other/os-upgrade", "", mine...), 403, "is not valid for tenant")
	}
	c.want(c.call("PATCH", policiesPath+"/night", `{"rest-api":{"rules":[]}}`), 204, "")
	c.want(c.call("GET", statePath, "", ann...), 403, "(night) does not have the right")
	c.want(c.call("DELETE", policiesPath+"/night", ""), 412, `policy \"night\" is named by token ci, user ann, approle tf; change these, or add force=true`)
	c.want(c.call("DELETE", policiesPath+"/night?force=true", ""), 204, "")
	c.want(c.call("GET", statePath, "", ann...), 403, "(night) does not have the right")
	c.want(c.call("POST", tokensPath, `{"name":"ci","allow":["night"]}`), 400, `allow: \"night\" is neither a role nor a policy of the tenant`)
}

// TestDamagedPolicy checks that a policy whose file was edited allows nothing, and can be
// written anew.
func TestDamagedPolicy(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.policy("all", "/v1/state/**", `{"read":"allow"}`)
	mine := []string{"Authorization", c.token("demo", "worse")}
	folder := c.dir + "/credentials/policies/"
	text, err := os.ReadFile(folder + "demo.all.json")
	if err == nil { // Nobody has read it before.
		err = os.WriteFile(folder+"demo.worse.json", []byte(strings.Replace(string(text), "/v1/state/**", "/v1/**", 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.want(c.call("GET", statePath, "", mine...), 403, "(worse) does not have the right")
	c.want(c.call("GET", policiesPath+"/worse", ""), 500, "replace it with PUT, or delete it")
	c.want(c.call("PUT", policiesPath+"/worse", `{"rest-api":{"rules":[{"path":"/v1/state/**","operations":{"read":"allow"}}]}}`), 204, "")
	c.want(c.call("GET", statePath, "", mine...), 200, "idle")
}

// TestWrongPolicies checks what is answered to a policy that is wrong.
func TestWrongPolicies(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	rule := func(rule string) string { return `{"rest-api":{"rules":[` + rule + `]}}` }
	for name, row := range map[string]struct{ policy, body, part string }{
		"no rules":             {"x", `{}`, `rest-api: it is missing`},
		"the name of a role":   {"admin", rule(``), `name: \"admin\" is the name of a role`},
		"a name that is none":  {"X", rule(``), `name: \"X\" is not the name of a policy`},
		"no operation":         {"x", rule(`{"path":"/v1/**","operations":{}}`), `rest-api.rules[0].operations: the rule says nothing`},
		"an unknown operation": {"x", rule(`{"path":"/v1/**","operations":{"write":"allow"}}`), `rest-api.rules[0].operations: \"write\" is no operation; use all, read`},
		"neither":              {"x", rule(`{"path":"/v1/**","operations":{"read":"yes"}}`), `rest-api.rules[0].operations.read: \"yes\" is neither allow nor reject`},
		"a path that is none":  {"x", rule(`{"path":"v1","operations":{"read":"allow"}}`), `rest-api.rules[0].path: \"v1\" is no path of a rule`},
		"** in the middle":     {"x", rule(`{"path":"/v1/**/hosts","operations":{"read":"allow"}}`), `as the last one`},
		"a member of Avassa's": {"x", rule(`{"path":"/v1/**","operations":{"read":"allow"},"hide-fields":[]}`), `hide-fields`},
		"too many rules":       {"x", rule(strings.Repeat(`{"path":"/v1/**","operations":{"read":"allow"}},`, 100) + `{"path":"/v1/**","operations":{"read":"allow"}}`), `101 entries are too many; use at most 100`},
		"another name":         {"x", `{"name":"y","rest-api":{"rules":[]}}`, `is not the name in the path`},
	} {
		a := c.call("PUT", policiesPath+"/"+row.policy, row.body)
		if a.status != 400 || !strings.Contains(a.body, row.part) {
			t.Errorf("%s: answered %d %s; want %s", name, a.status, a.body, row.part)
		}
	}
}

// TestNobodyGivesMoreThanItHas tries each way to get a right that a principal does not
// have, with one that may use all of these ways: it makes users, approles, secret-ids,
// tokens and policies, and is no admin.
func TestNobodyGivesMoreThanItHas(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.want(c.call("PUT", policiesPath+"/helpdesk", `{"rest-api":{"rules":[{"path":"/v1/*/strongbox/**","operations":{"all":"allow"}},`+
		`{"path":"/v1/*/policy/**","operations":{"all":"allow"}},{"path":"/v1/*/os-upgrade/**","operations":{"read":"allow"}},`+
		`{"path":"/v1/state/os-upgrade/join-tokens/**","operations":{"all":"reject"}},{"path":"/metrics","operations":{"read":"allow"}}]}}`), 201, "")
	c.policy("small", "/v1/config/os-upgrade/**", `{"read":"allow"}`)
	c.policy("strong", "/v1/config/os-upgrade/**", `{"all":"allow"}`)
	c.want(c.call("PUT", usersPath+"/boss", `{"password":"long enough","token-policies":["admin"]}`), 201, "")
	c.want(c.call("PUT", usersPath+"/bob", `{"password":"long enough","token-policies":["small"]}`), 201, "")
	c.want(c.call("PUT", approlesPath+"/tf", `{"token-policies":["write"]}`), 201, "")
	strong := c.decodeToken(c.want(c.call("POST", tokensPath, `{"name":"ci","allow":["write"]}`), 201, ""))
	mine := []string{"Authorization", c.token("demo", "helpdesk")}
	for name, row := range map[string]struct {
		method, path, body string
		status             int
	}{
		"a user of a role that it covers":       {"POST", usersPath, `{"name":"v","token-policies":["viewer"]}`, 201},
		"a user of its own policy":              {"POST", usersPath, `{"name":"h","token-policies":["helpdesk","small"]}`, 201},
		"an admin":                              {"POST", usersPath, `{"name":"x","token-policies":["admin"]}`, 403},
		"an admin, by PUT":                      {"PUT", usersPath + "/x", `{"password":"long enough","token-policies":["viewer","admin"]}`, 403},
		"an admin, as a trial":                  {"POST", usersPath + "?validate=true", `{"name":"x","token-policies":["admin"]}`, 403},
		"a user of a stronger policy":           {"POST", usersPath, `{"name":"x","token-policies":["strong"]}`, 403},
		"another password for an admin":         {"PATCH", usersPath + "/boss", `{"password":"mine from now"}`, 403},
		"more rights for another":               {"PATCH", usersPath + "/bob", `{"token-policies":["write"]}`, 403},
		"another password for a small user":     {"PATCH", usersPath + "/bob", `{"password":"mine from now"}`, 204},
		"an approle":                            {"POST", approlesPath, `{"name":"x","token-policies":["start"]}`, 403},
		"more rights for an approle":            {"PATCH", approlesPath + "/tf", `{"token-policies":["start"]}`, 403},
		"a longer life for a stronger approle":  {"PATCH", approlesPath + "/tf", `{"token-ttl":"30d"}`, 403},
		"a secret-id of a stronger approle":     {"POST", approlesState + "/tf/secret-ids", ``, 403},
		"a token":                               {"POST", tokensPath, `{"name":"x","allow":["operator"]}`, 403},
		"a token of join":                       {"POST", tokensPath, `{"name":"x","allow":["join"]}`, 403},
		"a token of viewer":                     {"POST", tokensPath, `{"name":"x","allow":["viewer"]}`, 201},
		"the text of a stronger token":          {"POST", tokensPath + "/" + strong.ID + "/rotate", ``, 403},
		"more rights for its own policy":        {"PUT", policiesPath + "/helpdesk", `{"rest-api":{"rules":[{"path":"/v1/**","operations":{"all":"allow"}}]}}`, 403},
		"a policy that lacks the rejection":     {"POST", policiesPath, `{"name":"x","rest-api":{"rules":[{"path":"/v1/state/os-upgrade/**","operations":{"read":"allow"}}]}}`, 403},
		"a policy of all":                       {"POST", policiesPath, `{"name":"x","rest-api":{"rules":[{"path":"/**","operations":{"all":"allow"}}]}}`, 403},
		"a policy of one operation too many":    {"POST", policiesPath, `{"name":"x","rest-api":{"rules":[{"path":"/v1/config/os-upgrade","operations":{"read":"allow","update":"allow"}}]}}`, 403},
		"a policy within its own":               {"POST", policiesPath, `{"name":"y","rest-api":{"rules":[{"path":"/v1/config/os-upgrade/calendars/*","operations":{"read":"allow"}}]}}`, 201},
		"what it may not do itself":             {"PUT", configPath, body, 403},
		"a lesser admin with a password":        {"PUT", usersPath + "/boss", `{"password":"mine from now","token-policies":["viewer"]}`, 403},
		"lesser rights for an approle":          {"PATCH", approlesPath + "/tf", `{"token-policies":["viewer"]}`, 403},
		"a user of another tenant":              {"PUT", "/v1/config/tenants/other/strongbox/authentication/userpass/x", `{"password":"long enough","token-policies":["viewer"]}`, 403},
		"a user of all tenants":                 {"PUT", "/v1/config/tenants/*/strongbox/authentication/userpass/x", `{"password":"long enough","token-policies":["viewer"]}`, 403},
		"a policy of all tenants":               {"POST", "/v1/config/tenants/*/policy/policies", `{"name":"x","rest-api":{"rules":[]}}`, 403},
		"a policy of all that is below /v1":     {"POST", policiesPath, `{"name":"x","rest-api":{"rules":[{"path":"/v1/**","operations":{"all":"allow"}}]}}`, 403},
		"a policy of all tenants' things":       {"POST", policiesPath, `{"name":"x","rest-api":{"rules":[{"path":"/*/*/tenants/*/**","operations":{"all":"allow"}}]}}`, 403},
		"nothing at all is given to who has it": {"POST", policiesPath, `{"name":"nothing","rest-api":{"rules":[]}}`, 201},
	} {
		a := c.call(row.method, row.path, row.body, mine...)
		if a.status != row.status {
			t.Errorf("%s: answered %d %s; want %d", name, a.status, a.body, row.status)
		}
	}
	c.want(c.call("DELETE", approlesPath+"/tf", "", mine...), 204, "")
}

// TestWriterOfPolicies checks that who may write policies, and nothing else, cannot make
// itself more than that: no rule of its own names what it would give away.
func TestWriterOfPolicies(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.policy("writer", "/v1/config/policy/**", `{"all":"allow"}`)
	mine := []string{"Authorization", c.token("demo", "writer")}
	for _, path := range []string{"/v1/**", "/**", "/*/*/tenants/*/**", "/*/*/tenants/*/strongbox/**", "/v1/state/strongbox/**", "/v1/state/audit", "/v1/*/os-upgrade/**", "/v1/config/os-upgrade"} {
		policy := fmt.Sprintf(`{"rest-api":{"rules":[{"path":%q,"operations":{"all":"allow"}}]}}`, path)
		for _, name := range []string{"writer", "another"} {
			c.want(c.call("PUT", policiesPath+"/"+name, policy, mine...), 403, "cannot give a right that it does not have")
		}
	}
	c.want(c.call("PUT", policiesPath+"/same", `{"rest-api":{"rules":[{"path":"/v1/config/policy/**","operations":{"read":"allow","update":"allow"}}]}}`, mine...), 201, "")
}
