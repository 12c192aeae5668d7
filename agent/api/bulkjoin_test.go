package api_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/natsd"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const waitingHosts = "/v1/state/tenants/acme/os-upgrade/waiting-hosts"

// join lets a host join, and checks the status and a part of the answer.
func (j *joining) join(token string, key nkeys.KeyPair, host string, status int, part string) {
	j.t.Helper()
	got, _, text := j.call("POST", "/v1/join", token, hostJoin(j.t, key, host))
	if got != status || !strings.Contains(text, part) {
		j.t.Errorf("the join of %s: %d %s; want %d and %q", host, got, text, status, part)
	}
}

// list reads a list of the API.
func list[T any](j *joining, path string) (all []T) {
	j.t.Helper()
	status, _, text := j.call("GET", path, j.client("acme", access.Admin), "")
	if err := json.Unmarshal([]byte(text), &all); err != nil || status != http.StatusOK {
		j.t.Fatalf("%s: %d %s", path, status, text)
	}
	return all
}

func public(t *testing.T, key nkeys.KeyPair) string {
	t.Helper()
	text, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestBulkJoin lets several hosts join with one token: each once and with a key of its own, under
// names that fit and that are not another's in another case.
func TestBulkJoin(t *testing.T) {
	t.Parallel()
	j := newJoining(t)
	made := j.newToken(`{"host":"shop-*","application":"appliance","max-hosts":3,"labels":{"shop":"basel"}}`)
	if made.MaxHosts != 3 || made.Labels["shop"] != "basel" || len(made.UsedBy) > 0 {
		t.Errorf("it is %+v", made)
	}
	first, second, third := newHostKey(t), newHostKey(t), newHostKey(t)
	j.join(made.Token, first, "shop-1", 200, `"host":"shop-1"`)
	j.join(made.Token, first, "shop-1", 200, `"host":"shop-1"`)
	j.join(made.Token, second, "shop-2", 200, `"host":"shop-2"`)
	j.join(made.Token, third, "shop-2", 403, "a host with another key has joined as shop-2: give this host a name of its own with --host")
	j.join(made.Token, first, "shop-4", 403, "the key of this host has joined as shop-1: give that name with --host")
	j.join(made.Token, third, "Shop-2", 403, "is not for this host")
	j.join(made.Token, third, "db-1", 403, "is not for this host")
	upper := j.newToken(`{"host":"*hop-*","application":"appliance","max-hosts":3}`)
	j.join(upper.Token, third, "Shop-2", 409, "host shop-2 of tenant acme has a name that differs only in case")
	j.join(made.Token, third, "shop-3", 200, `"host":"shop-3"`)
	j.join(made.Token, newHostKey(t), "shop-4", 403, "has no place left: 3 hosts have taken all of them")

	for _, listed := range list[v1.JoinToken](j, joinTokens) {
		if listed.ID != made.ID {
			continue
		}
		if listed.State != "used" || len(listed.UsedBy) != 3 {
			t.Errorf("it is listed as %+v", listed)
		}
		for i, u := range listed.UsedBy {
			if u.Host != "shop-"+strconv.Itoa(i+1) || u.Status != v1.JoinJoined || u.From != "127.0.0.1" || u.At.IsZero() {
				t.Errorf("host %d is %+v", i, u)
			}
		}
	}
	if labels := j.site.Hosts.Labels(natsd.Identity{Tenant: "acme", Host: "shop-2"}); labels["shop"] != "basel" {
		t.Errorf("shop-2 has the labels %v", labels)
	}
	// One of them is withdrawn: the others stay, and it does not come back.
	if status, _, text := j.call("DELETE", "/v1/state/tenants/acme/strongbox/credentials/"+public(t, first), j.client("acme", access.Admin), ""); status != 204 {
		t.Fatalf("the withdrawal: %d %s", status, text)
	}
	j.join(made.Token, first, "shop-1", 403, "was withdrawn")
	j.join(made.Token, second, "shop-2", 200, `"host":"shop-2"`)
}

// TestApproveHosts keeps hosts waiting until somebody who may has decided on them.
func TestApproveHosts(t *testing.T) {
	t.Parallel()
	j := newJoining(t)
	made := j.newToken(`{"host":"shop-*","application":"appliance","max-hosts":3,"approve":true}`)
	first, second := newHostKey(t), newHostKey(t)
	j.join(made.Token, first, "shop-1", 202, `"waiting":true`)
	j.join(made.Token, second, "shop-2", 202, `"waiting":true`)
	j.join(made.Token, second, "shop-2", 202, `"waiting":true`)
	if keys, err := j.site.Hosts.List(); err != nil || len(keys) > 0 {
		t.Errorf("hosts that wait have keys: %v, %v", keys, err)
	}
	waiting := list[v1.WaitingHost](j, waitingHosts)
	if len(waiting) != 2 || waiting[0].Host != "shop-1" || waiting[0].PublicKey != public(t, first) || waiting[0].From != "127.0.0.1" || waiting[0].Token != made.ID {
		t.Fatalf("there wait %+v", waiting)
	}
	status, _, text := j.call("GET", "/v1/state/tenants/acme/os-upgrade", j.client("acme", access.Viewer), "")
	var state v1.State
	if err := json.Unmarshal([]byte(text), &state); err != nil || status != 200 || state.WaitingHosts != 2 || len(state.FirstWaiting) != 2 {
		t.Errorf("the state: %d %s", status, text)
	}
	j.toldOnce("shop-1", "shop-2")
	body := func(key nkeys.KeyPair) string { return `{"public-key":"` + public(t, key) + `"}` }
	admin := j.client("acme", access.Admin)
	for name, c := range map[string]struct {
		path, token, body string
		status            int
		part              string
	}{
		"by an approver of stages": {waitingHosts + "/shop-1/approve", j.client("acme", access.Approver), body(first), 403, "use a token with admin"},
		"by who makes join tokens": {waitingHosts + "/shop-1/approve", j.token, body(first), 403, "use a token with admin"},
		"by another tenant":        {"/v1/state/tenants/beta/os-upgrade/waiting-hosts/shop-1/approve", j.client("beta", access.Admin), body(first), 404, "does not wait for approval"},
		"with another key":         {waitingHosts + "/shop-1/approve", admin, body(second), 404, "does not wait for approval"},
		"without a key":            {waitingHosts + "/shop-1/approve", admin, `{}`, 400, "public-key"},
		"somebody else":            {waitingHosts + "/shop-9/refuse", admin, body(first), 404, "does not wait for approval"},
	} {
		if status, _, text := j.call("POST", c.path, c.token, c.body); status != c.status || !strings.Contains(text, c.part) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _, text := j.call("POST", waitingHosts+"/shop-1/approve", admin, body(first)); status != 204 {
		t.Errorf("the approval: %d %s", status, text)
	}
	if status, _, text := j.call("POST", waitingHosts+"/shop-2/refuse", admin, body(second)); status != 204 {
		t.Errorf("the refusal: %d %s", status, text)
	}
	j.join(made.Token, first, "shop-1", 200, `"host":"shop-1"`)
	j.join(made.Token, second, "shop-2", 403, "a person has refused this host")
	if keys, err := j.site.Hosts.List(); err != nil || len(keys) != 1 || keys[0].Public != public(t, first) {
		t.Errorf("the site has the keys %v, %v", keys, err)
	}
	if left := list[v1.WaitingHost](j, waitingHosts); len(left) > 0 {
		t.Errorf("there wait %+v", left)
	}
}

// toldOnce waits until people were told that hosts wait for approval, of each once.
func (j *joining) toldOnce(hosts ...string) {
	j.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		told := map[string]int{}
		for _, n := range list[v1.News](j, "/v1/state/tenants/acme/os-upgrade/news") {
			if n.Type == v1.NewsHostWaiting {
				told[n.Data.Host]++
			}
			if told[n.Data.Host] > 1 || !strings.HasPrefix(n.Data.Text, "Host "+n.Data.Host+" of tenant acme waits for approval, until ") {
				j.t.Fatalf("it is told that %+v", n)
			}
		}
		if len(told) == len(hosts) {
			return
		}
		if time.Now().After(deadline) {
			j.t.Fatalf("it is told of %v, not of %v", told, hosts)
		}
	}
}

// TestManyHostsWait: hosts that begin to wait are no failed attempts, so those behind one address
// can do so at once. The places of the token limit them, and refusals still count as failed.
func TestManyHostsWait(t *testing.T) {
	t.Parallel()
	j := newJoining(t)
	const places = 3 * 10
	made := j.newToken(`{"host":"shop-*","application":"appliance","max-hosts":` + strconv.Itoa(places) + `,"approve":true}`)
	for i := range places {
		j.join(made.Token, newHostKey(t), "shop-"+strconv.Itoa(i), 202, `"waiting":true`)
	}
	if waiting := list[v1.WaitingHost](j, waitingHosts); len(waiting) != places {
		t.Errorf("%d hosts wait", len(waiting))
	}
	for range 10 {
		j.join(made.Token, newHostKey(t), "shop-more", 403, "no place left")
	}
	j.join(made.Token, newHostKey(t), "shop-more", 429, "try again in")
}

// TestPolicyApprovesHosts: a policy can give the right to approve hosts and no other.
func TestPolicyApprovesHosts(t *testing.T) {
	t.Parallel()
	j := newJoining(t)
	admin := j.client("acme", access.Admin)
	if status, _, text := j.call("PUT", "/v1/config/tenants/acme/policy/policies/doorman", admin, `{"name":"doorman","rest-api":{"rules":[{"path":"/v1/state/os-upgrade/waiting-hosts/**","operations":{"read":"allow","execute":"allow"}}]}}`); status >= 300 {
		t.Fatalf("the policy: %d %s", status, text)
	}
	doorman := j.client("acme", "doorman")
	made := j.newToken(`{"host":"shop-*","application":"appliance","max-hosts":2,"approve":true}`)
	key := newHostKey(t)
	j.join(made.Token, key, "shop-1", 202, `"waiting":true`)
	if status, _, text := j.call("POST", waitingHosts+"/shop-1/approve", doorman, `{"public-key":"`+public(t, key)+`"}`); status != 204 {
		t.Errorf("the approval: %d %s", status, text)
	}
	if status, _, text := j.call("POST", joinTokens, doorman, `{"host":"h","application":"a"}`); status != 403 {
		t.Errorf("a join token: %d %s", status, text)
	}
}
