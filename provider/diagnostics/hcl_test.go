package diagnostics

import "testing"

func TestHCL(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		`maintenance-windows[0].start-time: "25:00" is no time`:         `maintenance_windows[0].start_time: "25:00" is no time`,
		"bounds a run; give it with override-window, or leave it out":   "bounds a run; give it with override_window, or leave it out",
		"to start now: osupgrade-agent start --override-window":         "to start now: osupgrade-agent start --override-window",
		"use finish-host or stop for overrun-limit of site-local":       "use finish-host or stop for overrun_limit of site-local",
		`"os-upgrade-debian" is not in worker-applications`:             `"os-upgrade-debian" is not in worker_applications`,
		"checks.before-host[2].min-free (retry-interval) max-failures.": "checks.before_host[2].min_free (retry_interval) max_failures.",
		"my-start-time is a name":                                       "my-start-time is a name",
		"":                                                              "",
	} {
		if got := HCL(message); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
