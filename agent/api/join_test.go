package api_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/hostkey"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// joining is a site with a listener for hosts, as serve runs it.
type joining struct {
	t     *testing.T
	site  *site.Site
	token string
}

func newJoining(t *testing.T) *joining {
	t.Helper()
	local := site.Endpoint{Listen: "127.0.0.1:0"}
	s, err := site.Open(t.Context(), site.Options{
		Name: "test", Zone: time.UTC, Dir: t.TempDir(), Tenants: []string{"acme", "beta"}, API: local, NATS: local, Holder: "a test", Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	j := &joining{t: t, site: s}
	j.token = j.client("acme", access.Joins)
	return j
}

func (j *joining) client(tenant string, allow ...access.Role) string {
	j.t.Helper()
	text, err := j.site.Tokens.Add(principal.Token{Name: "ann", Tenant: tenant, Allow: allow})
	if err != nil {
		j.t.Fatal(err)
	}
	return text
}

// call sends a request and returns status, headers and body.
func (j *joining) call(method, path, token, body string, headers ...string) (int, http.Header, string) {
	j.t.Helper()
	c := &caller{t: j.t}
	request, err := http.NewRequestWithContext(j.t.Context(), method, "http://"+j.site.Address()+path, strings.NewReader(body))
	if err != nil {
		j.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	a := c.send(request)
	return a.status, a.header, a.body
}

const joinTokens = "/v1/state/tenants/acme/os-upgrade/join-tokens"

func (j *joining) newToken(body string) v1.JoinToken {
	j.t.Helper()
	status, _, text := j.call("POST", joinTokens, j.token, body)
	var made v1.JoinToken
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusCreated || made.Token == "" {
		j.t.Fatalf("a join token: %d %s", status, text)
	}
	return made
}

// hostJoin is the body of a join by a key of its own.
func hostJoin(t *testing.T, key nkeys.KeyPair, host string) string {
	t.Helper()
	public, err := key.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	proof, err := hostkey.Prove(key, host)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(v1.Join{Host: host, PublicKey: public, Proof: proof})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func newHostKey(t *testing.T) nkeys.KeyPair {
	t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// TestJoinTokens makes, lists and removes join tokens, and checks that no right but
// join and no other tenant is enough.
func TestJoinTokens(t *testing.T) {
	t.Parallel()
	j := newJoining(t)
	made := j.newToken(`{"host":"web-*","application":"appliance","valid":"2h","replace":true}`)
	if made.Tenant != "acme" || made.By != "ann" || made.State != "open" || time.Until(made.Expires) < time.Hour {
		t.Errorf("it is %+v", made)
	}
	others, weak := j.client("beta", access.Rights()...), j.client("acme", access.Reads, access.Writes, access.Starts)
	for name, c := range map[string]struct {
		method, path, token, body string
		status                    int
		part                      string
	}{
		"another tenant's list":       {"GET", joinTokens, others, "", 403, "not valid for tenant"},
		"another tenant's token":      {"POST", joinTokens, others, `{"host":"h","application":"a"}`, 403, "not valid for tenant"},
		"removal by another tenant":   {"DELETE", "/v1/state/tenants/beta/os-upgrade/join-tokens/" + made.ID, others, "", 404, "has no join token"},
		"a list without the right":    {"GET", joinTokens, weak, "", 403, `use a token with admin or join`},
		"a token without the right":   {"POST", joinTokens, weak, `{"host":"h","application":"a"}`, 403, `use a token with admin or join`},
		"a removal without the right": {"DELETE", joinTokens + "/" + made.ID, weak, "", 403, `use a token with admin or join`},
		"a list without a token":      {"GET", joinTokens, "", "", 401, "no token"},
		"a list with a join token":    {"GET", joinTokens, made.Token, "", 401, "unknown"},
		"a token without a host":      {"POST", joinTokens, j.token, `{"application":"a"}`, 400, "host"},
		"a token for a tenant":        {"POST", joinTokens, j.token, `{"host":"h","application":"a","tenant":"beta"}`, 400, "tenant"},
		"an unknown query":            {"POST", joinTokens + "?validate=true", j.token, `{}`, 400, "validate"},
		"an unknown id":               {"DELETE", joinTokens + "/../../x", j.token, "", 404, ""},
	} {
		if status, _, text := j.call(c.method, c.path, c.token, c.body); status != c.status || !strings.Contains(text, c.part) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _, text := j.call("GET", joinTokens, j.token, ""); status != 200 || !strings.Contains(text, made.ID) || strings.Contains(text, made.Token[:30]) {
		t.Errorf("the list: %d %s", status, text)
	}
	if status, _, text := j.call("DELETE", joinTokens+"/"+made.ID, j.token, ""); status != 204 {
		t.Errorf("the removal: %d %s", status, text)
	}
	if status, _, text := j.call("POST", "/v1/join", made.Token, hostJoin(t, newHostKey(t), "web-1")); status != 401 || !strings.Contains(text, "is unknown") {
		t.Errorf("a join after it: %d %s", status, text)
	}
}

// TestPostJoin joins as hosts do, honest and not. What is refused uses no token up.
func TestPostJoin(t *testing.T) {
	t.Parallel()
	j := newJoining(t)
	made := j.newToken(`{"host":"h01","application":"appliance"}`)
	key, thief := newHostKey(t), newHostKey(t)
	good := hostJoin(t, key, "h01")
	for name, c := range map[string]struct {
		token, body string
		status      int
		part        string
	}{
		"no token":               {"", good, 401, "no join token"},
		"a token of the API":     {j.token, good, 401, "not a join token"},
		"a guessed one":          {"osuj_" + strings.Repeat("0", 48), good, 401, "is unknown"},
		"half of one":            {made.Token[:20], good, 401, "not a join token"},
		"another host":           {made.Token, hostJoin(t, key, "h02"), 403, "is not for this host"},
		"a proof for another":    {made.Token, strings.Replace(hostJoin(t, key, "h02"), "h02", "h01", 1), 409, "the proof is not a signature"},
		"no body":                {made.Token, "", 400, "error-message"},
		"a deep body":            {made.Token, strings.Repeat("[", 10_000), 400, "error-message"},
		"a list":                 {made.Token, "[]", 400, "error-message"},
		"more than is asked for": {made.Token, strings.Replace(good, "{", `{"tenant":"beta",`, 1), 400, "tenant"},
	} {
		if status, _, text := j.call("POST", "/v1/join", c.token, c.body); status != c.status || !strings.Contains(text, c.part) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, _, text := j.call("POST", "/v1/join", made.Token, strings.Repeat(" ", 2<<20)); status != 413 || !strings.Contains(text, "larger than") {
		t.Errorf("a large body, of which no token is looked at: %d %s", status, text)
	}
	if status, header, text := j.call("POST", "/v1/join", made.Token, good); status != 429 || header.Get("Retry-After") == "" {
		t.Errorf("after ten failures: %d %s", status, text)
	}
	// Another site, for the limit is kept in memory.
	j = newJoining(t)
	made = j.newToken(`{"host":"h01","application":"appliance"}`)
	if status, _, text := j.call("POST", "/v1/join", made.Token, good, "Host", "site.example:4646"); status != 409 || !strings.Contains(text, "set nats-listen") {
		t.Errorf("from another machine: %d %s", status, text)
	}
	var joined v1.Joined
	for range 2 {
		status, _, text := j.call("POST", "/v1/join", made.Token, good)
		if err := json.Unmarshal([]byte(text), &joined); err != nil || status != 200 {
			t.Fatalf("a join: %d %s", status, text)
		}
	}
	if want := (v1.Joined{Tenant: "acme", Host: "h01", Application: "appliance", NATSURL: "nats://" + j.site.NATSAddress()}); joined != want {
		t.Errorf("it is answered %+v, not %+v", joined, want)
	}
	if status, _, text := j.call("POST", "/v1/join", made.Token, hostJoin(t, thief, "h01")); status != 403 || !strings.Contains(text, "was used already") {
		t.Errorf("a second joiner: %d %s", status, text)
	}
	if status, _, text := j.call("GET", "/v1/join/ca", "", ""); status != 404 || !strings.Contains(text, "no authority of its own") {
		t.Errorf("the authority: %d %s", status, text)
	}
	again := j.newToken(`{"host":"*","application":"appliance"}`)
	if status, _, text := j.call("POST", "/v1/join", again.Token, hostJoin(t, key, "h02")); status != 409 || !strings.Contains(text, "is the key of another host") {
		t.Errorf("the key of another host: %d %s", status, text)
	}
	if status, _, text := j.call("POST", "/v1/join", again.Token, hostJoin(t, thief, "h01")); status != 409 || !strings.Contains(text, "has a key already") {
		t.Errorf("a second key: %d %s", status, text)
	}
	if keys, err := j.site.Hosts.List(); err != nil || len(keys) != 1 {
		t.Errorf("the site has %s keys: %v", strconv.Itoa(len(keys)), err)
	}
}
