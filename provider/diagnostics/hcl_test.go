package diagnostics

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestAttribute(t *testing.T) {
	t.Parallel()
	days := path.Root("maintenance_windows").AtListIndex(0).AtName("days_of_week")
	for want, at := range map[string]path.Path{
		"maintenance_windows[0].days_of_week": days,
		`labels["ring"]`:                      path.Root("labels").AtMapKey("ring"),
		"accept":                              path.Root("accept").AtSetValue(types.StringValue("x")).AtName("below"),
		"":                                    path.Empty(),
	} {
		if got := Attribute(at); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := Attribute(days.AtSetValue(types.StringValue("Fryday"))); got != Attribute(days) {
		t.Errorf("an element of a set is called %q", got)
	}
}

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
