package v1

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// full is a rollout with each member in it, and fullJSON its body.
var full = Rollout{
	Stages: []Stage{
		{
			Name: "canary", MaxUnavailable: "2", Soak: "30m", Approval: true, ApprovalTimeout: "90m",
			Match: &Match{Hosts: []string{"h01", "Web_1.example.com"}, Labels: map[string]string{"ring": "0", "a.b/c": ""}, Roles: []string{"Data base"}, Applications: []string{"os-upgrade-debian"}},
		},
		{Name: "rest", MaxUnavailable: "10%"},
	},
	MaxFailures: "5%", OnFailure: "pause", MinPrepared: "0%", Overrun: "stop", Reserve: "10m", Splay: "60s", Paused: true,
	Exempt:       &Match{Labels: map[string]string{"keep": "yes"}},
	ExemptReboot: &Match{Hosts: []string{"h09"}},
	Checks: &RolloutChecks{
		BeforeHost: []Check{{Type: "exec", Script: "ready.sh", Args: []string{"-v", ""}, Passes: 2, Interval: "1s", Timeout: "2s"}},
		AfterHost: []Check{
			{Name: "the site", Type: "http", URL: "https://127.0.0.1:8443/healthz?full=1", Status: 204},
			{Type: "tcp", Address: "[::1]:22"},
			{Type: "systemd", Unit: "nginx.service"},
		},
		Fleet: []Check{{Type: "disk", Path: "/var", MinFree: "2GiB"}},
	},
	Hooks: &RolloutHooks{
		Drain:   &Hook{Type: "http", URL: "http://lb.example.com/{host}/drain", Method: "PUT", On: "site", Timeout: "60m", Retries: new(0), RetryInterval: "0s"},
		Undrain: &Hook{Type: "exec", Script: "undrain", Args: []string{"now"}},
	},
	Timeouts: &StepTimeouts{Prepare: "1s", Upgrade: "7d", Reboot: "600s"},
}

const fullJSON = `{"stages": [
	{"name": "canary", "max-unavailable": "2", "soak": "30m", "approval": true, "approval-timeout": "90m", "match": {
		"hosts": ["h01", "Web_1.example.com"], "labels": {"ring": "0", "a.b/c": ""}, "roles": ["Data base"], "applications": ["os-upgrade-debian"]}},
	{"name": "rest", "max-unavailable": "10%"}],
	"max-failures": "5%", "on-failure": "pause", "min-prepared": "0%", "overrun": "stop", "reserve": "10m", "splay": "60s", "paused": true,
	"exempt": {"labels": {"keep": "yes"}, "hosts": []}, "exempt-reboot": {"hosts": ["h09"], "labels": {}},
	"checks": {
		"before-host": [{"type": "exec", "script": "ready.sh", "args": ["-v", ""], "passes": 2, "interval": "1s", "timeout": "2s"}],
		"after-host": [
			{"name": "the site", "type": "http", "url": "https://127.0.0.1:8443/healthz?full=1", "status": 204},
			{"type": "tcp", "address": "[::1]:22"}, {"type": "systemd", "unit": "nginx.service"}],
		"fleet": [{"type": "disk", "path": "/var", "min-free": "2GiB"}]},
	"hooks": {
		"drain": {"type": "http", "url": "http://lb.example.com/{host}/drain", "method": "PUT", "on": "site", "timeout": "60m", "retries": 0, "retry-interval": "0s"},
		"undrain": {"type": "exec", "script": "undrain", "args": ["now"]}},
	"timeouts": {"prepare": "1s", "upgrade": "7d", "reboot": "600s"}}`

func TestDecodeRollout(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, contentType, body string
		want                    Rollout
	}{
		{"everything", "", fullJSON, full},
		{"nothing is there", "", `{}`, Rollout{}},
		{"no stages", "", `{"stages": []}`, Rollout{Stages: []Stage{}}},
		{"empty lists of checks", "", `{"checks": {"fleet": []}}`, Rollout{Checks: &RolloutChecks{}}},
		{
			"numbers and times in YAML need no quotes", inYAML, "stages:\n- name: all\n  max-unavailable: 3\n  match:\n    hosts: [1]\n    labels: {ring: 0, on: yes}\nreserve: 10m\n",
			Rollout{Reserve: "10m", Stages: []Stage{{Name: "all", MaxUnavailable: "3", Match: &Match{Hosts: []string{"1"}, Labels: map[string]string{"ring": "0", "on": "yes"}}}}},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeRollout(row.contentType, []byte(row.body))
			if err != nil || !reflect.DeepEqual(got, row.want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, row.want)
			}
		})
	}
}

