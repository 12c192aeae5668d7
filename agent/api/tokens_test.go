package api_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
)

const tokensPath = "/v1/state/tenants/demo/strongbox/tokens"

// shownToken is what these tests read of a token.
type shownToken struct {
	ID, Name, Tenant, Token string
	Allow                   []string
	Expires                 *time.Time
	LastUsed                *time.Time `json:"last-used"`
}

// token makes a token on the site's folder, and returns the header with it.
func (c *caller) token(tenant string, allow ...access.Role) string {
	c.t.Helper()
	return c.bearer("test", tenant, allow...)
}

func (c *caller) decodeToken(a answer) shownToken {
	c.t.Helper()
	var shown shownToken
	if err := json.Unmarshal([]byte(a.body), &shown); err != nil {
		c.t.Fatalf("%v: %s", err, a.body)
	}
	return shown
}

// TestTokensOfTheAPI makes, lists, rotates and withdraws tokens. No text of one is shown
// twice.
func TestTokensOfTheAPI(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	a := c.want(c.call("POST", tokensPath, `{"name":"ci","allow":["operator","approver"],"valid":"90d"}`), 201, `"creation-time"`)
	made := c.decodeToken(a)
	if left := time.Until(*made.Expires); made.Tenant != "demo" || len(made.Allow) != 2 || left > 90*24*time.Hour || left < 89*24*time.Hour || a.header.Get("Location") != tokensPath+"/"+made.ID {
		t.Errorf("it is made as %s at %s", a.body, a.header.Get("Location"))
	}
	with := func(text string) []string { return []string{"Authorization", "Bearer " + text} }
	c.want(c.call("GET", statePath, "", with(made.Token)...), 200, "idle")
	c.want(c.call("PUT", configPath, body, with(made.Token)...), 403, "(operator, approver) does not have the right to update this; use a token with admin or write")
	c.want(c.call("GET", tokensPath, "", with(made.Token)...), 403, "use a token with admin")
	one := c.want(c.call("GET", tokensPath+"/"+made.ID, ""), 200, `"last-used"`)
	list := c.want(c.call("GET", "/v1/state/strongbox/tokens?fields=name,id", ""), 200, `{"id":"`+made.ID+`","name":"ci"}`)
	if strings.Contains(one.body+list.body, made.Token) {
		t.Error("the text of the token is shown again")
	}
	rotated := c.decodeToken(c.want(c.call("POST", tokensPath+"/"+made.ID+"/rotate", `{"overlap":"1h"}`), 201, `"name":"ci"`))
	c.want(c.call("GET", statePath, "", with(made.Token)...), 200, "idle")
	again := c.decodeToken(c.want(c.call("POST", tokensPath+"/"+rotated.ID+"/rotate", ``), 201, ""))
	c.want(c.call("GET", statePath, "", with(rotated.Token)...), 401, "the token is unknown")
	c.want(c.call("GET", statePath, "", with(again.Token)...), 200, "idle")
	c.want(c.call("DELETE", tokensPath+"/"+again.ID, ""), 204, "")
	c.want(c.call("GET", statePath, "", with(again.Token)...), 401, "the token is unknown")
	c.want(c.call("DELETE", tokensPath+"/"+again.ID, ""), 404, `tenant \"demo\" has no token`)
}

