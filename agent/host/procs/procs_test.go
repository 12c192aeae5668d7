package procs

import (
	"strings"
	"testing"
)

// TestOwnerOf reads what the kernel writes about the control groups of a process.
func TestOwnerOf(t *testing.T) {
	t.Parallel()
	for groups, want := range map[string]string{
		"0::/system.slice/apt-daily-upgrade.service\n":                                           "apt-daily-upgrade.service",
		"0::/system.slice/packagekit.service\n":                                                  "packagekit.service",
		"12:pids:/\n1:name=systemd:/system.slice/cron.service\n0::/\n":                           "cron.service",
		"2:cpu:/other.service\n0::/system.slice/system-getty.slice/getty@tty1.service/payload\n": "getty@tty1.service",
		"0::/user.slice/user-1000.slice/session-3.scope\n":                                       "a login of alice",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-console.service\n":       "a login of alice",
		"0::/system.slice/osupgrade-action-104.scope\n":                                          "osupgrade-action-104.scope",
		"0::/\n": "", "": "", "nonsense": "", "0::": "", "0::relative": "", "0::/user-5": "",
	} {
		if got := ownerOf(groups, func(uid string) string { return map[string]string{"1000": "alice"}[uid] }); got != want {
			t.Errorf("%q: %q, want %q", groups, got, want)
		}
	}
}

// TestStops checks which commands count as those that stop a worker.
func TestStops(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]bool{
		"systemctl restart osupgrade-worker.service":       true,
		"/bin/systemctl -q try-restart a osupgrade-worker": true,
		"systemctl stop osupgrade-worker":                  true,
		"systemctl reboot":                                 true,
		"systemctl isolate rescue.target":                  true,
		"systemctl restart cron.service":                   false,
		"systemctl status osupgrade-worker":                false,
		"systemctl":                                        false,
		"vi systemctl restart osupgrade-worker":            false,
		"":                                                 false,
	} {
		if got := stops(strings.Split(command, " "), "osupgrade-worker.service"); got != want {
			t.Errorf("%q: %v", command, got)
		}
	}
	if stops([]string{"systemctl", "restart", "cron"}, "") {
		t.Error("a worker without a unit is stopped by what restarts another")
	}
}

// TestParentOf reads the number of the parent, whatever the name of the process.
func TestParentOf(t *testing.T) {
	t.Parallel()
	for stat, want := range map[string]int{"812 (systemctl) S 800 1 1": 800, "812 (a) b) (c) R 7 1": 7, "": 0, "812 (a)": 0} {
		if got := parentOf(stat); got != want {
			t.Errorf("%q: %d, want %d", stat, got, want)
		}
	}
}
