package v1

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	inJSON = "application/json"
	inYAML = "application/yaml"
)

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestDecodeOSUpgrade(t *testing.T) {
	t.Parallel()
	whole := OSUpgrade{
		WorkerApplications: []WorkerApplication{{Name: "os-upgrade-debian"}},
		MaintenanceWindows: []MaintenanceWindow{
			{DaysOfWeek: "Friday, Saturday", StartTime: "01:00", Timezone: "site-local", Duration: "4h"},
			{DaysOfWeek: "sunday", StartTime: "10:30", Duration: "90m"},
		},
	}
	for _, row := range []struct {
		name, contentType, body string
		want                    OSUpgrade
	}{
		{"as documented", inYAML, `
worker-applications:            # array of objects
  - name: os-upgrade-debian     # application name
maintenance-windows:
  - days-of-week: Friday, Saturday
    start-time: 01:00
    timezone: site-local
    duration: 4h
  - days-of-week: sunday
    start-time: 10:30
    duration: 90m
`, whole},
		{"the same in JSON", inJSON, `{"worker-applications": [{"name": "os-upgrade-debian"}], "maintenance-windows": [
			{"days-of-week": "Friday, Saturday", "start-time": "01:00", "timezone": "site-local", "duration": "4h"},
			{"days-of-week": "sunday", "start-time": "10:30", "duration": "90m"}]}`, whole},
		{"nothing is there", "", `{}`, OSUpgrade{}},
		{"a list is there and empty", "", `{"maintenance-windows": []}`, OSUpgrade{MaintenanceWindows: []MaintenanceWindow{}}},
		{
			"empty timezone", "", `{"maintenance-windows": [{"days-of-week": "Friday", "start-time": "01:00", "timezone": "", "duration": "4h"}]}`,
			OSUpgrade{MaintenanceWindows: []MaintenanceWindow{{DaysOfWeek: "Friday", StartTime: "01:00", Duration: "4h"}}},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeOSUpgrade(row.contentType, []byte(row.body))
			if err != nil || !reflect.DeepEqual(got, row.want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, row.want)
			}
		})
	}
}

func TestDecodeOSUpgradeTellsOfEverythingAtOnce(t *testing.T) {
	t.Parallel()
	const want = `maintenance-windows[0].start-tme: unknown key; did you mean start-time?
maintenance-windows[1].start-time: 630 is not text; put it in quotes
maintenance-windows[2]: null is not a value; give one or leave it out
tenant: unknown key; use follow, maintenance-windows, releases, worker-applications
worker-applications[0].name: "Debian" is not a name; use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends
worker-applications[2].name: "a" is worker-applications[1] again; name each application once
maintenance-windows[0].days-of-week: "Firday" is not a day; did you mean Friday?
maintenance-windows[0].start-time: "" is not a time of day; use HH:MM from 00:00 to 23:59
maintenance-windows[0].timezone: "Europe/Stokholm" is not a time zone; use site-local, UTC or an IANA name; did you mean Europe/Stockholm?
maintenance-windows[0].duration: "8d" is too long; use 1m to 7d
maintenance-windows[3].start-time: "25:00" is not a time of day; use HH:MM from 00:00 to 23:59
maintenance-windows[5]: "Friday, Saturday 01:00 site-local 1h" is maintenance-windows[4] again; give each window once`
	got, err := DecodeOSUpgrade("", []byte(`{"worker-applications": [{"name": "Debian"}, {"name": "a"}, {"name": "a"}], "maintenance-windows": [
		{"days-of-week": "Firday", "start-tme": "01:00", "timezone": "Europe/Stokholm", "duration": "8d"},
		{"days-of-week": "Friday", "start-time": 630, "duration": "4h"},
		null,
		{"days-of-week": "Friday", "start-time": "25:00", "duration": "4h"},
		{"days-of-week": "Friday, Saturday", "start-time": "01:00", "duration": "60m"},
		{"days-of-week": "saturday,friday", "start-time": "01:00", "timezone": "site-local", "duration": "1h"}],
		"tenant": "acme"}`))
	if !reflect.DeepEqual(got, OSUpgrade{}) {
		t.Errorf("a wrong body gave %+v", got)
	}
	if lines := strings.ReplaceAll(errText(err), "; maintenance-", "\nmaintenance-"); strings.ReplaceAll(strings.ReplaceAll(lines, "; tenant:", "\ntenant:"), "; worker-applications[", "\nworker-applications[") != want {
		t.Errorf("problems\n%s\nwant\n%s", lines, want)
	}
}

