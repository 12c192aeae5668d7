package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const auditPath = "/v1/state/tenants/demo/audit"

// bearer makes a token and returns the header with it.
func (c *caller) bearer(name, tenant string, allow ...string) string {
	c.t.Helper()
	text, err := c.dev.Tokens.Add(principal.Token{Name: name, Tenant: tenant, Allow: allow})
	if err != nil {
		c.t.Fatal(err)
	}
	return "Bearer " + text
}

// audit reads an audit log.
func (c *caller) audit(path, as string) v1.AuditLog {
	c.t.Helper()
	text := c.want(c.call("GET", path, "", "Authorization", as), 200, "")
	var read v1.AuditLog
	if err := json.Unmarshal([]byte(text.body), &read); err != nil {
		c.t.Fatal(err)
	}
	return read
}

// told is a record in a line.
func told(r v1.AuditRecord) string {
	line := fmt.Sprintf("%s %s %s %s %s %d", r.As, r.By, r.Action, r.Object, r.Result, r.Status)
	for _, more := range []string{r.Detail, r.Reason, r.Error} {
		if more != "" {
			line += " | " + more
		}
	}
	return line
}

// TestAudit checks which requests are in the audit log, with what, and who may read it.
func TestAudit(t *testing.T) { //nolint:funlen // a story
	t.Parallel()
	c := newCaller(t, 0)
	admin, writer, viewer, stranger := c.bearer("ann", "demo", access.Admin), c.bearer("terraform", "demo", access.Writes), c.bearer("eve", "demo", access.Viewer), c.bearer("sam", "other", access.Admin)
	all := c.bearer("root", access.AnyTenant, access.Admin)
	created := c.want(c.call("PUT", configPath, body, "Authorization", writer, "X-Request-Id", "apply-1"), 201, "")
	changed := c.want(c.call("PATCH", configPath, `{"maintenance-windows":[]}`, "Authorization", writer), 204, "")
	c.want(c.call("PUT", configPath+"?validate=true", body, "Authorization", writer), 204, "")
	c.want(c.call("GET", configPath, "", "Authorization", viewer), 200, "")
	c.want(c.call("OPTIONS", configPath, "", "Authorization", viewer), 204, "")
	c.want(c.call("DELETE", configPath, "", "Authorization", viewer), 403, "")
	c.want(c.call("DELETE", configPath, "", "Authorization", "Bearer osu_wrong"), 401, "")
	c.want(c.call("DELETE", configPath, "", "Authorization", stranger), 403, "")
	c.want(c.call("PUT", configPath, "{", "Authorization", writer), 400, "error-message")
	c.want(c.call("PUT", configPath, body, "Authorization", writer, "If-Match", `"0"`), 412, "")
	c.want(c.call("PUT", configPath+"/calendars/holidays", `{"kind":"freeze","events":[{"start":"2026-12-24","all-day":true}]}`, "Authorization", writer), 201, "")
	c.want(c.call("POST", statePath+"/pause", `{"reason":"the database moves"}`, "Authorization", all), 412, "")
	made := c.want(c.call("POST", "/v1/state/tenants/demo/strongbox/tokens", `{"name":"ci","allow":["operator"],"valid":"1h"}`, "Authorization", admin), 201, "")
	var ci v1.Token
	if err := json.Unmarshal([]byte(made.body), &ci); err != nil {
		t.Fatal(err)
	}
	c.want(c.call("DELETE", "/v1/state/strongbox/tokens/"+ci.ID, "", "Authorization", admin), 204, "")
	c.want(c.call("DELETE", "/v1/state/strongbox/tokens/"+ci.ID, "", "Authorization", admin), 404, "")
	c.want(c.call("DELETE", configPath, "", "Authorization", writer), 204, "")

	for _, as := range []string{writer, viewer, stranger} {
		c.want(c.call("GET", auditPath, "", "Authorization", as), 403, "")
	}
	c.want(c.call("GET", "/v1/state/tenants/*/audit", "", "Authorization", admin), 403, "")
	c.want(c.call("GET", auditPath+"?limit=0", "", "Authorization", admin), 400, "use 1 to 1000")
	c.want(c.call("GET", auditPath+"?after=x", "", "Authorization", admin), 400, "is not the number of a record")
	c.want(c.call("GET", auditPath+"?since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z", "", "Authorization", admin), 400, "is not after since")
	c.want(c.call("GET", auditPath+"?by=", "", "Authorization", admin), 400, "it is empty")

	read := c.audit(auditPath+"?after=0", admin)
	short := ci.ID[:12]
	want := []string{
		"token terraform write config done 201",
		"token terraform change config done 204",
		"token eve delete config refused 403 | token \"eve\" (viewer) does not have the right to delete this; use a token with admin or write",
		"token terraform write config refused 400 | bad request",
		"token terraform write config refused 412 | the os-upgrade configuration of tenant \"demo\" has ETag " + changed.header.Get("ETag") + "; read it again before you change it",
		"token terraform write calendar/holidays done 201",
		"token root pause run refused 412 | the database moves | no run is in progress",
		"token ann create token/" + short + " done 201 | name ci, allows operator, until " + ci.Expires.Format(time.RFC3339),
		"token ann delete token/" + short + " done 204 | name ci",
		"token ann delete token/" + short + " refused 404 | tenant \"demo\" has no token \"" + ci.ID + "\"",
		"token terraform delete config done 204",
	}
	var got []string
	for _, r := range read.Records {
		got = append(got, told(r))
		if !strings.HasPrefix(r.From, "127.0.0.1:") || r.Tenant != "demo" || r.RequestID == "" || len(r.Token) != 12 || time.Since(r.At) > time.Hour {
			t.Errorf("a record is %+v", r)
		}
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("the records are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	first, second := strings.Trim(created.header.Get("ETag"), `"`), strings.Trim(changed.header.Get("ETag"), `"`)
	for i, r := range map[int][3]string{
		0:  {"", first, "+     - days-of-week: Friday, Saturday\n"},
		1:  {first, second, "-     - days-of-week: Friday, Saturday\n"},
		5:  {"", read.Records[5].After, "+ kind: freeze\n"},
		10: {second, read.Records[10].After, "- worker-applications:\n"},
	} {
		if now := read.Records[i]; now.Before != r[0] || now.After != r[1] || now.After == "" || !strings.Contains(now.Diff, r[2]) {
			t.Errorf("record %d has revisions %q to %q and the diff\n%s", i, now.Before, now.After, now.Diff)
		}
	}
	if r := read.Records[0]; r.Request != "PUT "+configPath || r.RequestID != "apply-1" {
		t.Errorf("the first record is %+v", r)
	}
	if len(read.Damage) > 0 || read.First != 1 || read.Last != uint64(len(want)) {
		t.Errorf("the log is from %d to %d, damaged: %v", read.First, read.Last, read.Damage)
	}
	if newest := c.audit("/v1/state/audit?limit=2&by=ann", admin); len(newest.Records) != 2 || newest.Records[1].Status != 404 {
		t.Errorf("the newest of ann are %+v", newest.Records)
	}
	if ofAll := c.audit("/v1/state/audit", all); len(ofAll.Records) != 1 || !strings.HasPrefix(told(ofAll.Records[0]), "token sam delete config refused 403") {
		t.Errorf("the log of all tenants has %+v", ofAll.Records)
	}
	if _, err := os.Stat(filepath.Join(c.dir, "audit", "other")); err == nil {
		t.Error("a tenant that there is not has a log")
	}
}

// TestAuditOfLogins checks that logins are in the audit log, those that fail within limits,
// and that no secret is: whatever of it was sent, and where.
func TestAuditOfLogins(t *testing.T) { //nolint:funlen // a story
	t.Parallel()
	c := newCaller(t, 0)
	const password = "correct horse battery"
	if _, err := c.dev.Logins.WriteUser(t.Context(), principal.User{Tenant: "demo", Name: "ann", Allow: []string{access.Admin}}, password, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	login := c.want(c.call("POST", "/v1/login", `{"username":"ann","password":"`+password+`"}`), 200, "")
	var session v1.LoggedIn
	if err := json.Unmarshal([]byte(login.body), &session); err != nil {
		t.Fatal(err)
	}
	c.want(c.call("POST", "/v1/login", `{"username":"ann","password":"`+password+`x"}`), 401, "")
	c.want(c.call("POST", "/v1/login", `{"username":"`+password+`","password":7}`), 400, "")
	ann := "Bearer " + session.Token
	c.want(c.call("POST", "/v1/state/strongbox/token/refresh", "", "Authorization", ann), 200, "")
	// A secret in the wrong place.
	c.want(c.call("DELETE", "/v1/state/strongbox/tokens/"+session.Token, "", "Authorization", ann), 404, "")
	c.want(c.call("PUT", configPath, `{"worker-applications":[{"name":"`+password+`"}]}`, "Authorization", ann), 400, "")
	c.want(c.call("PUT", configPath+"/rollout", `{"checks":{"fleet":[{"type":"http","url":"https://u:`+strings.ReplaceAll(password, " ", "-")+`@site.example/"}]}}`, "Authorization", ann), 400, "")
	c.want(c.call("POST", statePath+"/pause", `{"reason":"see `+session.Token+`"}`, "Authorization", ann), 412, "")

	const users = "/v1/config/tenants/demo/strongbox/authentication/userpass"
	c.want(c.call("PUT", users+"/bob", `{"password":"`+password+`2","token-policies":["viewer"]}`, "Authorization", ann), 201, "")
	c.want(c.call("PATCH", users+"/bob", `{"password":"`+password+`3"}`, "Authorization", ann), 204, "")
	made := c.want(c.call("POST", users, `{"name":"cid","token-policies":["viewer"]}`, "Authorization", ann), 201, "password")
	var cid v1.User
	if err := json.Unmarshal([]byte(made.body), &cid); err != nil || cid.Password == "" {
		t.Fatalf("%s: %v", made.body, err)
	}
	c.want(c.call("POST", "/v1/config/tenants/demo/strongbox/authentication/approles", `{"name":"ci","token-policies":["viewer"]}`, "Authorization", ann), 201, "")
	secret := c.want(c.call("POST", "/v1/state/tenants/demo/strongbox/authentication/approles/ci/secret-ids", `{}`, "Authorization", ann), 201, "secret-id")
	var made1 v1.SecretID
	if err := json.Unmarshal([]byte(secret.body), &made1); err != nil || made1.SecretID == "" {
		t.Fatalf("%s: %v", secret.body, err)
	}

	var got []string
	records := c.audit(auditPath+"?after=0", ann).Records
	for _, r := range records {
		got = append(got, told(r))
	}
	short := principal.ID(session.Token)[:12]
	want := []string{
		"user ann login token/" + short + " done 200",
		"user ann refresh token/" + short + " done 200",
		"user ann delete token/osu_… refused 404",
		"user ann write config refused 400 | bad request",
		"user ann write rollout refused 400 | bad request",
		"user ann pause run refused 412 | see osu_… |",
		"user ann write user/bob done 201",
		"user ann change user/bob done 204",
		"user ann create user/cid done 201",
		"user ann create approle/ci done 201",
		"user ann create secret-id/" + principal.ID(made1.SecretID)[:12] + " done 201 | of approle ci",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("the records are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r := records[7]; r.Before == "" || r.After == "" || !strings.Contains(r.Diff, `+ password: "(set)"`) {
		t.Errorf("another password has the record %+v", r)
	}
	root := c.bearer("root", access.AnyTenant, access.Admin)
	if failed := c.audit("/v1/state/audit", root).Records; len(failed) != 2 || failed[0].By != "" || failed[0].Action != "login" || failed[0].Result != v1.AuditRefused || failed[0].Status != 401 {
		t.Errorf("the failed logins are %+v", failed)
	}
	// A folder has it all, what was begun included.
	err := filepath.WalkDir(filepath.Join(c.dir, "audit"), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{password, strings.ReplaceAll(password, " ", "-"), session.Token, cid.Password, made1.SecretID, strings.TrimPrefix(root, "Bearer ")} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s has the secret %q", path, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// halfSent sends the head of a request to a path and waits until the site wants its body, which
// has that many bytes.
func (c *caller) halfSent(method, path, token string, length int) *net.TCPConn {
	c.t.Helper()
	dialed, err := (&net.Dialer{}).DialContext(c.t.Context(), "tcp", strings.TrimPrefix(c.dev.Endpoint, "http://"))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = dialed.Close() })
	conn, ok := dialed.(*net.TCPConn)
	if !ok {
		c.t.Fatalf("it is a %T", dialed)
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: site\r\nAuthorization: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", method, path, token, length)
	if _, err := io.WriteString(conn, head); err != nil {
		c.t.Fatal(err)
	}
	const wanted = "HTTP/1.1 100 Continue\r\n\r\n"
	got := make([]byte, len(wanted))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != wanted {
		c.t.Fatalf("the site answers %q: %v", got, err)
	}
	return conn
}

// TestAuditOfSlowBodies checks that a request costs no work of the disk before its body is there
// whole: a thousand clients that send theirs slowly held up all others. One whose body never
// comes, or is too large, has its record all the same.
func TestAuditOfSlowBodies(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	const wrong, rollout = `{"username":"ann","password":"correct horse battery"}`, `{"splay":"1s"}`
	writer, root := c.bearer("terraform", "demo", access.Writes), c.bearer("root", access.AnyTenant, access.Admin)
	for _, row := range []struct {
		method, path, token, body string
		cut                       bool
		want                      int
	}{
		{"POST", "/v1/login", "", wrong, false, 401},
		{"POST", "/v1/login", "", wrong, true, 400},
		{"PUT", configPath + "/rollout", writer, rollout, true, 400},
		{"PUT", configPath + "/rollout", writer, strings.Repeat(" ", v1.MaxBody+1), false, 413},
		{"PUT", configPath + "/rollout", writer, rollout, false, 201},
	} {
		conn := c.halfSent(row.method, row.path, row.token, len(row.body))
		begun, err := filepath.Glob(filepath.Join(c.dir, "audit", "*", "begun-*"))
		if err != nil || len(begun) > 0 {
			t.Errorf("%s %s: without its body it has begun %v: %v", row.method, row.path, begun, err)
		}
		if row.cut {
			err = conn.CloseWrite()
		} else {
			_, err = io.WriteString(conn, row.body)
		}
		if err != nil {
			t.Fatal(err)
		}
		answered, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s %s: %v", row.method, row.path, err)
		}
		_ = answered.Body.Close()
		if answered.StatusCode != row.want {
			t.Errorf("%s %s is answered %s; want %d", row.method, row.path, answered.Status, row.want)
		}
	}
	var got []string
	for _, log := range []string{"/v1/state/audit", auditPath} {
		for _, r := range c.audit(log+"?after=0", root).Records {
			got = append(got, told(r))
		}
	}
	want := []string{
		"  login token refused 401 | the login is wrong: ",
		"  login token refused 400 | bad request",
		"token terraform write rollout refused 400 | bad request",
		"token terraform write rollout refused 413 | the body is larger than 1048576 bytes",
		"token terraform write rollout done 201",
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("the records are\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAuditOfRefusals checks that a sender of refused requests cannot push out what others
// did.
func TestAuditOfRefusals(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	viewer, admin := c.bearer("eve", "demo", access.Viewer), c.bearer("ann", "demo", access.Admin)
	for range 60 {
		c.want(c.call("DELETE", configPath, "", "Authorization", viewer), 403, "")
	}
	if kept := len(c.audit(auditPath, admin).Records); kept != 20 {
		t.Errorf("%d of 60 refused requests are in the log", kept)
	}
}

// TestAuditOfUnknownMembers checks that the audit log shows what became of members that are
// kept for newer clients: it showed nothing, as if the object had stayed as it was.
func TestAuditOfUnknownMembers(t *testing.T) {
	t.Parallel()
	c := newCaller(t, 0)
	write := func(method, body string, status int) { // The OpenAPI text does not have what only newer clients know.
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, c.dev.Endpoint+configPath+"?unknown=keep", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+c.dev.Token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if _ = response.Body.Close(); response.StatusCode != status {
			t.Fatalf("%s %s is answered %s", method, body, response.Status)
		}
	}
	write("PUT", `{"worker-applications":[{"name":"app","channel":"beta"}],"notify":{"mail":["ops"]}}`, 201)
	write("PUT", `{"worker-applications":[{"name":"app","channel":"stable"}],"notify":{"mail":["ops"]}}`, 204)
	write("PATCH", `{"notify":null}`, 204)
	c.want(c.call("DELETE", configPath, ""), 204, "")
	var diffs []string
	for _, r := range c.audit(auditPath+"?object=config&after=0", c.bearer("ann", "demo", access.Admin)).Records {
		diffs = append(diffs, r.Diff)
	}
	for i, parts := range [][]string{
		{"+   channel: beta", "+ notify:"},
		{"-     channel: beta", "+     channel: stable"},
		{"- notify:"},
		{"-       channel: stable"},
	} {
		for _, part := range parts {
			if i >= len(diffs) || !strings.Contains(strings.Join(strings.Fields(diffs[i]), " "), strings.Join(strings.Fields(part), " ")) {
				t.Errorf("write %d has no %q in its diff, of\n%s", i+1, part, strings.Join(diffs, "\n---\n"))
			}
		}
	}
}
