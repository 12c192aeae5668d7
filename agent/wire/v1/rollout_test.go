package v1

import (
	"errors"
	"fmt"
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
	MaxFailures: "5%", OnFailure: "pause", Absent: "count", MinPrepared: "0%", PreparePatience: "120s", Overrun: "stop", OverrunLimit: "5m", Reserve: "10m", RetryAfter: "90m", Splay: "60s", Paused: true,
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
	Timeouts: &CommandTimeouts{Prepare: "1s", Upgrade: "7d", Reboot: "600s"},
}

const fullJSON = `{"stages": [
	{"name": "canary", "max-unavailable": "2", "soak": "30m", "approval": true, "approval-timeout": "90m", "match": {
		"hosts": ["h01", "Web_1.example.com"], "labels": {"ring": "0", "a.b/c": ""}, "roles": ["Data base"], "applications": ["os-upgrade-debian"]}},
	{"name": "rest", "max-unavailable": "10%"}],
	"max-failures": "5%", "on-failure": "pause", "absent": "count", "min-prepared": "0%", "prepare-patience": "120s", "overrun": "stop", "overrun-limit": "5m", "reserve": "10m", "retry-after": "90m", "splay": "60s", "paused": true,
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

// TestMerge checks each member on its own, and that the others stay (RFC 7396).
func TestMerge(t *testing.T) {
	t.Parallel()
	for body, change := range map[string]func(*Rollout){
		`{}`:                                      func(*Rollout) {},
		`{"stages": []}`:                          func(r *Rollout) { r.Stages = []Stage{} },
		`{"max-failures": "9"}`:                   func(r *Rollout) { r.MaxFailures = "9" },
		`{"on-failure": "continue"}`:              func(r *Rollout) { r.OnFailure = "continue" },
		`{"absent": "skip"}`:                      func(r *Rollout) { r.Absent = "skip" },
		`{"min-prepared": ""}`:                    func(r *Rollout) { r.MinPrepared = "" },
		`{"overrun": "finish-host"}`:              func(r *Rollout) { r.Overrun = "finish-host" },
		`{"reserve": "1h"}`:                       func(r *Rollout) { r.Reserve = "1h" },
		`{"retry-after": "1h"}`:                   func(r *Rollout) { r.RetryAfter = "1h" },
		`{"splay": "2h"}`:                         func(r *Rollout) { r.Splay = "2h" },
		`{"paused": false}`:                       func(r *Rollout) { r.Paused = false },
		`{"exempt": {"hosts": ["h02"]}}`:          func(r *Rollout) { e := *r.Exempt; e.Hosts = []string{"h02"}; r.Exempt = &e },
		`{"exempt": null}`:                        func(r *Rollout) { r.Exempt = nil },
		`{"splay": null, "stages": null}`:         func(r *Rollout) { r.Splay, r.Stages = "", nil },
		`{"timeouts": {"reboot": null}}`:          func(r *Rollout) { e := *r.Timeouts; e.Reboot = ""; r.Timeouts = &e },
		`{"splya": null}`:                         nil,
		`{"splay": null, "splay": "1h"}`:          nil,
		`{"exempt-reboot": {"roles": ["x"]}}`:     func(r *Rollout) { e := *r.ExemptReboot; e.Roles = []string{"x"}; r.ExemptReboot = &e },
		`{"checks": {}}`:                          func(*Rollout) {},
		`{"hooks": {}}`:                           func(*Rollout) {},
		`{"timeouts": {"reboot": "1h"}}`:          func(r *Rollout) { e := *r.Timeouts; e.Reboot = "1h"; r.Timeouts = &e },
		`{"timeouts": {"reboot": "1h", "x": ""}}`: nil,
		`{"paused": 1}`:                           nil,
		`{"hooks": {"drain": {"type": "tcp"}}}`:   nil,
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()
			got, err := merge(RolloutForm, full, "", body)
			if change == nil {
				if _, ok := errors.AsType[Problems](err); !ok || !reflect.DeepEqual(got, Rollout{}) {
					t.Fatalf("got %+v, %v; want problems", got, err)
				}
				return
			}
			want := full
			change(&want)
			if want = want.Canonical(); err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestRolloutDefaults(t *testing.T) {
	t.Parallel()
	want := Rollout{
		Stages:      []Stage{{Name: "all", MaxUnavailable: "1", Soak: "0s", ApprovalTimeout: "1d"}},
		MaxFailures: "1", OnFailure: "stop", Absent: "skip", MinPrepared: "50%", PreparePatience: "5m", Overrun: "finish-host", OverrunLimit: "15m", Reserve: "0s", RetryAfter: "15m", Splay: "0s",
		Checks: &RolloutChecks{}, Hooks: &RolloutHooks{}, Timeouts: &CommandTimeouts{Prepare: "1h", Upgrade: "1h", Reboot: "15m"},
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
	want, err := DecodeRollout("", []byte(strings.NewReplacer(`"90m"`, `"1h30m"`, `"60s"`, `"1m"`, `"60m"`, `"1h"`, `"600s"`, `"10m"`, `"120s"`, `"2m"`).Replace(fullJSON)))
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

// TestWholeRollout checks that a rollout with a value for each member is taken as it
// stands.
func TestWholeRollout(t *testing.T) {
	t.Parallel()
	body := `{"stages": [{"name": "canary", "match": {"hosts": ["h01"], "labels": {"ring": "0"}, "roles": [], "applications": []},
             "max-unavailable": "1", "soak": "30m", "approval": false},
            {"name": "rest", "max-unavailable": "10%"}],
 "max-failures": "1", "on-failure": "stop", "absent": "skip", "min-prepared": "50%", "prepare-patience": "5m", "overrun": "finish-host", "overrun-limit": "15m", "reserve": "10m", "retry-after": "15m", "splay": "0s", "paused": false,
 "checks": {"before-host": [], "after-host": [], "fleet": []}, "hooks": {"drain": null, "undrain": null},
 "timeouts": {"prepare": "1h", "upgrade": "1h", "reboot": "15m"}}`
	r, err := DecodeRollout("application/json", []byte(body))
	if err != nil || len(r.Stages) != 2 || r.Hooks == nil || r.Hooks.Drain != nil {
		t.Errorf("read as %+v, %v", r, err)
	}
}

// wrongRollouts are bodies with one thing wrong, and what is told of it.
var wrongRollouts = []struct{ name, body, problem string }{
	{"stage without a name", `{"stages": [{}]}`, `stages[0].name: "" is not a name; use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends`},
	{"two stages of a name", `{"stages": [{"name": "a", "match": {"roles": ["x"]}}, {"name": "a"}]}`, `stages[1].name: "a" is the name of stages[0] already; give each stage its own`},
	{"stage after all hosts", `{"stages": [{"name": "a"}, {"name": "b"}]}`, `stages[0].match: it is absent, so that this stage takes all hosts that are left and none are left for stages[1]; give match, or make this the last stage`},
	{"stage after all hosts and a step", `{"stages": [{"name": "a"}, {"name": "b", "step": {"do": {"type": "exec", "script": "x", "on": "site"}}}, {"name": "c"}]}`, `stages[0].match: it is absent, so that this stage takes all hosts that are left and none are left for stages[2]; give match, or make this the last stage`},
	{"step and match", `{"stages": [{"name": "a", "match": {"roles": ["x"]}, "step": {"do": {"type": "exec", "script": "x", "on": "site"}}}, {"name": "b"}]}`, `stages[0].step: match is given, too; a stage has hosts or a step, so give only one of them`},
	{"undo without step", `{"stages": [{"name": "a", "step": {"undo": {"type": "exec", "script": "x", "on": "site"}}}, {"name": "b"}]}`, `stages[0].step.do: it is missing; give the hook that does the step`},
	{"step of no host", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "x"}}}, {"name": "b"}]}`, `stages[0].step.match: it is missing; give match to choose the host of the hook, or set do.on to "site"`},
	{"undo of no host", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "x", "on": "site"}, "undo": {"type": "exec", "script": "x"}}}, {"name": "b"}]}`, `stages[0].step.match: it is missing; give match to choose the host of the hook, or set undo.on to "site"`},
	{"step and undo of no host", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "x"}, "undo": {"type": "exec", "script": "x"}}}, {"name": "b"}]}`, `stages[0].step.match: it is missing; give match to choose the host of the hook, or set do.on and undo.on to "site"`},
	{"step at the site with a host", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "x", "on": "site"}, "match": {"roles": ["x"]}}}, {"name": "b"}]}`, `stages[0].step.match: it chooses a host, and no hook of the step runs on one; leave it out, or set do.on to "host"`},
	{"step at the site that names its host", `{"stages": [{"name": "a", "step": {"do": {"type": "http", "url": "http://a/{host}", "on": "site"}}}, {"name": "b"}]}`, `stages[0].step.do.url: "http://a/{host}" has {host}, and a step at the site has no host; leave {host} out`},
	{"step that cannot be done", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "../x", "on": "site", "timeout": "0s"}}}, {"name": "b"}]}`, `stages[0].step.do.timeout: "0s" is too short; use 1s to 1d; stages[0].step.do.script: "../x" is not the name of a script; use letters, digits, "-", "_" and ".", with no "." or "-" at the beginning and no folder`},
	{"undo that cannot be done", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "x", "on": "site"}, "undo": {"type": "tcp", "on": "site"}}}, {"name": "b"}]}`, `stages[0].step.undo.type: "tcp" is invalid; use exec or http`},
	{"step with hosts", `{"stages": [{"name": "a", "max-unavailable": "2", "step": {"do": {"type": "exec", "script": "x", "on": "site"}}}, {"name": "b"}]}`, `stages[0].max-unavailable: "2" is for a stage with hosts, and this one has a step; leave it out`},
	{"steps only", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "x", "on": "site"}}}]}`, `stages: all of them have a step, so no host is upgraded; add a stage with match, or without both at the end`},
	{"two points of no return", `{"stages": [{"name": "a", "match": {"roles": ["x"]}, "point-of-no-return": true}, {"name": "b", "point-of-no-return": true}]}`, `stages[1].point-of-no-return: stages[0] is the point of no return already; there is only one`},
	{"output of no name", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "x", "on": "site"}, "gives": ["a-b"]}}, {"name": "b"}]}`, `stages[0].step.gives[0]: "a-b" is not the name of an output; use 1 to 63 letters, digits and "_", with no digit at the beginning`},
	{"output of two steps", `{"stages": [{"name": "a", "step": {"do": {"type": "exec", "script": "x", "on": "site"}, "gives": ["A"]}}, {"name": "b", "step": {"do": {"type": "exec", "script": "x", "on": "site"}, "gives": ["A"]}}, {"name": "c"}]}`, `stages[1].step.gives[0]: "A" is an output of stages[0] already; give each output its own name`},
	{"outputs of a call", `{"stages": [{"name": "a", "step": {"do": {"type": "http", "url": "http://a/", "on": "site"}, "gives": ["A"]}}, {"name": "b"}]}`, `stages[0].step.gives: only a script has outputs; set do.type to exec, or leave gives out`},
	{"match of nothing", `{"stages": [{"name": "a", "match": {"hosts": []}}]}`, `stages[0].match: it names no hosts; give hosts, labels, roles or applications, or leave it out`},
	{"exempt of nothing", `{"exempt": {}}`, `exempt: it names no hosts; give hosts, labels, roles or applications, or leave it out`},
	{"no unavailable host", `{"stages": [{"name": "a", "max-unavailable": "0%"}]}`, `stages[0].max-unavailable: "0%" is too few; use at least 1 or 1%`},
	{"count", `{"max-failures": "two"}`, `max-failures: "two" is not a count; use a number up to 10000 such as 2, or a percentage such as 10%`},
	{"min-prepared", `{"min-prepared": "101%"}`, `min-prepared: "101%" is not a count; use a number up to 10000 such as 2, or a percentage such as 10%`},
	{"soak", `{"stages": [{"name": "a", "soak": "169h"}]}`, `stages[0].soak: "169h" is too long; use 0s to 7d`},
	{"soak without end", `{"stages": [{"name": "a", "soak": "200000d"}]}`, `stages[0].soak: "200000d" is too long; use 0s to 7d`},
	{"approval-timeout", `{"stages": [{"name": "a", "approval-timeout": "0s"}]}`, `stages[0].approval-timeout: "0s" is too short; use 1s to 7d`},
	{"on-failure", `{"on-failure": "Stopp"}`, `on-failure: "Stopp" is invalid; use stop, pause or continue; did you mean stop?`},
	{"overrun limit", `{"overrun-limit": "8d"}`, `overrun-limit: "8d" is too long; use 0s to 7d`},
	{"prepare-patience", `{"prepare-patience": "8d"}`, `prepare-patience: "8d" is too long; use 0s to 7d`},
	{"overrun", `{"overrun": "hope"}`, `overrun: "hope" is invalid; use finish-host or stop`},
	{"reserve", `{"reserve": "-1h"}`, `reserve: "-1h" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`},
	{"timeout of prepare", `{"timeouts": {"prepare": "0s"}}`, `timeouts.prepare: "0s" is too short; use 1s to 7d`},
	{"timeout of upgrade", `{"timeouts": {"upgrade": "8d"}}`, `timeouts.upgrade: "8d" is too long; use 1s to 7d`},
	{"host", `{"exempt": {"hosts": ["a b"]}}`, `exempt.hosts[0]: "a b" is not the name of a host; use 1 to 253 letters, digits, "-", "_" and ".", with a letter or digit at both ends`},
	{"host twice", `{"exempt": {"hosts": ["a", "b", "a"]}}`, `exempt.hosts[2]: "a" is exempt.hosts[0] again; give it once`},
	{"role", `{"exempt": {"roles": [" a"]}}`, `exempt.roles[0]: " a" is not a role; use 1 to 63 printable characters without blanks at the ends`},
	{"application", `{"exempt": {"applications": ["A"]}}`, `exempt.applications[0]: "A" is not a name; use 1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends`},
	{"key of a label", `{"exempt": {"labels": {"a b": "c"}}}`, `exempt.labels: "a b" is not the key of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`},
	{"value of a label", `{"exempt": {"labels": {"a": "c d"}}}`, `exempt.labels.a: "c d" is not the value of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`},
	{"value of a label with a dot", `{"exempt": {"labels": {"a.b": "c d"}}}`, `exempt.labels["a.b"]: "c d" is not the value of a label; use 1 to 63 letters, digits, "-", "_", "." and "/"`},
}

// wrongChecks are the same of one check.
var wrongChecks = []struct{ name, body, problem string }{
	{"no type", `{}`, `type: "" is invalid; use exec, http, tcp, systemd, disk, units, load, time-sync, prometheus or hosts`},
	{"type", `{"type": "execc", "script": "a b"}`, `type: "execc" is invalid; use exec, http, tcp, systemd, disk, units, load, time-sync, prometheus or hosts; did you mean exec?`},
	{"name", `{"type": "tcp", "address": "a:1", "name": "a\nb"}`, `name: "a\nb" is not a name; use at most 100 printable characters without blanks at the ends`},
	{"script with a folder", `{"type": "exec", "script": "/bin/true"}`, `script: "/bin/true" is not the name of a script; use letters, digits, "-", "_" and ".", with no "." or "-" at the beginning and no folder`},
	{"script above", `{"type": "exec", "script": ".."}`, `script: ".." is not the name of a script; use letters, digits, "-", "_" and ".", with no "." or "-" at the beginning and no folder`},
	{"argument", `{"type": "exec", "script": "a", "args": ["\u0000"]}`, `args[0]: "\x00" is not an argument; use at most 4096 bytes, none of them zero`},
	{"no URL", `{"type": "http"}`, `url: "" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
	{"URL of a file", `{"type": "http", "url": "file:///etc/passwd"}`, `url: "file:///etc/passwd" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
	{"URL with a wild port", `{"type": "http", "url": "http://a:99999/"}`, `url: "http://a:99999/" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
	{"URL with a host that cannot be shown", `{"type": "http", "url": "http://%C2%85/"}`, `url: "http://%C2%85/" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
	{"URL with a password", `{"type": "http", "url": "http://me:secret@a/"}`, `url: the URL contains a user or a password, which anyone who can read the rollout would see; use a script (type exec) that reads them from a file on its machine`},
	{"URL with a password and a wild port", `{"type": "http", "url": "http://me:secret@a:port/"}`, `url: the URL contains a user or a password, which anyone who can read the rollout would see; use a script (type exec) that reads them from a file on its machine`},
	{"URL of any host", `{"type": "http", "url": "http://{host}/"}`, `url: "http://{host}/" has {host}, which only a hook's may have; name the host, such as 127.0.0.1`},
	{"status", `{"type": "http", "url": "http://a/", "status": 600}`, `status: 600 is out of range; use 100 to 599`},
	{"no port", `{"type": "tcp", "address": "127.0.0.1"}`, `address: "127.0.0.1" is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22`},
	{"port 0", `{"type": "tcp", "address": "a:0"}`, `address: "a:0" is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22`},
	{"IPv6 without brackets", `{"type": "tcp", "address": "::1:22"}`, `address: "::1:22" is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22`},
	{"name in brackets", `{"type": "tcp", "address": "[a]:22"}`, `address: "[a]:22" is not an address; use a host and a port such as 127.0.0.1:22 or [::1]:22`},
	{"unit without its type", `{"type": "systemd", "unit": "nginx"}`, `unit: "nginx" is not the name of a systemd unit; use one with its type, such as nginx.service`},
	{"unit that is an option", `{"type": "systemd", "unit": "-Hx.service"}`, `unit: "-Hx.service" is not the name of a systemd unit; use one with its type, such as nginx.service`},
	{"path", `{"type": "disk", "path": "var", "min-free": "1%"}`, `path: "var" is not an absolute path; use one that begins with "/", such as /var`},
	{"min-free", `{"type": "disk", "path": "/var", "min-free": "1G"}`, `min-free: "1G" is not an amount of free space; use a whole number with KB, MB, GB, TB, KiB, MiB, GiB or TiB such as 2GiB, or a percentage such as 10%`},
	{"passes", `{"type": "tcp", "address": "a:1", "passes": 0}`, `passes: 0 is out of range; use 1 to 100`},
	{"interval", `{"type": "tcp", "address": "a:1", "interval": "0s"}`, `interval: "0s" is too short; use 1s to 1d`},
	{"timeout", `{"type": "tcp", "address": "a:1", "timeout": "25h"}`, `timeout: "25h" is too long; use 1s to 1d`},
	{"time for the passes", `{"type": "tcp", "address": "a:1", "passes": 13}`, `timeout: "1m" is too short for 13 passes that are 5s apart; use more than 1m`},
	{"member of another type", `{"type": "exec", "script": "a", "url": "http://a/"}`, `url: "http://a/" is not of type exec, which takes script and args; leave it out`},
	{"status of another type", `{"type": "tcp", "address": "a:1", "status": 200}`, `status: "200" is not of type tcp, which takes address; leave it out`},
	{"a unit to ignore", `{"type": "units", "ignore": ["a.service", "b"]}`, `ignore[1]: "b" is not the name of a systemd unit; use one with its type, such as nginx.service`},
	{"no load", `{"type": "load"}`, `max-load: "" is missing; use a percentage of the processors, such as 150`},
	{"load", `{"type": "load", "max-load": 100001}`, `max-load: 100001 is out of range; use 1 to 100000`},
	{"error of the clock", `{"type": "time-sync", "max-error": "2h"}`, `max-error: "2h" is too long; use 1s to 1h`},
	{"load of another type", `{"type": "units", "max-load": 5}`, `max-load: "5" is not of type units, which takes ignore; leave it out`},
	{"arguments of another type", `{"type": "disk", "path": "/", "min-free": "1%", "args": ["a", "b"]}`, `args: "a b" is not of type disk, which takes path and min-free; leave it out`},
}

// wrongHooks are the same of one hook.
var wrongHooks = []struct{ name, body, problem string }{
	{"type of a check", `{"type": "tcp"}`, `type: "tcp" is invalid; use exec or http`},
	{"method of exec", `{"type": "exec", "script": "a", "method": "GET"}`, `method: "GET" is not of type exec, which takes script and args; leave it out`},
	{"script of http", `{"type": "http", "url": "http://a/", "script": "a"}`, `script: "a" is not of type http, which takes url and method; leave it out`},
	{"method", `{"type": "http", "url": "http://a/", "method": "post"}`, `method: "post" is invalid; use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS; did you mean POST?`},
	{"on", `{"type": "exec", "script": "a", "on": "cloud"}`, `on: "cloud" is invalid; use host or site`},
	{"timeout", `{"type": "exec", "script": "a", "timeout": "2d"}`, `timeout: "2d" is too long; use 1s to 1d`},
	{"retries", `{"type": "exec", "script": "a", "retries": 21}`, `retries: 21 is out of range; use 0 to 20`},
	{"retry-interval", `{"type": "exec", "script": "a", "retry-interval": "x"}`, `retry-interval: "x" is not a duration; use days, hours, minutes and seconds in this order, such as 4h or 1d4h18s`},
	{"another thing in braces", `{"type": "http", "url": "http://lb/{tenant}/{host}"}`, `url: "http://lb/{tenant}/{host}" has braces that are not {host}, for which alone something is put in; write a brace of the address itself as %7B or %7D`},
	{"a brace alone", `{"type": "http", "url": "http://lb/{host"}`, `url: "http://lb/{host" has braces that are not {host}, for which alone something is put in; write a brace of the address itself as %7B or %7D`},
	{"no address", `{"type": "http", "url": "/{host}"}`, `url: "/host" is not an address to call; use http or https with a host, such as http://127.0.0.1:8080/healthz`},
}

func TestWrongRollouts(t *testing.T) {
	t.Parallel()
	check := func(name, body, problem string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeRollout("", []byte(body))
			if errText(err) != problem {
				t.Fatalf("got %+v, %v\nwant %s", got, err, problem)
			}
		})
	}
	for _, row := range wrongRollouts {
		check(row.name, row.body, row.problem)
	}
	for _, row := range wrongChecks {
		check("check: "+row.name, `{"checks": {"after-host": [`+row.body+`]}}`, "checks.after-host[0]."+row.problem)
	}
	for _, row := range wrongHooks {
		check("hook: "+row.name, `{"hooks": {"undrain": `+row.body+`}}`, "hooks.undrain."+row.problem)
	}
}

