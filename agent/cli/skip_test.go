package cli

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestSkipWindow skips a window twice, lets it open its run again, and is refused what cannot be.
func TestSkipWindow(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	s.SetConfig("acme", v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "app"}}, MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Sunday", StartTime: "02:00", Timezone: "UTC", Duration: "2h"}},
	})
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"without a reason", []string{"skip-window"}, exitUsage, "missing flags: --reason"},
		{"an empty reason", []string{"skip-window", "--reason", " "}, exitUsage, "is empty; it is shown with the window"},
		{"no time", []string{"skip-window", "--reason", "sale", "--window-start", "Sunday"}, exitUsage, `"Sunday" is not a time`},
		{"no name", []string{"unskip-window", "--environment", "A b"}, exitUsage, "is not the name of an environment"},
		{"nothing is skipped", []string{"unskip-window"}, exitFailed, "no window of environment default is skipped"},
		{"skip", []string{"skip-window", "--reason", "sale"}, exitOK, ": sale\n"},
		{"skip again", []string{"skip-window", "--reason", "another"}, exitOK, ": sale\n"},
		{"another environment", []string{"unskip-window", "--environment", "shops"}, exitFailed, "no window of environment shops is skipped"},
		{"a window that does not open", []string{"skip-window", "--reason", "sale", "--window-start", "2026-11-29T01:00:00Z"}, exitFailed, "412 Precondition Failed"},
		{"unskip", []string{"unskip-window"}, exitOK, "The window is not skipped any more.\n"},
		{"unskip again", []string{"unskip-window"}, exitFailed, "no window of environment default is skipped"},
	} {
		code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: exit code %d:\n%s%s", c.name, code, stdout, stderr)
		}
	}
}