// TestWrongTokens checks what is answered to a body or a path that is wrong.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	other := strings.TrimPrefix(c.token("other", access.Admin), "Bearer ")
	for name, row := range map[string]struct {
		method, path, body string
		status             int
		part               string
	}{
		"no body":                     {"POST", tokensPath, ``, 400, ""},
		"no name":                     {"POST", tokensPath, `{"allow":["viewer"]}`, 400, `name: \"\" is invalid; use 1 to 63 printable characters`},
		"no role":                     {"POST", tokensPath, `{"name":"x"}`, 400, `allow: `},
		"a role that there is not":    {"POST", tokensPath, `{"name":"x","allow":["root"]}`, 400, `allow: \"root\" is neither a role nor a policy of the tenant; use admin, operator`},
		"no time":                     {"POST", tokensPath, `{"name":"x","allow":["viewer"],"valid":"soon"}`, 400, "valid"},
		"an unknown member":           {"POST", tokensPath, `{"name":"x","allow":["viewer"],"tenant":"other"}`, 400, "tenant"},
		"an unknown token":            {"POST", tokensPath + "/0123/rotate", ``, 404, `has no token`},
		"a token of another tenant":   {"GET", tokensPath + "/" + principal.ID(other), ``, 404, `has no token`},
		"to withdraw one of others":   {"DELETE", tokensPath + "/" + principal.ID(other), ``, 404, `has no token`},
		"to rotate one of others":     {"POST", tokensPath + "/" + principal.ID(other) + "/rotate", ``, 404, `has no token`},
		"an overlap that is none":     {"POST", tokensPath + "/0123/rotate", `{"overlap":"-1h"}`, 400, "overlap"},
		"the list of another tenant":  {"GET", "/v1/state/tenants/other/strongbox/tokens", ``, 403, `is not valid for tenant \"other\"`},
		"the list of all tenants":     {"GET", "/v1/state/tenants/*/strongbox/tokens", ``, 403, `is not valid for tenant \"*\"`},
		"a token for another tenant":  {"POST", "/v1/state/tenants/other/strongbox/tokens", `{"name":"x","allow":["viewer"]}`, 403, `is not valid`},
		"a tenant that there is not":  {"GET", "/v1/state/tenants/nobody/strongbox/tokens", ``, 403, `is not valid`},
		"a parameter that is unknown": {"GET", tokensPath + "?all=true", ``, 400, `is not a query parameter`},
	} {
		if a := c.call(row.method, row.path, row.body); a.status != row.status || !strings.Contains(a.body, row.part) {
			t.Errorf("%s: answered %d %s; want %d with %s", name, a.status, a.body, row.status, row.part)
		}
	}
	all := c.token(access.AnyTenant, access.Admin)
	c.want(c.call("POST", "/v1/state/strongbox/tokens", `{"name":"everywhere","allow":["viewer"]}`, "Authorization", all), 201, `"tenant":"*"`)
	c.want(c.call("GET", "/v1/state/tenants/other/strongbox/tokens", "", "Authorization", all), 404, `tenant \"other\" does not exist`)
	if a := c.call("GET", tokensPath, "", "Authorization", all); strings.Contains(a.body, "everywhere") {
		t.Errorf("a tenant has a token of all: %s", a.body)
	}
}

// TestCalendarToken checks that a token of the feed may be in its URL, and is good for
// nothing else, and that no other token may be in a URL.
func TestCalendarToken(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.want(c.call("PUT", configPath, body), 201, "")
	calendar := strings.TrimPrefix(c.token("demo", access.Calendar), "Bearer ")
	none := []string{"Authorization", ""}
	c.want(c.call("GET", statePath+"/windows.ics?token="+calendar, "", none...), 200, "BEGIN:VCALENDAR")
	c.want(c.call("GET", "/v1/state/os-upgrade/windows.ics?token="+calendar, "", none...), 200, "BEGIN:VCALENDAR")
	c.want(c.call("GET", statePath+"/windows.ics", "", "Authorization", "Bearer "+calendar), 200, "BEGIN:VCALENDAR")
	c.want(c.call("GET", statePath+"/windows.ics", "", none...), 401, "has no token")
	c.want(c.call("GET", statePath+"/windows.ics?token=wrong", "", none...), 401, "the token is unknown")
	for _, path := range []string{statePath, statePath + "/windows", configPath, tokensPath} {
		c.want(c.call("GET", path+"?token="+calendar, "", none...), 403, "(calendar) does not have the right")
	}
	strong := strings.TrimPrefix(c.token("demo", access.Calendar, access.Viewer), "Bearer ")
	c.want(c.call("GET", statePath+"/windows.ics?token="+strong, "", none...), 401, "may have the role calendar alone")
	if a := c.call("GET", statePath+"/windows.ics?token="+calendar+"&x=%zz", "", none...); a.status != 400 || strings.Contains(a.body, calendar) {
		t.Errorf("it is answered %d %s", a.status, a.body)
	}
}