// TestValuesThatNoBodyHas checks what only a program can hand to Validate.
func TestValuesThatNoBodyHas(t *testing.T) {
	t.Parallel()
	r := Rollout{
		Checks: &RolloutChecks{Fleet: []Check{{Type: "http", URL: "http://a/", Status: -1, Passes: -1}}},
		Hooks:  &RolloutHooks{Drain: &Hook{Type: "exec", Script: "a", Retries: new(-1)}},
	}
	want := "checks.fleet[0].passes: -1 is out of range; use 1 to 100; checks.fleet[0].status: -1 is out of range; use 100 to 599; hooks.drain.retries: -1 is out of range; use 0 to 20"
	if found := r.Validate(); found.Error() != want {
		t.Fatalf("problems %q; want %q", found, want)
	}
}

func TestRolloutBounds(t *testing.T) {
	t.Parallel()
	sized := func(stages, checks, hosts, labels int) Rollout {
		r := Rollout{Checks: &RolloutChecks{}, Exempt: &Match{Labels: map[string]string{}, Roles: []string{"r"}}}
		for i := range stages {
			r.Stages = append(r.Stages, Stage{Name: fmt.Sprint("s", i), Match: &Match{Roles: []string{"r"}}})
		}
		for range checks {
			r.Checks.BeforeHost = append(r.Checks.BeforeHost, Check{Type: "tcp", Address: "a:1"})
		}
		for i := range hosts {
			r.Exempt.Hosts = append(r.Exempt.Hosts, fmt.Sprint("h", i))
		}
		for i := range labels {
			r.Exempt.Labels[fmt.Sprint("l", i)] = "x"
		}
		return r
	}
	if found := sized(100, 20, 10000, 50).Validate(); len(found) > 0 {
		t.Errorf("the most of everything: %v", found)
	}
	want := []string{
		"stages: 101 entries are too many; use at most 100", "exempt.hosts: 10001 entries are too many; use at most 10000",
		"exempt.labels: 51 entries are too many; use at most 50", "checks.before-host: 21 entries are too many; use at most 20",
	}
	if found := sized(101, 21, 10001, 51).Validate(); found.Error() != strings.Join(want, "; ") {
		t.Errorf("problems %q; want %q", found, want)
	}
}
