package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/credentialtest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/formattest"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

const (
	configPath = "/v1/config/tenants/demo/os-upgrade"
	statePath  = "/v1/state/tenants/demo/os-upgrade"
	body       = `{"worker-applications":[{"name":"os-upgrade-simulated"}],"maintenance-windows":[` +
		`{"days-of-week":"saturday,Friday","start-time":"01:00","timezone":"UTC","duration":"240m"}]}`
	canonical = `{"worker-applications":[{"name":"os-upgrade-simulated"}],"maintenance-windows":[` +
		`{"days-of-week":"Friday, Saturday","start-time":"01:00","timezone":"UTC","duration":"4h"}]}`
)

// caller calls the API of a real agent.
type caller struct {
	t   *testing.T
	dev *dev.Dev
	dir string
}

func newCaller(t *testing.T, hosts int) *caller {
	t.Helper()
	dir := t.TempDir()
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &caller{t: t, dev: d, dir: dir}
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// call sends a request; headers are pairs of name and value.
func (c *caller) call(method, path, body string, headers ...string) answer {
	c.t.Helper()
	request, err := http.NewRequestWithContext(context.WithoutCancel(c.t.Context()), method, c.dev.Endpoint+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.dev.Token)
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return c.send(request)
}

func (c *caller) send(request *http.Request) answer {
	c.t.Helper()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	c.check(request, response, text)
	return answer{status: response.StatusCode, header: response.Header, body: strings.TrimSpace(string(text))}
}

// check checks that an exchange is in the OpenAPI text.
func (c *caller) check(request *http.Request, response *http.Response, text []byte) {
	c.t.Helper()
	var sent []byte
	if request.GetBody != nil {
		body, err := request.GetBody()
		if err != nil {
			c.t.Fatal(err)
		}
		if sent, err = io.ReadAll(body); err != nil {
			c.t.Fatal(err)
		}
	}
	e := api.Exchange{
		Method: request.Method, Target: request.URL.RequestURI(), Header: request.Header, Body: sent,
		Status: response.StatusCode, AnswerHeader: response.Header, Answer: text,
	}
	for _, wrong := range api.CheckExchange(e) {
		c.t.Errorf("%s %s %.200s, answered %d %.300s: %s", e.Method, e.Target, sent, e.Status, text, wrong)
	}
}

// want checks an answer's status and part of its body.
func (c *caller) want(a answer, status int, part string) answer {
	c.t.Helper()
	if a.status != status || !strings.Contains(a.body, part) {
		c.t.Errorf("answered %d %s; want %d with %s", a.status, a.body, status, part)
	}
	return a
}

// TestConfigObject creates, reads, changes and deletes Avassa's object.
func TestConfigObject(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	c.want(c.call("GET", configPath, ""), 404, `tenant \"demo\" has no os-upgrade configuration`)
	c.want(c.call("PATCH", configPath, `{}`), 404, "create it with PUT")
	c.want(c.call("DELETE", configPath, ""), 404, "has no os-upgrade configuration")
	c.want(c.call("PUT", configPath+"?validate=true", body), 204, "")
	c.want(c.call("GET", configPath, ""), 404, "")
	created := c.want(c.call("PUT", configPath, body, "If-None-Match", "*"), 201, "")
	first := created.header.Get("ETag")
	if first == "" || strings.HasPrefix(first, "W/") || created.header.Get("Location") != configPath {
		t.Errorf("created with ETag %q at %q", first, created.header.Get("Location"))
	}
	got := c.want(c.call("GET", configPath, ""), 200, canonical)
	if got.header.Get("ETag") != first {
		t.Errorf("GET has ETag %q, PUT had %q", got.header.Get("ETag"), first)
	}
	c.want(c.call("GET", configPath, "", "If-None-Match", first), 304, "")
	c.want(c.call("GET", configPath, "", "If-Match", `"other"`), 412, "has ETag")
	c.want(c.call("PUT", configPath, body, "If-None-Match", "*"), 412, "")
	c.want(c.call("PUT", configPath, body, "If-Match", `"other"`), 412, "")
	c.want(c.call("PUT", configPath, body, "If-Match", "W/"+first), 412, "")
	replaced := c.want(c.call("PUT", configPath, body, "If-Match", `"other", `+first), 204, "")
	second := replaced.header.Get("ETag")
	if second == first {
		t.Error("a write did not change the ETag")
	}
	c.want(c.call("GET", statePath+"?fields=config-etag", ""), 200, fmt.Sprintf(`{"config-etag":%q}`, second))
	c.want(c.call("PATCH", configPath, `{"maintenance-windows":[]}`, "If-Match", first), 412, "")
	c.want(c.call("PATCH", configPath, `{"maintenance-windows":[]}`, "If-Match", second), 204, "")
	c.want(c.call("GET", configPath, ""), 200, `{"worker-applications":[{"name":"os-upgrade-simulated"}],"maintenance-windows":[]}`)
	c.want(c.call("DELETE", configPath, "", "If-Match", first), 412, "")
	c.want(c.call("DELETE", configPath+"?validate=true", ""), 204, "")
	c.want(c.call("DELETE", configPath, ""), 204, "")
	c.want(c.call("GET", configPath, "", "If-None-Match", "*"), 404, "")
	c.want(c.call("GET", statePath+"?fields=config-etag", ""), 200, "{}")
	again := c.want(c.call("PUT", configPath, body), 201, "")
	if tag := again.header.Get("ETag"); tag == first || tag == second {
		t.Errorf("the ETag %q of an earlier life comes again", tag)
	}
}

// TestYAML checks both directions, and that a time is text.
func TestYAML(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	text := "worker-applications:\n  - name: os-upgrade-simulated\nmaintenance-windows:\n  - days-of-week: Friday, Saturday\n" +
		"    start-time: 10:30\n    timezone: site-local\n    duration: 4h\n"
	c.want(c.call("PUT", configPath, text, "Content-Type", "application/yaml"), 201, "")
	c.want(c.call("GET", configPath, ""), 200, `"start-time":"10:30"`)
	yaml := c.want(c.call("GET", configPath, "", "Accept", "application/yaml"), 200, `start-time: "10:30"`)
	c.want(c.call("PUT", configPath, yaml.body, "Content-Type", "application/yaml"), 204, "")
	c.want(c.call("GET", configPath+"x", "", "Accept", "application/yaml"), 404, "error-message:")
}

// TestBadRequests checks that the answer names each invalid field, its value and what
// would be right, and that nothing is stored.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	t.Cleanup(func() { c.want(c.call("GET", configPath, ""), 404, "") }) // Nothing was stored.
	for name, row := range map[string]struct {
		method, path, body string
		status             int
		parts              []string
	}{
		"time of day": {
			"PUT", configPath, strings.Replace(body, "01:00", "25:00", 1), 400,
			[]string{`maintenance-windows[0].start-time: \"25:00\" is not a time of day; use HH:MM from 00:00 to 23:59`, `"field":"maintenance-windows[0].start-time"`, `"value":"25:00"`},
		},
		"three problems at once": {
			"PUT", configPath, `{"worker-application":[],"maintenance-windows":[{"days-of-week":"Fryday","start-time":"01:00","duration":"0s"}]}`, 400,
			[]string{"worker-application", "Friday", "duration"},
		},
		"cut JSON":              {"PUT", configPath, body[:40], 400, []string{"error-message"}},
		"too large":             {"PUT", configPath, strings.Repeat(" ", 1<<20) + body, 413, []string{"larger than 1048576 bytes"}},
		"unknown tenant name":   {"GET", "/v1/config/tenants/No_Tenant/os-upgrade", "", 403, []string{"is not valid for tenant"}},
		"another tenant":        {"GET", "/v1/config/tenants/other/os-upgrade", "", 403, []string{"is not valid for tenant"}},
		"unknown query":         {"GET", configPath + "?validat=true", "", 400, []string{"validat", "fields, validate"}},
		"query twice":           {"GET", configPath + "?validate=true&validate=true", "", 400, []string{"more than once"}},
		"query with semicolon":  {"PUT", configPath + "?validate=true;", body, 400, []string{`cannot parse query \"validate=true;\"`}},
		"query badly escaped":   {"PUT", configPath + "?validate=true&%zz", body, 400, []string{"percent-encoded"}},
		"validate=yes":          {"PUT", configPath + "?validate=yes", body, 400, []string{`\"yes\"`, `\"true\"`}},
		"unknown field":         {"GET", statePath + "?fields=stat", "", 400, []string{"stat", "status"}},
		"fields cut":            {"GET", statePath + "?fields=last-upgrade-info/[result", "", 400, []string{"a ] is missing"}},
		"content":               {"GET", statePath + "?content=all", "", 400, []string{"nonconfig"}},
		"unknown site":          {"GET", statePath + "?site=mars", "", 404, []string{`site \"mars\" does not exist`}},
		"run that is no number": {"GET", statePath + "/runs/last", "", 400, []string{"use a number"}},
		"unknown run":           {"GET", statePath + "/runs/77", "", 404, []string{"run 77"}},
		"unknown host":          {"GET", statePath + "/hosts/h77", "", 404, []string{`host \"h77\" is not known`}},
		"start with no config":  {"POST", statePath + "/start", "", 404, []string{"no os-upgrade configuration"}},
		"override, no reason":   {"POST", statePath + "/start", `{"override-window":true}`, 400, []string{"reason"}},
		"wrong method":          {"POST", configPath, "{}", 405, []string{"GET, HEAD, PUT, PATCH, DELETE, OPTIONS"}},
		"nothing there":         {"GET", "/v1/config/tenants/demo/os-upgrades", "", 404, []string{"there is nothing at"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &caller{t: t, dev: c.dev}
			got := c.call(row.method, row.path, row.body)
			for _, part := range row.parts {
				c.want(got, row.status, part)
			}
			var parsed struct {
				Errors []map[string]any `json:"errors"`
			}
			if err := json.Unmarshal([]byte(got.body), &parsed); err != nil || len(parsed.Errors) == 0 || parsed.Errors[0]["error-info"] == nil {
				t.Errorf("the body has not the form that Avassa's clients need: %s", got.body)
			}
		})
	}
}