func TestBodyOfProblems(t *testing.T) {
	t.Parallel()
	_, err := DecodeOSUpgrade(inYAML, []byte("maintenance-windows: [{days-of-week: Friday, start-time: 25:00, duration: 4h}]\n"))
	found, ok := errors.AsType[Problems](err)
	want := ErrorBody{Errors: []Error{{
		Message: `maintenance-windows[0].start-time: "25:00" is not a time of day; use HH:MM from 00:00 to 23:59`,
		Info:    ErrorInfo{Field: "maintenance-windows[0].start-time", Value: "25:00"},
	}}}
	if !ok || !reflect.DeepEqual(Answer(found), want) {
		t.Fatalf("body %+v; want %+v", Answer(found), want)
	}
}

func TestUnreadableBodiesAreProblems(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, contentType, body, problem string }{
		{"content type", "text/plain", "{}", `Content-Type: "text/plain" is not a content type that is read here; use application/json, application/yaml, application/x-yaml or text/yaml`},
		{"syntax", "", "{", "cannot read JSON: line 1, column 1: unexpected end of JSON input"},
		{"list", "", "[]", "a list is not an object; write keys and values"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			_, errOSUpgrade := DecodeOSUpgrade(row.contentType, []byte(row.body))
			_, errStart := DecodeStart(row.contentType, []byte(row.body))
			for _, err := range []error{errOSUpgrade, errStart} {
				if found, ok := errors.AsType[Problems](err); !ok || found.Error() != row.problem {
					t.Errorf("error %v; want %q", err, row.problem)
				}
			}
		})
	}
	if _, err := DecodeOSUpgrade("", nil); errText(err) != "the document is empty; write an object" {
		t.Errorf("empty body: %v", err)
	}
}