func TestDecodeRolloutTellsOfEverythingAtOnce(t *testing.T) {
	t.Parallel()
	want := []string{
		`stages[0].max-unavailable: 1 is not text; put it in quotes`,
		`stages[1].matches: unknown key; did you mean match?`,
		`checks.fleet[0].passes: 101 is out of range; use 1 to 100`,
		`paused: "yes" is not a boolean; use true or false, without quotes`,
		`reserve: "soon" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`,
	}
	_, err := DecodeRollout("", []byte(`{"stages": [{"name": "a", "match": {"hosts": ["h"]}, "max-unavailable": 1}, {"name": "b", "matches": {}}],
		"checks": {"fleet": [{"type": "tcp", "address": "a:1", "passes": 101}]}, "hooks": {"drain": null}, "paused": "yes", "reserve": "soon"}`))
	if errText(err) != strings.Join(want, "; ") {
		t.Fatalf("problems\n%v\nwant\n%s", err, strings.Join(want, "; "))
	}
}

// TestMergeReplacesTheMembersThatAreThere checks each member on its own, and
// that the others stay.
func TestMergeReplacesTheMembersThatAreThere(t *testing.T) {
	t.Parallel()
	for body, change := range map[string]func(*Rollout){
		`{}`:                                      func(*Rollout) {},
		`{"stages": []}`:                          func(r *Rollout) { r.Stages = []Stage{} },
		`{"max-failures": "9"}`:                   func(r *Rollout) { r.MaxFailures = "9" },
		`{"on-failure": "continue"}`:              func(r *Rollout) { r.OnFailure = "continue" },
		`{"min-prepared": ""}`:                    func(r *Rollout) { r.MinPrepared = "" },
		`{"overrun": "finish-host"}`:              func(r *Rollout) { r.Overrun = "finish-host" },
		`{"reserve": "1h"}`:                       func(r *Rollout) { r.Reserve = "1h" },
		`{"splay": "2h"}`:                         func(r *Rollout) { r.Splay = "2h" },
		`{"paused": false}`:                       func(r *Rollout) { r.Paused = false },
		`{"exempt": {"hosts": ["h02"]}}`:          func(r *Rollout) { r.Exempt = &Match{Hosts: []string{"h02"}} },
		`{"exempt-reboot": {"roles": ["x"]}}`:     func(r *Rollout) { r.ExemptReboot = &Match{Roles: []string{"x"}} },
		`{"checks": {}}`:                          func(r *Rollout) { r.Checks = &RolloutChecks{} },
		`{"hooks": {}}`:                           func(r *Rollout) { r.Hooks = &RolloutHooks{} },
		`{"timeouts": {"reboot": "1h"}}`:          func(r *Rollout) { r.Timeouts = &StepTimeouts{Reboot: "1h"} },
		`{"timeouts": {"reboot": "1h", "x": ""}}`: nil,
		`{"paused": 1}`:                           nil,
		`{"hooks": {"drain": {"type": "tcp"}}}`:   nil,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			got, err := MergeRollout(full, "", []byte(body))
			if change == nil {
				if _, ok := errors.AsType[Problems](err); !ok || !reflect.DeepEqual(got, Rollout{}) {
					t.Fatalf("got %+v, %v; want problems", got, err)
				}
				return
			}
			want := full
			change(&want)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestRolloutDefaults(t *testing.T) {
	t.Parallel()
	want := Rollout{
		Stages:      []Stage{{Name: "all", MaxUnavailable: "1", Soak: "0s", ApprovalTimeout: "1d"}},
		MaxFailures: "1", OnFailure: "stop", MinPrepared: "100%", Overrun: "finish-host", Reserve: "0s", Splay: "0s",
		Checks: &RolloutChecks{}, Hooks: &RolloutHooks{}, Timeouts: &StepTimeouts{Prepare: "1h", Upgrade: "1h", Reboot: "15m"},
	}
	for name, r := range map[string]Rollout{"nothing": {}, "no stages": {Stages: []Stage{}}} {
		if got := r.WithDefaults(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v; want %+v", name, got, want)
		}
	}
	sparse := Rollout{
		Stages: []Stage{{Name: "a"}},
		Checks: &RolloutChecks{
			BeforeHost: []Check{{Type: "exec", Script: "ready.sh"}, {Type: "http", URL: "http://me:secret@127.0.0.1/x%0A?key=secret", Status: 301}},
			AfterHost:  []Check{{Type: "tcp", Address: "a:1"}, {Type: "systemd", Unit: "a.service"}, {Type: "disk", Path: "/var", MinFree: "1%"}},
			Fleet:      []Check{{Type: "disk", Path: "/" + strings.Repeat("ä", 200), MinFree: "1%"}},
		},
		Hooks: &RolloutHooks{Drain: &Hook{Type: "http", URL: "http://a/"}, Undrain: &Hook{Type: "exec", Script: "x", Retries: new(0)}},
	}
	got := sparse.WithDefaults()
	check := Check{Passes: 1, Interval: "5s", Timeout: "1m"}
	for name, c := range map[string]Check{
		"exec ready.sh": got.Checks.BeforeHost[0], "http http://127.0.0.1/x%0A": got.Checks.BeforeHost[1], "tcp a:1": got.Checks.AfterHost[0],
		"systemd a.service": got.Checks.AfterHost[1], "disk /var": got.Checks.AfterHost[2], "disk /" + strings.Repeat("ä", 94): got.Checks.Fleet[0],
	} {
		if c.Name != name || c.Passes != check.Passes || c.Interval != check.Interval || c.Timeout != check.Timeout {
			t.Errorf("check %+v; want it named %q", c, name)
		}
	}
	if h := got.Hooks.Drain; h.Method != "POST" || h.On != "host" || h.Timeout != "1m" || *h.Retries != 2 || h.RetryInterval != "10s" {
		t.Errorf("drain is %+v", h)
	}
	if h := got.Hooks.Undrain; h.Method != "" || *h.Retries != 0 {
		t.Errorf("undrain is %+v", h)
	}
	if sparse.Stages[0].Soak != "" || sparse.Checks.Fleet[0].Name != "" || sparse.Hooks.Drain.On != "" {
		t.Error("the defaults are written into the rollout that they were asked of")
	}
}

func TestRolloutCanonical(t *testing.T) {
	t.Parallel()
	before, err := DecodeRollout("", []byte(fullJSON))
	if err != nil {
		t.Fatal(err)
	}
	got := before.Canonical()
	if !reflect.DeepEqual(before, full) {
		t.Error("the rollout is changed that was asked for its canonical form")
	}
	want, err := DecodeRollout("", []byte(strings.NewReplacer(`"90m"`, `"1h30m"`, `"60s"`, `"1m"`, `"60m"`, `"1h"`, `"600s"`, `"10m"`).Replace(fullJSON)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got := (Rollout{Stages: []Stage{}}).Canonical(); !reflect.DeepEqual(got, Rollout{Stages: []Stage{}}) {
		t.Errorf("what is absent became %+v", got)
	}
	if got := (Rollout{Splay: "soon"}).Canonical().Splay; got != "soon" {
		t.Errorf("what is wrong became %q", got)
	}
}

// TestDesignExample checks that the rollout which the design shows is taken as
// it stands there.
func TestDesignExample(t *testing.T) {
	t.Parallel()
	body := `{"stages": [{"name": "canary", "match": {"hosts": ["h01"], "labels": {"ring": "0"}, "roles": [], "applications": []},
             "max-unavailable": "1", "soak": "30m", "approval": false},
            {"name": "rest", "max-unavailable": "10%"}],
 "max-failures": "1", "on-failure": "stop", "min-prepared": "100%", "overrun": "finish-host", "reserve": "10m", "splay": "0s", "paused": false,
 "checks": {"before-host": [], "after-host": [], "fleet": []}, "hooks": {"drain": null, "undrain": null},
 "timeouts": {"prepare": "1h", "upgrade": "1h", "reboot": "15m"}}`
	r, err := DecodeRollout("application/json", []byte(body))
	if err != nil || len(r.Stages) != 2 || r.Hooks == nil || r.Hooks.Drain != nil {
		t.Errorf("read as %+v, %v", r, err)
	}
}