// TestTokens checks tenants and rights of tokens.
func TestTokens(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	add := func(tenant string, allow ...access.Role) string {
		text, err := c.dev.Tokens.Add(principal.Token{Name: "test", Tenant: tenant, Allow: allow})
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + text
	}
	reader, all, other := add("demo", access.Reads), add(access.AnyTenant, access.Rights()...), add("other", access.Rights()...)
	c.want(c.call("GET", statePath, "", "Authorization", ""), 401, "has no token")
	c.want(c.call("GET", statePath, "", "Authorization", "Bearer wrong"), 401, "unknown")
	c.want(c.call("GET", statePath, "", "Authorization", "Bearer ../../token"), 401, "unknown")
	if a := c.call("GET", statePath, "", "Authorization", "Basic eDp5"); a.status != 401 || a.header.Get("WWW-Authenticate") == "" {
		t.Errorf("answered %d without a challenge", a.status)
	}
	c.want(c.call("GET", statePath, "", "Authorization", reader), 200, "idle")
	c.want(c.call("PUT", configPath, body, "Authorization", reader), 403, "does not have the right")
	c.want(c.call("POST", statePath+"/start", "{}", "Authorization", reader), 403, "does not have the right")
	c.want(c.call("GET", statePath, "", "Authorization", other), 403, "is not valid for tenant")
	c.want(c.call("GET", statePath, "", "Authorization", all), 200, "idle")
	c.want(c.call("GET", "/v1/config/tenants/nobody/os-upgrade", "", "Authorization", all), 404, `tenant \"nobody\" does not exist`)
	c.want(c.call("GET", "/v1/config/tenants/No_Body/os-upgrade", "", "Authorization", all), 400, `is not the name of a tenant; use 1 to 63 of a-z, 0-9`)
	c.want(c.call("GET", "/v1/state/os-upgrade", "", "Authorization", all), 400, "name one")
	c.want(c.call("GET", "/v1/state/os-upgrade", "", "Authorization", reader), 200, "idle")
	c.want(c.call("GET", "/healthz", "", "Authorization", ""), 200, "ok")
	c.want(c.call("GET", "/readyz", "", "Authorization", ""), 200, "ok")
}

