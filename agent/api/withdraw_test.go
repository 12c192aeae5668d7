package api_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/principal"
)

// settle makes the files of all credentials an hour old, so that they are kept in memory once
// they were read, and not read again.
func (c *caller) settle() {
	c.t.Helper()
	files, err := filepath.Glob(c.dir + "/credentials/*/*.json")
	hour := time.Now().Add(-time.Hour)
	for _, file := range files {
		if err == nil {
			err = os.Chtimes(file, hour, hour)
		}
	}
	if err != nil || len(files) == 0 {
		c.t.Fatal(files, err)
	}
}

// TestWithdrawalCountsAtOnce checks that the next request is refused after what lets its sender
// in was withdrawn or changed, by the API or by another process, though the site has it in
// memory.
func TestWithdrawalCountsAtOnce(t *testing.T) {
	t.Parallel()
	remove := func(c *caller, pattern string) {
		c.t.Helper()
		files, err := filepath.Glob(c.dir + "/credentials/" + pattern)
		if err != nil || len(files) != 1 {
			c.t.Fatal(files, err)
		}
		if err := os.Remove(files[0]); err != nil {
			c.t.Fatal(err)
		}
	}
	for name, row := range map[string]struct {
		change func(c *caller, mine string)
		status int
		part   string
	}{
		"the token is withdrawn": {func(c *caller, mine string) {
			c.want(c.call("DELETE", tokensPath+"/"+principal.ID(mine), ""), 204, "")
		}, 401, "the token is unknown"},
		"another process withdraws the token": {func(c *caller, mine string) {
			remove(c, "tokens/"+principal.ID(mine)+".json")
		}, 401, "the token is unknown"},
		"another process edits the token": {func(c *caller, mine string) {
			if err := os.WriteFile(c.dir+"/credentials/tokens/"+principal.ID(mine)+".json", []byte("{}"), 0o600); err != nil {
				c.t.Fatal(err)
			}
		}, 401, "cannot read a token's file: it is damaged"},
		"the user is removed": {func(c *caller, _ string) {
			c.want(c.call("DELETE", usersPath+"/ann", ""), 204, "")
		}, 401, "the token is unknown"},
		"another process removes the user": {func(c *caller, _ string) { remove(c, "users/demo.ann.json") }, 401, "the login of this token has ended"},
		"the user has another password": {func(c *caller, _ string) {
			c.want(c.call("PATCH", usersPath+"/ann", `{"password":"another one"}`), 204, "")
		}, 401, "the token is unknown"},
		"the user has another role": {func(c *caller, _ string) {
			c.want(c.call("PATCH", usersPath+"/ann", `{"token-policies":["calendar"]}`), 204, "")
		}, 403, "(calendar) does not have the right"},
		"the policy allows it no more": {func(c *caller, _ string) {
			c.want(c.call("PATCH", policiesPath+"/watch", `{"rest-api":{"rules":[]}}`), 204, "")
		}, 403, "(watch) does not have the right"},
		"the policy is removed": {func(c *caller, _ string) {
			c.want(c.call("DELETE", policiesPath+"/watch?force=true", ""), 204, "")
		}, 403, "(watch) does not have the right"},
		"another process removes the policy": {func(c *caller, _ string) { remove(c, "policies/demo.watch.json") }, 403, "(watch) does not have the right"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCaller(t, 0)
			c.policy("watch", "/v1/state/os-upgrade/**", `{"read":"allow"}`)
			c.want(c.call("PUT", usersPath+"/ann", `{"password":"long enough","token-policies":["watch"]}`), 201, "")
			mine := c.login("ann", "long enough")
			c.settle()
			for range 3 {
				c.want(c.call("GET", statePath, "", mine...), 200, "idle")
			}
			row.change(c, mine[1][len("Bearer "):])
			c.want(c.call("GET", statePath, "", mine...), row.status, row.part)
		})
	}
}
