package e2e

import (
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

const passphrase = "correct horse battery staple"

// TestSealedProcess restarts a site in the middle of a run, with a strongbox that a passphrase
// opens: the API is sealed, the run goes on and its hosts are heard, and a person unseals it
// by command. A start with the passphrase in a file descriptor is not sealed.
func TestSealedProcess(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	api := f.client()
	if _, err := api.PutConfig(t.Context(), "acme", v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "appliance"}}}, client.Precondition{}); err != nil {
		t.Fatal(err)
	}
	f.gather(api, 3)
	token := f.path("token")
	if err := os.WriteFile(token, []byte(f.token), 0o600); err != nil {
		t.Fatal(err)
	}
	says := func(stdin string, code int, want string, args ...string) {
		t.Helper()
		if out, got := f.try(stdin, args...); got != code || !strings.Contains(out, want) {
			t.Errorf("%s ends with %d: %s; it should end with %d and say %q", strings.Join(args, " "), got, out, code, want)
		}
	}
	operator := func(args ...string) []string {
		return append(args, "--endpoint", "http://"+f.api, "--tenant", "acme", "--token-file", token)
	}
	says("", 0, "", operator("webhook", "add", "chat", "--url", "https://127.0.0.1:1/hook", "--new-secret")...)
	run, err := api.Start(t.Context(), "acme", v1.Start{OverrideWindow: true, Reason: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	f.await("h01 upgrade begins")
	data := f.path("site")
	says("", 1, "the new passphrase is empty", "seal", "passphrase", "--data", data)
	says("short", 2, "use at least 12 characters", "seal", "passphrase", "--data", data)
	says(passphrase+"\n", 0, "The strongbox is opened by the passphrase.", "seal", "passphrase", "--data", data)
	says("", 0, "", operator("hosts")...) // The site that runs stays open.

	f.site.kill()
	f.startSite()
	f.sealed(true, "the strongbox is not ready: strongbox sealed: it is opened by a passphrase; run osupgrade-agent unseal")
	says("", 1, "osupgrade-agent: strongbox sealed: it is opened by a passphrase; run osupgrade-agent unseal (GET", operator("hosts")...)
	f.release("h01")
	f.await("h02 upgrade begins") // The run continues.
	unseal := []string{"unseal", "--endpoint", "http://" + f.api}
	says("", 1, "the passphrase of the strongbox is empty", unseal...)
	says("wrong", 1, "the passphrase is wrong; the site stays sealed", unseal...)
	says(passphrase+"\n", 0, "The site is open.", unseal...)
	f.sealed(false, "ok")
	says("", 0, "h01", operator("hosts")...)
	says("", 1, "an administrator of the site can allow it with osupgrade-agent serve --allow-local 127.0.0.1:1", operator("webhook", "test", "chat")...)
	says("", 1, "strongbox sealed: it is opened by a passphrase; run osupgrade-agent unseal; or give --current FILE", "seal", "rotate", "--data", data)
	says(passphrase, 0, "Restart the site", "seal", "rotate", "--data", data, "--current", "-")

	f.site.kill()
	secret := f.path("passphrase")
	if err := os.WriteFile(secret, []byte(passphrase+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := f.bin
	f.bin = "/bin/sh"
	f.site, _ = f.launch("serve", "-c", "exec "+bin+" serve --passphrase-fd 3 --allow-local 127.0.0.1:1 --data "+data+" --tenants acme --listen "+f.api+" --nats-listen "+f.nats+" 3<"+secret)
	f.bin = bin
	f.ready(http.StatusOK, "ok")
	says("", 1, "connection refused", operator("webhook", "test", "chat")...)
	f.release("h02")
	f.await("h03 upgrade begins")
	f.release("h03")
	f.await("h03 reboot begins")
	f.stop("h03")
	if err := os.WriteFile(f.path("h03", "off"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.await("h03 reboots")
	f.workers["h03"] = f.startWorker("h03")
	if ended := f.finished(api, run.ID); ended.Result != "completed" {
		t.Errorf("the run ended as %s: %s: %+v", ended.Result, ended.Reason, ended.Hosts)
	}
	for _, name := range []string{"serve.log"} {
		if text, err := os.ReadFile(f.path(name)); err != nil || strings.Contains(string(text), passphrase) {
			t.Errorf("%s has the passphrase, %v", name, err)
		}
	}
}

// sealed waits until /readyz says that the site is sealed, or open, and checks that its
// metrics say the same.
func (f *fleet) sealed(sealed bool, says string) {
	f.t.Helper()
	status, want := http.StatusOK, "osupgrade_sealed 0"
	if sealed {
		status, want = http.StatusServiceUnavailable, "osupgrade_sealed 1"
	}
	f.ready(status, says)
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://"+f.api+"/metrics", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+f.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || !strings.Contains(string(body), "\n"+want+"\n") {
		f.t.Errorf("a scrape is answered %d, without %q, %v", answer.StatusCode, want, err)
	}
}

// ready checks what /readyz answers, once it does.
func (f *fleet) ready(status int, want string) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get("http://" + f.api + "/readyz") //nolint:noctx // a test
		if err != nil {
			f.t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if err == nil && answer.StatusCode == status && strings.Contains(string(body), want) {
			return
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("/readyz answers %d %s, %v; it should be %d with %q", answer.StatusCode, body, err, status, want)
		}
	}
}

// TestKilledSeal kills the commands that change what opens a strongbox at any moment: it is
// opened as before, or as was asked for, and the key of the authority stays readable.
func TestKilledSeal(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	data := f.path("site")
	f.command("init", "--data", data, "--name", "localhost")
	if body, err := os.ReadFile(filepath.Join(data, "tls", "ca.key")); err != nil || strings.Contains(string(body), "PRIVATE KEY") {
		t.Fatalf("the key of the authority is %s, %v", body, err)
	}
	secrets := []string{f.path("one"), f.path("two")}
	for i, name := range secrets {
		if err := os.WriteFile(name, []byte(strings.Repeat(string(rune('a'+i)), 40)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := secrets[0]
	f.command("seal", "key-file", "--data", data, "--file", now)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test
	killed := 0
	for range 15 {
		next := secrets[random.IntN(len(secrets))]
		cmd := exec.CommandContext(t.Context(), f.bin, "seal", "key-file", "--data", data, "--file", next) //nolint:gosec // our own binary
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(120 * time.Millisecond))))
		_ = cmd.Process.Kill()
		if cmd.Wait() != nil {
			killed++
		}
		out := f.command("init", "--data", data, "--name", "localhost")
		if strings.Contains(out, "Made the authority") {
			t.Fatalf("the authority was made anew: %s", out)
		}
		if status := f.command("seal", "status", "--data", data); !strings.Contains(status, "/one.") && !strings.Contains(status, "/two.") {
			t.Fatalf("it says %s", status)
		}
	}
	if killed == 0 {
		t.Error("no command was killed")
	}
}

// TestStrongboxGuide executes all commands of the guide in their order, with a script in
// place of systemd.
func TestStrongboxGuide(t *testing.T) {
	t.Parallel()
	f := newProgram(t)
	root, data := t.TempDir(), f.path("site")
	api, nats := freePorts(t)
	token := f.command("credentials", "token", "--new-site", "--data", data, "--tenant", "acme", "--name", "ann")
	equip(t, root, "media/key")
	unit := "ExecStart=" + f.bin + " serve --data " + data + " --tenants acme --listen " + api + " --nats-listen " + nats + "\n"
	if err := os.WriteFile(filepath.Join(root, "etc/systemd/system/osupgrade-agent.service"), []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	script := "systemctl start osupgrade-agent\nuntil osupgrade-agent hosts; do sleep 0.1; done\n" + commandsOf(t, "strongbox")
	showGuide(t, root, strings.ReplaceAll(script, "/media/", root+"/media/"),
		[]string{
			"ROOT=" + root, "OSUPGRADE_DATA=" + data, "OSUPGRADE_ENDPOINT=http://" + api, "OSUPGRADE_TENANT=acme", "OSUPGRADE_TOKEN=" + token,
			"PATH=" + root + "/shims:" + filepath.Dir(f.bin) + ":" + os.Getenv("PATH"),
		},
		"is opened by the key file "+root+"/media/key/strongbox.key", "is opened by the passphrase", "Retry-After: 10", "strongbox sealed: it is opened by a passphrase", "The site is open.",
		"The strongbox has a new key", "The strongbox is put aside: ")
}

// TestStrongboxCredential has systemd-creds make the credential as the help of the command
// says, with the key of this machine, and starts a site with and without it.
func TestStrongboxCredential(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("systemd-creds"); err != nil || os.Getuid() != 0 {
		t.Skip("systemd-creds needs root, and systemd 250")
	}
	f := newProgram(t)
	script := `
head -c 32 /dev/urandom | systemd-creds encrypt --with-key=host --name=osupgrade-strongbox - encrypted
systemd-creds decrypt --name=osupgrade-strongbox encrypted - | "$AGENT" seal credential
mkdir credentials
systemd-creds decrypt --name=osupgrade-strongbox encrypted credentials/osupgrade-strongbox
`
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	cmd.Dir, cmd.Env = f.dir, append(os.Environ(), "AGENT="+f.bin, "OSUPGRADE_DATA="+f.path("site"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f.startSite()
	f.ready(http.StatusServiceUnavailable, "it is opened by the credential osupgrade-strongbox of systemd, and there are none; start the site by its unit")
	f.site.kill()
	f.env = []string{"CREDENTIALS_DIRECTORY=" + f.path("credentials")}
	f.startSite()
	f.ready(http.StatusOK, "ok")
}