func TestDecodeStart(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, contentType, body string
		want                    Start
		problem                 string
	}{
		{"no body", "", "", Start{}, ""},
		{"no body of an unknown type", "text/plain", "\n", Start{}, ""},
		{"empty object", "", "{}", Start{}, ""},
		{"override", "", `{"override-window": true, "reason": "CVE-2026-1", "duration": "2h"}`, Start{OverrideWindow: true, Reason: "CVE-2026-1", Duration: "2h"}, ""},
		{"override in YAML", inYAML, "override-window: true\nreason: 10:30 it is\nduration: 90m\n", Start{OverrideWindow: true, Reason: "10:30 it is", Duration: "90m"}, ""},
		{"reason in a window", "", `{"reason": "now"}`, Start{Reason: "now"}, ""},
		{"retry", "", `{"retry-of": 41}`, Start{RetryOf: 41}, ""},
		{"retry of no run", "", `{"retry-of": 0}`, Start{}, `retry-of: 0 is out of range; use 1 to 9223372036854775807`},
		{"override without a reason", "", `{"override-window": true}`, Start{}, `reason: "" is no reason; a start outside of the maintenance windows needs one`},
		{"no hosts of a list", "", `{"hosts": []}`, Start{}, "hosts: it is empty, which would choose all hosts; name some, or leave it out"},
		{"no roles of a list", "", `{"environment": "basel", "roles": []}`, Start{}, "roles: it is empty, which would choose all hosts; name some, or leave it out"},
		{"no labels", inYAML, "labels: {}\n", Start{}, "labels: it is empty, which would choose all hosts; name some, or leave it out"},
		{"override with a blank reason", "", `{"override-window": true, "reason": " \t"}`, Start{}, `reason: " \t" is no reason; a start outside of the maintenance windows needs one`},
		{"duration in a window", "", `{"duration": "2h"}`, Start{}, `duration: "2h" bounds a run outside of the maintenance windows; give it with override-window, or leave it out`},
		{"hosts", "", `{"hosts": ["h03", "h03"]}`, Start{Hosts: []string{"h03", "h03"}}, ""},
		{"no name of a host", "", `{"hosts": ["h03", "a/b"]}`, Start{}, `hosts[1]: "a/b" is not the name of a host`},
		{"override of the order", "", `{"override-after": "security fix"}`, Start{OverrideAfter: "security fix"}, ""},
		{"override without a reason", "", `{"override-after": "  "}`, Start{}, `override-after: "  " is no reason; say why the run does not wait`},
		{"hosts of a retry", "", `{"hosts": ["h03"], "retry-of": 7}`, Start{Hosts: []string{"h03"}, RetryOf: 7}, ""},
		{"a selector", "", `{"labels": {"shop": "basel,bern"}, "roles": ["till"]}`, Start{Labels: map[string]string{"shop": "basel,bern"}, Roles: []string{"till"}}, ""},
		{"no value of a label", "", `{"labels": {"shop": "basel bern"}}`, Start{}, `labels.shop: "basel bern" is not the value of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`},
		{"no role", "", `{"roles": [" "]}`, Start{}, `roles[0]: " " is not a role; use 1 to 63 printable characters without blanks at the ends`},
		{
			"wrong types", inYAML, "override-window: yes\nreason: [a]\nforce: true\n",
			Start{},
			`override-window: "yes" is not a boolean; use true or false, without quotes; reason: a list is not text; write text; force: unknown key; use duration, environment, hosts, labels, override-after, override-window, reason, release, request-id, retry-of, roles, rollback, rollback-of, until`,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeStart(row.contentType, []byte(row.body))
			if !reflect.DeepEqual(got, row.want) || errText(err) != row.problem {
				t.Fatalf("got %+v, %v; want %+v, %q", got, err, row.want, row.problem)
			}
		})
	}
}

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

func TestCanonical(t *testing.T) {
	t.Parallel()
	given := OSUpgrade{
		WorkerApplications: []WorkerApplication{{Name: "b"}, {Name: "a"}},
		MaintenanceWindows: []MaintenanceWindow{
			{DaysOfWeek: "saturday,FRIDAY", StartTime: "01:00", Duration: "60m"},
			{DaysOfWeek: "Firday", StartTime: "1:00", Duration: "60m"},
			{DaysOfWeek: "Sunday,Monday", StartTime: "10:30", Timezone: "Europe/Stockholm", Duration: "28h0m18s"},
		},
	}
	want := OSUpgrade{
		WorkerApplications: given.WorkerApplications,
		MaintenanceWindows: []MaintenanceWindow{
			{DaysOfWeek: "Friday, Saturday", StartTime: "01:00", Timezone: "site-local", Duration: "1h"},
			{DaysOfWeek: "Firday", StartTime: "1:00", Duration: "60m"},
			{DaysOfWeek: "Monday, Sunday", StartTime: "10:30", Timezone: "Europe/Stockholm", Duration: "1d4h18s"},
		},
	}
	got := given.Canonical()
	if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(got.Canonical(), want) {
		t.Fatalf("got %+v; want %+v", got, want)
	}
	if given.MaintenanceWindows[0].Duration != "60m" {
		t.Fatal("the given configuration has changed")
	}
	if empty := (OSUpgrade{}).Canonical(); empty.MaintenanceWindows != nil {
		t.Fatal("an absent list is there")
	}
	if empty := (OSUpgrade{MaintenanceWindows: []MaintenanceWindow{}}).Canonical(); empty.MaintenanceWindows == nil {
		t.Fatal("an empty list is absent")
	}
}
