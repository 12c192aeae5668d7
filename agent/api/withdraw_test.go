package api_test

import (
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
)

// TestWithdrawalCountsAtOnce checks that the next request is refused after what lets its sender
// in was withdrawn or changed, though the site has it in memory.
func TestWithdrawalCountsAtOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(c *caller, mine string)
		status int
		part   string
	}{
		"the token is withdrawn": {func(c *caller, mine string) {
			c.want(c.call("DELETE", tokensPath+"/"+principal.ID(mine), ""), 204, "")
		}, 401, "the token is unknown"},
		"the user is removed": {func(c *caller, _ string) {
			c.want(c.call("DELETE", usersPath+"/ann", ""), 204, "")
		}, 401, "the token is unknown"},
		"the user has another password": {func(c *caller, _ string) {
			c.want(c.call("PATCH", usersPath+"/ann", `{"password":"another one"}`), 204, "")
		}, 401, "the token is unknown"},
		"the user has a role less": {func(c *caller, _ string) {
			c.want(c.call("PATCH", usersPath+"/ann", `{"token-policies":["calendar"]}`), 204, "")
		}, 403, "(calendar) does not have the right"},
		"the user has another role": {func(c *caller, _ string) {
			c.want(c.call("PATCH", usersPath+"/ann", `{"token-policies":["admin"]}`), 204, "")
		}, 401, "the token is unknown"},
		"the policy allows it no more": {func(c *caller, _ string) {
			c.want(c.call("PATCH", policiesPath+"/watch", `{"rest-api":{"rules":[]}}`), 204, "")
		}, 403, "(watch, calendar) does not have the right"},
		"the policy is removed": {func(c *caller, _ string) {
			c.want(c.call("DELETE", policiesPath+"/watch?force=true", ""), 204, "")
		}, 403, "(watch, calendar) does not have the right"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, 0)
			c.policy("watch", "/v1/state/os-upgrade/**", `{"read":"allow"}`)
			c.want(c.call("PUT", usersPath+"/ann", `{"password":"long enough","token-policies":["watch","calendar"]}`), 201, "")
			mine := c.login("ann", "long enough")
			for range 3 {
				c.want(c.call("GET", statePath, "", mine...), 200, "idle")
			}
			row.change(c, mine[1][len("Bearer "):])
			c.want(c.call("GET", statePath, "", mine...), row.status, row.part)
		})
	}
}