// TestTokenExpires checks that a token is valid until it expires.
func TestTokenExpires(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	for left, want := range map[time.Duration]int{-time.Second: 401, time.Hour: 200} {
		expires := time.Now().Add(left)
		text, err := c.dev.Tokens.Add(principal.Token{Name: "test", Tenant: "demo", Allow: access.Rights(), Expires: &expires})
		if err != nil {
			t.Fatal(err)
		}
		if a := c.call("GET", statePath, "", "Authorization", "Bearer "+text); a.status != want {
			t.Errorf("a token that expires in %s is answered %d, not %d", left, a.status, want)
		}
	}
}

// TestTokenFormat checks that a token of format 1 is good, also with a member
// that this version does not know, and that one of another format is refused and
// not taken for what it resembles.
func TestTokenFormat(t *testing.T) {
	t.Parallel()
	const text = "osu_000102030405060708090a0b0c0d0e0f1011121314151617"
	const name = "43ecd683e3f42fecfb83ae411841443fced40a41393a380c8d10874d51128dbf.json"
	expires := time.Date(2126, 11, 21, 0, 0, 0, 0, time.UTC)
	sum := sha256.Sum256([]byte(strings.TrimSuffix(name, ".json") + "\n\"test\"\n\"demo\"\n[\"read\" \"write\" \"start\"]\n2126-11-21T00:00:00Z"))
	body, err := format.Token.Encode(struct {
		principal.Token
		Sum string `json:"sum"`
	}{principal.Token{Name: "test", Tenant: "demo", Allow: []access.Role{access.Reads, access.Writes, access.Starts}, Expires: &expires}, hex.EncodeToString(sum[:])})
	if err != nil {
		t.Fatal(err)
	}
	kept := formattest.Golden(t, "testdata/format1/"+name, append(body, '\n'))
	for _, kind := range []struct {
		file []byte
		want int
	}{
		{kept, 200},
		{bytes.Replace(kept, []byte("{"), []byte(`{"more":[1],`), 1), 200},
		{bytes.Replace(kept, []byte(`"format":1`), []byte(`"format":2`), 1), 500},
		{bytes.Replace(kept, []byte(`"demo"`), []byte(`"*"`), 1), 401},
		{bytes.Replace(kept, []byte(`"read","write"`), []byte(`"read"`), 1), 401},
		{bytes.Replace(kept, []byte(`"test"`), []byte(`"ops"`), 1), 401},
		{bytes.Replace(kept, []byte(`2126-`), []byte(`2926-`), 1), 401},
		{bytes.Replace(kept, []byte(`,"sum"`), []byte(`,"some"`), 1), 401},
		{kept[:len(kept)/2], 401},
	} {
		c := newCaller(t, 0) // A file is read once.
		if err := os.WriteFile(filepath.Join(c.dir, "credentials", "tokens", name), kind.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if a := c.call("GET", statePath, "", "Authorization", "Bearer "+text); a.status != kind.want {
			t.Errorf("%s is answered %d: %s", kind.file, a.status, a.body)
		}
	}
}

// TestTokenNames checks that the name of a token is printable.
func TestTokenNames(t *testing.T) {
	t.Parallel()
	tokens := principal.NewTokens(&credentialtest.Memory{}, &credentialtest.Memory{})
	for name, possible := range map[string]bool{
		"me": true, "Åsa from the night shift": true, strings.Repeat("å", 63): true,
		"": false, " ": false, "a\nb": false, "\x1b[2J": false, "a\u202eb": false, "\xff": false, strings.Repeat("a", 64): false,
	} {
		if _, err := tokens.Add(principal.Token{Name: name, Tenant: "demo", Allow: access.Rights()}); (err == nil) != possible {
			t.Errorf("a token with the name %q: %v", name, err)
		}
	}
}

// TestStateObject checks Avassa's state object around a whole run, and the objects
// of ours beside it.
func TestStateObject(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 2)
	c.want(c.call("PUT", configPath, `{"worker-applications":[{"name":"os-upgrade-simulated"}]}`), 201, "")
	c.want(c.call("POST", statePath+"/start", ""), 412, "no maintenance window is configured")
	started := c.start(`{"override-window":true,"reason":"a test"}`)
	run := c.finish(started)
	if run.Result != "completed" || run.RequestedBy != "dev" || run.RequestReason != "a test" {
		t.Errorf("the run ended as %+v", run)
	}
	c.want(c.call("GET", statePath+"?fields=status,last-upgrade-info/[result,hosts/hostname]", ""), 200,
		`{"status":"idle","last-upgrade-info":{"result":"completed","hosts":[{"hostname":"h01"},{"hostname":"h02"}]}}`)
	c.want(c.call("GET", statePath+"?content=config", ""), 200, `{"worker-applications":[{"name":"os-upgrade-simulated"}]}`)
	if a := c.call("GET", statePath+"?content=nonconfig&site=dev", ""); strings.Contains(a.body, "worker-applications") {
		t.Errorf("nonconfig has configuration in it: %s", a.body)
	}
	c.want(c.call("GET", statePath, ""), 200, `"scheduled-workers":[{"host":"h01","application":"os-upgrade-simulated"},{"host":"h02"`)
	c.want(c.call("GET", "/v1/state/os-upgrade/hosts/h02", ""), 200, `"versions":{"base-os":"1.1","kernel":"6.1.1"}`)
	c.want(c.call("GET", statePath+"/hosts?fields=hostname,online", ""), 200, `[{"hostname":"h01","online":true},{"hostname":"h02","online":true}]`)
	second := c.finish(c.start(`{"override-window":true,"reason":"once more","duration":"1h"}`))
	if second.ID <= run.ID {
		t.Errorf("the second run has id %d, the first %d", second.ID, run.ID)
	}
	// The first run is no longer in memory: it is folded from the log again.
	c.want(c.call("GET", fmt.Sprintf("%s/runs/%d", statePath, run.ID), ""), 200, `"hostname":"h02","status":"upgraded"`)
	c.want(c.call("GET", statePath+"/runs?fields=id,result", ""), 200,
		fmt.Sprintf(`[{"id":%d,"result":"completed"},{"id":%d,"result":"completed"}]`, second.ID, run.ID))
}

