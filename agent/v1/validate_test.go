package v1

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestValidateBoundsTheLists(t *testing.T) {
	t.Parallel()
	sized := func(applications, windows int) OSUpgrade {
		var o OSUpgrade
		for i := range applications {
			o.WorkerApplications = append(o.WorkerApplications, WorkerApplication{Name: fmt.Sprint("a", i)})
		}
		for i := range windows {
			o.MaintenanceWindows = append(o.MaintenanceWindows, MaintenanceWindow{DaysOfWeek: "Friday", StartTime: fmt.Sprintf("%02d:%02d", i/60, i%60), Duration: "1h"})
		}
		return o
	}
	if found := sized(1000, 100).Validate(); len(found) > 0 {
		t.Errorf("1,000 applications and 100 windows: %v", found)
	}
	want := "worker-applications: 1001 entries are too many; use at most 1000; maintenance-windows: 101 entries are too many; use at most 100"
	if found := sized(1001, 101).Validate(); found.Error() != want {
		t.Errorf("problems %q; want %q", found, want)
	}
	if _, err := sized(0, 101).Windows(); err == nil {
		t.Error("101 windows to compute with")
	}
}

func TestValidateStart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		start   Start
		problem string
	}{
		{"zero", Start{}, ""},
		{"longest reason, in characters", Start{Reason: strings.Repeat("é", 1000)}, ""},
		{"reason too long", Start{Reason: strings.Repeat("x", 1001)}, "reason: 1001 characters are too many; use at most 1000"},
		{"reason on two lines", Start{Reason: "a\nb"}, `reason: "a\nb" has characters that cannot be shown; use letters, digits, signs and blanks on one line`},
		{"reason that steers a terminal", Start{Reason: "\x1b[2J"}, `reason: "\x1b[2J" has characters that cannot be shown; use letters, digits, signs and blanks on one line`},
		{"reason that is no text", Start{Reason: "a\xff"}, `reason: "a\xff" has characters that cannot be shown; use letters, digits, signs and blanks on one line`},
		{"reason in any script", Start{Reason: "säkerhet – 安全 🙂"}, ""},
		{"shortest duration", Start{OverrideWindow: true, Reason: "r", Duration: "1m"}, ""},
		{"longest duration", Start{OverrideWindow: true, Reason: "r", Duration: "7d"}, ""},
		{"duration too short", Start{OverrideWindow: true, Reason: "r", Duration: "59s"}, `duration: "59s" is too short; use 1m to 7d`},
		{"duration too long", Start{OverrideWindow: true, Reason: "r", Duration: "169h"}, `duration: "169h" is too long; use 1m to 7d`},
		{"no duration", Start{OverrideWindow: true, Reason: "r", Duration: "long"}, `duration: "long" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if found := row.start.Validate(); found.Error() != row.problem {
				t.Fatalf("problems %q; want %q", found, row.problem)
			}
		})
	}
}

func TestWindowsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	o := OSUpgrade{MaintenanceWindows: []MaintenanceWindow{
		{DaysOfWeek: "Saturday", StartTime: "02:00", Timezone: "UTC", Duration: "2h"},
		{DaysOfWeek: "Friday", StartTime: "01:00", Duration: "1h"},
	}}
	windows, err := o.Windows()
	if err != nil || len(windows) != 2 || windows[0].Duration != 2*time.Hour || windows[1].Start.String() != "01:00" {
		t.Fatalf("windows %v, %v", windows, err)
	}
	o.MaintenanceWindows[0].StartTime = "2:00"
	want := `maintenance-windows[0].start-time: "2:00" is not a time of day; use HH:MM from 00:00 to 23:59`
	if _, err := o.Windows(); errText(err) != want {
		t.Fatalf("error %v; want %q", err, want)
	}
}
