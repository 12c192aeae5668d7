package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// avassaClient is what a user of Avassa's Python client does with it, against a site with
// TLS: the endpoint, and the password of user ann, are its arguments.
const avassaClient = `
import json, sys, urllib.error
import avassa_client as avassa

endpoint, password = sys.argv[1:]
config, rollout = "/v1/config/os-upgrade", "/v1/config/os-upgrade/rollout"

def show(what, answer):
    code, _, _, body = answer
    print(what, code, body.strip())

def refused(what, send):
    try:
        send()
    except urllib.error.HTTPError as e:
        print(what, e.code, avassa.get_error(e))

session = avassa.login(endpoint, "ann", password, tenant="acme")
session.refresh_token()
print("refreshed", session.get_token_recommended_refresh() < session.get_token_expiry())
show("put", avassa.put_request(session, config, {"worker-applications": [{"name": "appliance"}]}))
show("put rollout", avassa.put_request(session, rollout, {"splay": "1h"}))
show("merge", avassa.patch_request(session, rollout, {"splay": None, "paused": True}))
show("operations", avassa.patch_request(session, rollout, [{"op": "add", "path": "/splay", "value": "2h"}]))
show("get", avassa.get_request(session, rollout))
show("state", avassa.get_request(session, "/v1/state/os-upgrade?fields=status"))
refused("a wrong patch", lambda: avassa.patch_request(session, rollout, {"splya": "1h"}))
_, _, _, made = avassa.post_request(session, "/v1/config/strongbox/authentication/approles", {"name": "tf", "token-policies": ["viewer"]})
_, _, _, secret = avassa.post_request(session, "/v1/state/strongbox/authentication/approles/tf/secret-ids", {})
program = avassa.approle_login(endpoint, json.loads(made)["role-id"], json.loads(secret)["secret-id"])
show("approle", avassa.get_request(program, rollout))
try:
    avassa.login(endpoint, "ann", "wrong password")
except avassa.LoginError as e:
    print(e.message)
`

// TestAvassaPythonClient uses Avassa's own Python client against a site with TLS.
func TestAvassaPythonClient(t *testing.T) {
	t.Parallel()
	library, err := filepath.Abs("../../.cache/avassa-client")
	if err != nil {
		t.Fatal(err)
	}
	python, err := exec.LookPath("python3")
	if _, missing := os.Stat(library); missing != nil || err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("there is no Python client of Avassa; run tools/avassa-client.sh install")
		}
		t.Skip("there is no Python client of Avassa; run tools/avassa-client.sh install")
	}
	f := newJoinFleet(t)
	password := f.command("credentials", "user", "--data", f.path("site"), "--tenant", "acme", "--name", "ann", "--allow", "admin")
	ca, err := os.ReadFile(f.path("site", "tls", "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, "-c", avassaClient, f.endpoint, password) //nolint:gosec // a test
	command.Env = append(os.Environ(), "PYTHONPATH="+library, "PYTHONDONTWRITEBYTECODE=1", "API_CA_CERT="+string(ca))
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := strings.TrimSpace(`
refreshed True
put 201
put rollout 201
merge 204
operations 204
get 200 {"splay":"2h","paused":true}
state 200 {"status":"idle"}
a wrong patch 400 splya: unknown key; did you mean splay?
approle 200 {"splay":"2h","paused":true}
`)
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	last := len(lines) - 1
	if got := strings.Join(lines[:last], "\n"); got != want || !strings.Contains(lines[last], "the login is wrong") {
		t.Errorf("the client prints\n%s\nwant\n%s", out, want)
	}
}