// shown is what these tests read of a run.
type shown struct {
	ID            uint64 `json:"id"`
	Phase, Result string
	RequestedBy   string `json:"requested-by"`
	RequestReason string `json:"request-reason"`
}

func (c *caller) start(body string) shown {
	c.t.Helper()
	a := c.call("POST", statePath+"/start", body)
	c.want(a, 200, `"phase":"preparing"`)
	var run shown
	if err := json.Unmarshal([]byte(a.body), &run); err != nil {
		c.t.Fatal(err)
	}
	return run
}

// finish follows the events until a run has ended.
func (c *caller) finish(run shown) shown {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	request, err := http.NewRequestWithContext(ctx, "GET", c.dev.Endpoint+statePath+"/events", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.dev.Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	buffer := &bytes.Buffer{}
	chunk := make([]byte, 4096)
	for {
		n, err := response.Body.Read(chunk)
		if err != nil {
			c.t.Fatalf("the events end before the run does: %v", err)
		}
		buffer.Write(chunk[:n])
		for line := range strings.Lines(buffer.String()) {
			data, found := strings.CutPrefix(line, "data: ")
			var seen shown
			if found && json.Unmarshal([]byte(data), &seen) == nil && seen.ID == run.ID && seen.Phase == "finished" {
				return seen
			}
		}
	}
}

// TestDeleteDuringRun checks that a configuration in use is kept.
func TestDeleteDuringRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Actions of an hour keep the run under way.
	d, err := dev.Start(t.Context(), dev.Options{Dir: dir, Hosts: 1, ActionTime: 1e9 * 3600})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c := &caller{t: t, dev: d, dir: dir}
	c.want(c.call("PUT", configPath, `{"worker-applications":[{"name":"os-upgrade-simulated"}]}`), 201, "")
	run := c.start(`{"override-window":true,"reason":"a test"}`)
	c.want(c.call("DELETE", configPath, ""), 412, fmt.Sprintf(`"run":%d`, run.ID))
	c.want(c.call("POST", statePath+"/start", `{"override-window":true,"reason":"again"}`), 412, "is in progress")
	c.want(c.call("GET", statePath, ""), 200, `"status":"preparing"`)
	c.want(c.call("DELETE", configPath+"?force=true", ""), 204, "")
	c.want(c.call("GET", fmt.Sprintf("%s/runs/%d", statePath, run.ID), ""), 200, `"waiting-for":{"what":"host","detail":"h01 to answer prepare"`)
}

