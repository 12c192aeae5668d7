package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestClientCertificateGuide executes all commands of the guide in their order, as they are
// written but for the folders, the port and the name of the site, and then tries what the
// certificate of a viewer must not do, with curl as a user would.
func TestClientCertificateGuide(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	root := t.TempDir()
	api, nats := freePorts(t)
	equip(t, root, "etc/osupgrade", "var/lib")
	data, config := root+"/var/lib/osupgrade", root+"/etc/osupgrade/serve.yaml"
	for name, text := range map[string]string{
		config: "data: " + data + "\ntenants: [acme]\nlisten: " + api + "\nnats-listen: " + nats + "\n",
		root + "/etc/systemd/system/osupgrade-agent.service": "ExecStart=" + f.bin + " serve --config " + config + "\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.command("init", "--data", data, "--name", "localhost")
	if err := os.WriteFile(root+"/etc/osupgrade/ca.pem", []byte(read(t, data+"/tls/ca.pem")), 0o600); err != nil {
		t.Fatal(err)
	}
	place := strings.NewReplacer("/etc/", root+"/etc/", "/var/lib", root+"/var/lib", "site.example:4646", strings.Replace(api, "127.0.0.1", "localhost", 1))
	script := "systemctl start osupgrade-agent\nuntil curl -sf --cacert $ROOT/etc/osupgrade/ca.pem https://" + api + "/readyz; do sleep 0.1; done\n"
	script += place.Replace(commandsOf(t, "client-certificates")) + `
sudo -u osupgrade osupgrade-agent credentials user --tenant acme --name ann --allow viewer >/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ann.key -out ann.csr -subj '/CN=ann/O=acme'
openssl x509 -req -in ann.csr -CA users.pem -CAkey users.key -days 30 -extfile <(echo extendedKeyUsage=clientAuth) -out ann.pem
osupgrade-agent status --client-cert-file ann.pem --client-key-file ann.key
call() { curl -s -o answer -w "$* is %{http_code}: " --cacert $OSUPGRADE_CA_CERT_FILE "${@:3}" -X $1 $OSUPGRADE_ENDPOINT$2; cat answer; echo; }
call GET /v1/state/os-upgrade --cert ann.pem --key ann.key
call POST /v1/state/os-upgrade/start --cert ann.pem --key ann.key
call DELETE /v1/config/os-upgrade --cert ann.pem --key ann.key
call GET /v1/state/tenants/other/os-upgrade --cert ann.pem --key ann.key
call GET /v1/state/os-upgrade --cert ann.pem --key ann.key -H "Authorization: Bearer osu_wrong"
call GET /v1/state/os-upgrade --cert ci.pem --key ci.key
call GET /v1/state/os-upgrade --cert $ROOT/var/lib/osupgrade/tls/site.pem --key $ROOT/var/lib/osupgrade/tls/site.key
call GET /v1/state/os-upgrade
call GET /healthz --cert ci.pem --key ci.key
stat -c 'mode %a' ci.key
osupgrade-agent credentials remove $(osupgrade-agent credentials list | awk '$0 ~ /user/ && $0 ~ /ann/ {print $1}')
call GET /v1/state/os-upgrade --cert ann.pem --key ann.key
`
	const state, ann = "/v1/state/os-upgrade", " --cert ann.pem --key ann.key"
	out := showGuide(t, root, script,
		[]string{"ROOT=" + root, "OSUPGRADE_DATA=" + data, "PATH=" + root + "/shims:" + filepath.Dir(f.bin) + ":" + os.Getenv("PATH")},
		"status:       idle", "mode 600",
		"GET "+state+ann+" is 200: ", "POST "+state+"/start"+ann+` is 403: {"errors":[{"error-message":"user \"ann\" (viewer) does not have the right`, "DELETE /v1/config/os-upgrade"+ann+" is 403: ",
		"GET /v1/state/tenants/other/os-upgrade"+ann+" is 403: ", ann+" -H Authorization: Bearer osu_wrong is 401: ", " --cert ci.pem --key ci.key is 401: ", "was revoked on",
		"site.key is 401: ", "lacks the extended key usage clientAuth", "GET "+state+" is 401: ", "has neither a token nor a client certificate", "GET /healthz --cert ci.pem --key ci.key is 200: ",
		"GET "+state+ann+" is 401: ", `user \"ann\" of tenant \"acme\", and this site has no such user`)
	journal := read(t, root+"/osupgrade-agent.journal")
	for _, secret := range []string{"PRIVATE KEY", strings.Split(read(t, root+"/ci.key"), "\n")[1]} {
		if strings.Contains(out+journal, secret) {
			t.Errorf("%s is shown", secret)
		}
	}
}
