package realhost_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// packages builds the deb in two versions, with one program.
func packages(t *testing.T) (debs [2]string) {
	t.Helper()
	out := t.TempDir()
	programs := []string{"AGENT=" + realhost.Program(t, "0.2.0"), "WORKER=" + realhost.Worker(t, "0.2.0")}
	for i, version := range []string{"0.1.0", "0.2.0"} {
		dir := filepath.Join(out, version)
		pack := exec.CommandContext(t.Context(), "../../../tools/packages.sh", dir, version, "amd64")
		pack.Env = append(os.Environ(), programs...)
		if text, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("cannot build a package: %v\n%s", err, text)
		}
		debs[i] = filepath.Join(dir, "osupgrade-agent_"+version+"_amd64.deb")
	}
	return debs
}

// TestRealPackage lives with the deb: install it, run a site, let a host join, upgrade the
// package in the middle of an action that does that itself, remove it and purge it.
func TestRealPackage(t *testing.T) {
	t.Parallel()
	realhost.Need(t, realhost.Hosts)
	c := realhost.NewContainer(t, realhost.ContainerOptions{Size: "2g", Arguments: []string{"--private-network"}})
	for i, deb := range packages(t) {
		text, err := os.ReadFile(deb)
		if err != nil {
			t.Fatal(err)
		}
		c.WriteFile([]string{"/root/1.deb", "/root/2.deb"}[i], string(text))
	}
	c.Start()
	c.BootID()
	c.Must("ip link set lo up; dpkg -i /root/1.deb")
	says := func(command, want string) {
		t.Helper()
		if got := c.Must(command); !strings.Contains(got, want) {
			t.Errorf("%s says %q, not %q", command, got, want)
		}
	}
	says("systemctl is-active osupgrade-agent osupgrade-worker; true", "inactive\ninactive")
	says("stat -c '%U %a' /var/lib/osupgrade", "osupgrade 700")

	// A site and a host, as the guide says. The configuration is changed, so that it is seen whether it stays.
	const script = `set -e
sed -i 's/^timezone:.*/timezone: UTC/; s/^tenants:.*/tenants: [acme]/' /etc/osupgrade/serve.yaml
runuser -u osupgrade -- osupgrade-agent init --name localhost
systemctl enable --now osupgrade-agent
runuser -u osupgrade -- osupgrade-agent credentials join-token create --tenant acme --host h01 --application appliance >/root/token
chmod 600 /root/token
mkdir -p /etc/osupgrade/scripts
cd /etc/osupgrade/scripts
printf '#!/bin/sh\necho agent $(dpkg-query -W -f \\${Version} osupgrade-agent)\n' >versions
printf '#!/bin/sh\nset -e\ndpkg -i /root/2.deb\nsystemctl show -p MainPID --value osupgrade-worker >/root/after-dpkg\nsleep 8\nsystemctl show -p MainPID --value osupgrade-worker >/root/after-action\n' >upgrade
printf '#!/bin/sh\nexit 0\n' | tee verify >resume
chmod 755 *
echo 'scripts: /etc/osupgrade/scripts' >/etc/osupgrade/worker.yaml
osupgrade-agent worker join --site https://localhost:4646 --token-file /root/token --host h01
mkdir -p /etc/systemd/system/osupgrade-worker.service.d /etc/systemd/system/osupgrade-agent.service.d
printf '[Service]\nWatchdogSec=6s\n' | tee /etc/systemd/system/osupgrade-worker.service.d/test.conf >/etc/systemd/system/osupgrade-agent.service.d/test.conf
systemctl daemon-reload
systemctl restart osupgrade-agent
systemctl enable --now osupgrade-worker
systemctl show -p MainPID --value osupgrade-worker >/root/before
systemctl show -p MainPID --value osupgrade-agent >/root/site-before
runuser -u osupgrade -- osupgrade-agent credentials token --tenant acme --name test >/root/api
chmod 600 /root/api
`
	c.Must(script)
	const cli = "OSUPGRADE_ENDPOINT=https://localhost:4646 OSUPGRADE_CA_CERT_FILE=/var/lib/osupgrade/tls/ca.pem OSUPGRADE_TENANT=acme OSUPGRADE_TOKEN_FILE=/root/api osupgrade-agent "
	c.WriteFile("/root/acme.yaml", "config:\n  worker-applications: [{name: appliance}]\n")
	c.Must(cli + "apply -f /root/acme.yaml")
	realhost.Until(t, "h01 is online", time.Minute, func() bool {
		out, err := c.Run(t.Context(), cli+"hosts")
		return err == nil && strings.Contains(out, "yes")
	})
	c.Must(cli + `start --override-window --reason "a test" --wait`)
	says("cmp /root/before /root/after-dpkg && cmp /root/before /root/after-action && echo same", "same")
	says("osupgrade-agent --version; dpkg-query -W -f '${Version}' osupgrade-agent", "0.2.0")
	realhost.Until(t, "worker and site are the new program", time.Minute, func() bool {
		out, err := c.Run(t.Context(), `[ "$(systemctl show -p MainPID --value osupgrade-worker)" != "$(cat /root/before)" ] && [ "$(systemctl show -p MainPID --value osupgrade-agent)" != "$(cat /root/site-before)" ] && systemctl is-active osupgrade-worker osupgrade-agent`)
		return err == nil && strings.Count(out, "active") == 2
	})
	says("grep timezone /etc/osupgrade/serve.yaml", "timezone: UTC")

	c.Must("dpkg -r osupgrade-agent")
	says("systemctl is-active osupgrade-agent osupgrade-worker; true", "inactive\ninactive")
	says("ls /etc/osupgrade /var/lib/osupgrade", "host.key")
	says("dpkg -P osupgrade-agent; ls -d /var/lib/osupgrade-worker /etc/osupgrade/host.key /etc/osupgrade/serve.yaml 2>&1; ls /var/lib/osupgrade", "store")
	says("ls -d /etc/osupgrade/host.key /etc/osupgrade/serve.yaml /var/lib/osupgrade-worker 2>&1 | grep -c 'No such'", "3")
}
