package apt_test

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
)

// TestRealWorkerIsUpgraded upgrades, in the midst of other packages, one that restarts
// the worker and has systemd execute itself anew, as the packages of agent and systemd
// do. The new worker takes the action over, the host reboots, and the run is completed.
func TestRealWorkerIsUpgraded(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	const restart = `if [ -n "$2" ]; then echo "$(date +%s.%N)" >>/var/restarted; systemctl daemon-reexec; systemctl restart osupgrade-worker; systemctl restart dbus.socket dbus || true; sleep 0.5; fi`
	debs := func(version string) []realhost.Deb {
		last := simple("appliance-z", version, marker)
		last.Fields = []string{"Depends: appliance-agent (= " + version + ")"}
		return []realhost.Deb{configured("appliance", version), simple("appliance-agent", version, restart), last}
	}
	d := newDebian(t, debs("1.0")...)
	site := realhost.NewSite(t)
	d.Cut()
	site.AddHost(d, "h01", map[string]string{"apt-versions": "[appliance*]"})
	d.Start()
	site.Online("h01")
	first := d.BootID()
	d.repository.Add(debs("2.0")...)
	run := site.Upgrade()
	if run.Result != "completed" || run.Hosts[0].Status != "upgraded" {
		t.Errorf("the run ended as %s: %s: %+v\n%s", run.Result, run.Reason, run.Hosts, d.Must("journalctl -u osupgrade-worker --no-pager | tail -40"))
	}
	d.has("ii appliance 2.0\nii appliance-agent 2.0\nii appliance-z 2.0")
	if second := d.BootID(); second == first || d.Boots() != 3 {
		t.Errorf("boot ids %s and %s, %d boots", first, second, d.Boots())
	}
	if n := strings.Count(d.Must("cat /var/restarted"), "\n"); n != 1 {
		t.Errorf("the worker was restarted %d times by its package, not once", n)
	}
	journal := d.Must("journalctl --no-pager -o cat")
	if !strings.Contains(journal, `because="/var/lib/dpkg/status exists"`) {
		t.Errorf("the worker does not say why its strategy is apt:\n%s", journal[max(0, len(journal)-3000):])
	}
}
