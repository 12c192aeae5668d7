package v1

import (
	"strings"
	"testing"
	"time"
)

func TestPreferred(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, accept, want string }{
		{"none", "", "application/json"},
		{"anything", "*/*", "application/json"},
		{"JSON", "application/json", "application/json"},
		{"YAML", "application/yaml", "application/yaml"},
		{"an older name", "application/x-yaml", "application/x-yaml"},
		{"the oldest name", "text/yaml", "text/yaml"},
		{"upper case", "Application/YAML", "application/yaml"},
		{"any text", "text/*", "text/yaml"},
		{"any application", "application/*", "application/json"},
		{"YAML, else anything", "application/yaml, */*", "application/yaml"},
		{"anything but better YAML", "*/*;q=0.5, text/yaml;q=0.9", "text/yaml"},
		{"anything but worse YAML", "*/*, text/yaml;q=0.9", "application/json"},
		{"both equally", "application/yaml, application/json", "application/json"},
		{"both, rather YAML", "application/json;q=0.5, application/yaml", "application/yaml"},
		{"both, rather JSON", "application/yaml;q=0.1, application/json;q=0.2", "application/json"},
		{"not JSON", "application/json;q=0, */*", "application/yaml"},
		{"not YAML", "application/yaml;q=0", "application/json"},
		{"something else", "text/html", "application/json"},
		{"a browser", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "application/json"},
		{"unreadable range", "application/yaml;;=, text/yaml", "text/yaml"},
		{"unreadable quality", "application/yaml;q=much", "application/yaml"},
		{"quality that is no number", "application/json;q=0.1, application/yaml;q=NaN", "application/yaml"},
		{"charset", "application/yaml; charset=utf-8", "application/yaml"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if got := Preferred(row.accept); got != row.want {
				t.Fatalf("Preferred(%q) = %q; want %q", row.accept, got, row.want)
			}
		})
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 1, 0, 0, 0, time.UTC)
	state := State{
		OSUpgrade: OSUpgrade{
			WorkerApplications: []WorkerApplication{{Name: "os-upgrade-debian"}, {Name: "no"}, {Name: "0"}},
			MaintenanceWindows: []MaintenanceWindow{{DaysOfWeek: "Friday, Saturday", StartTime: "10:30", Timezone: "site-local", Duration: "4h"}},
		},
		Situation:        Situation{Status: "idle", NextUpgradeAt: &at},
		NextUpgradeIn:    "1d4h18s",
		ScheduledWorkers: []ScheduledWorker{},
		LastUpgradeInfo:  &LastUpgradeInfo{StartTime: at, EndTime: at, Result: "failed", Hosts: []UpgradedHost{{Hostname: "h01", Status: "failed", Error: "<no> & \"space\"\n: #x"}}},
	}
	for _, row := range []struct{ name, accept, contentType, want string }{
		{"JSON", "", "application/json", `{"worker-applications":[{"name":"os-upgrade-debian"},{"name":"no"},{"name":"0"}],` +
			`"maintenance-windows":[{"days-of-week":"Friday, Saturday","start-time":"10:30","timezone":"site-local","duration":"4h"}],` +
			`"status":"idle","next-upgrade-at":"2026-11-21T01:00:00Z","hosts":0,"next-upgrade-in":"1d4h18s","scheduled-workers":[],` +
			`"last-upgrade-info":{"start-time":"2026-11-21T01:00:00Z","end-time":"2026-11-21T01:00:00Z","result":"failed",` +
			`"hosts":[{"hostname":"h01","status":"failed","error":"<no> & \"space\"\n: #x"}]}}` + "\n"},
		{"YAML", "application/yaml", "application/yaml", `worker-applications:
    - name: os-upgrade-debian
    - name: "no"
    - name: "0"
maintenance-windows:
    - days-of-week: Friday, Saturday
      start-time: "10:30"
      timezone: site-local
      duration: "4h"
status: idle
next-upgrade-at: "2026-11-21T01:00:00Z"
hosts: 0
next-upgrade-in: "1d4h18s"
scheduled-workers: []
last-upgrade-info:
    start-time: "2026-11-21T01:00:00Z"
    end-time: "2026-11-21T01:00:00Z"
    result: failed
    hosts:
        - hostname: h01
          status: failed
          error: "<no> & \"space\"\n: #x"
`},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			contentType, body, err := Encode(row.accept, state)
			if err != nil || contentType != row.contentType || string(body) != row.want {
				t.Fatalf("%v, %s:\n%s\nwant %s:\n%s", err, contentType, body, row.contentType, row.want)
			}
		})
	}
}

func TestEncodeScalarsAsYAML(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name  string
		value any
		want  string
	}{
		{"number", uint64(18446744073709551615), "18446744073709551615\n"},
		{"boolean", true, "true\n"},
		{"nothing", nil, "null\n"},
		{"empty list", []Host{}, "[]\n"},
		{"empty object", struct{}{}, "{}\n"},
		{"word that YAML 1.1 reads as a boolean", "Off", "\"Off\"\n"},
		{"empty text", "", "\"\"\n"},
		{"text with a blank at the end", "a ", "\"a \"\n"},
		{"text like a comment", "a #b", "\"a #b\"\n"},
		{"text like a key", "a: b", "\"a: b\"\n"},
		{"text like a number with an exponent", "1e3", "\"1e3\"\n"},
		{"key that is no word", map[string]string{"libc6:amd64": "2.36-9"}, "\"libc6:amd64\": \"2.36-9\"\n"},
		{"key that YAML 1.1 reads as a boolean", map[string]string{"on": "x"}, "\"on\": x\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			if _, body, err := Encode("text/yaml", row.value); err != nil || string(body) != row.want {
				t.Fatalf("%v: %q; want %q", err, body, row.want)
			}
		})
	}
}

func TestEncodeTellsOfAValueWithoutAForm(t *testing.T) {
	t.Parallel()
	_, _, err := Encode("", make(chan int))
	if err == nil || !strings.Contains(err.Error(), "cannot encode chan int") {
		t.Fatalf("error %v", err)
	}
}

// TestEncodeLines checks that an iCalendar text is shown as its lines, unless
// YAML would change them.
func TestEncodeLines(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"BEGIN:A\nSUMMARY:x  y: #z\nEND:A\n": "reason: |\n    BEGIN:A\n    SUMMARY:x  y: #z\n    END:A\n",
		"a\nb\nc":                            "reason: |-\n    a\n    b\n    c\n",
		"a\r\nb\r\nc\r\n":                    "reason: \"a\\r\\nb\\r\\nc\\r\\n\"\n",
		"a\n\n b\n":                          "reason: \"a\\n\\n b\\n\"\n",
	} {
		_, body, err := Encode("application/yaml", Start{Reason: text})
		if err != nil || string(body) != want {
			t.Errorf("%q is written as\n%s, %v; want\n%s", text, body, err, want)
		}
	}
}