// TestHostsInParts follows the header Link through the list of the hosts.
func TestHostsInParts(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 5)
	hosts := statePath + "/hosts"
	c.want(c.call("GET", hosts+"?count=true", ""), 200, "5")
	for _, query := range []string{"limit=2", "limit=2&keys=true", "limit=2&fields=hostname", "limit=2&inventory=true"} {
		path, parts, all := hosts+"?"+query, 0, ""
		for path != "" {
			a := c.want(c.call("GET", path, ""), 200, "")
			parts++
			all += a.body
			link := a.header.Get("Link")
			if path, _ = strings.CutSuffix(link, `>; rel="next"`); path != "" {
				path = path[1:]
			}
			if parts > 3 {
				t.Fatalf("%s: after %d parts there is %s", query, parts, link)
			}
		}
		if parts != 3 {
			t.Errorf("%s has %d parts", query, parts)
		}
		for _, name := range []string{"h01", "h02", "h03", "h04", "h05"} {
			if strings.Count(all, `"`+name+`"`) != 1 {
				t.Errorf("%s is not once in %s", name, all)
			}
		}
	}
	if a := c.want(c.call("GET", hosts+"?limit=5&keys=true", ""), 200, `["h01","h02","h03","h04","h05"]`); a.header.Get("Link") != "" {
		t.Errorf("behind the last part there is %s", a.header.Get("Link"))
	}
	c.want(c.call("GET", hosts+"?after=h03&keys=true", ""), 200, `["h04","h05"]`)
	c.want(c.call("GET", hosts+"?after=h03x&limit=1&keys=true", ""), 200, `["h04"]`)
	c.want(c.call("GET", hosts+"?after=zzz", ""), 200, `[]`)
	for query, part := range map[string]string{
		"limit=0":              `limit: \"0\" is not a number of hosts; use 1 to 1000`,
		"limit=1001":           `limit: 1001 is out of range; use 1 to 1000`,
		"limit=x":              `limit: \"x\" is not a number of hosts`,
		"after=":               `after: it is empty`,
		"after=%2F":            `after: \"/\" is not the name of a host`,
		"count=true&limit=2":   `count: it counts all hosts; omit after and limit`,
		"count=true&after=h01": `count: it counts all hosts; omit after and limit`,
	} {
		c.want(c.call("GET", hosts+"?"+query, ""), 400, part)
	}
}
