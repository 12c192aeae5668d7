package rollout

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/tenantobject"
)

// declared is a policy with every member.
const declared = `{
  "stages": [
    {"name": "canary", "match": {"hosts": ["h01", "h02"], "labels": {"ring": "0", "a.b/c": ""}, "roles": ["edge"], "applications": ["a"]},
     "max-unavailable": "2", "soak": "60m", "approval": true, "approval-timeout": "720m"},
    {"name": "rest", "max-unavailable": "10%", "approval": false},
    {"name": "swact", "soak": "5m", "point-of-no-return": true,
     "step": {"do": {"type": "exec", "script": "swact", "args": [], "timeout": "1800s"}, "undo": {"type": "http", "url": "http://a/", "on": "site"},
      "match": {"roles": ["controller"], "labels": {"active": "true"}}, "gives": ["JOIN", "b_2"]}}],
  "max-failures": "5%", "on-failure": "pause", "min-prepared": "90%", "prepare-patience": "120s", "overrun": "stop", "overrun-limit": "300s", "reserve": "600s", "splay": "1m30s", "paused": true, "freeze-changes": true,
  "exempt": {"labels": {"pinned": "yes"}}, "exempt-reboot": {"roles": ["db"], "hosts": []},
  "checks": {
    "start": [{"type": "hosts", "expected": ["h01"], "same-version": "linux"}, {"type": "prometheus", "url": "http://p:9090", "query": "ALERTS", "below": "2"}, {"type": "disk", "path": "/var", "min-free": "2GiB", "match": {"hosts": ["h01"]}}],
    "before-host": [{"type": "systemd", "unit": "a.service"}, {"type": "tcp", "address": "a:22", "name": "ssh"}],
    "after-host": [{"type": "http", "url": "http://a/", "status": 204, "passes": 3, "interval": "2s", "timeout": "60s"}],
    "fleet": [{"type": "exec", "script": "quorum", "args": ["--least", "60m"]}, {"type": "disk", "path": "/var", "min-free": "2GiB", "args": []}]},
  "hooks": {
    "drain": {"type": "exec", "script": "drain", "args": ["now"], "on": "site", "timeout": "300s", "retries": 0, "retry-interval": "0h1s"},
    "undrain": {"type": "http", "url": "http://a/{host}", "method": "PUT"}},
  "timeouts": {"prepare": "120m", "upgrade": "1h30m", "reboot": "1200s"}}`

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		t.Fatal(err)
	}
	return members
}

func rolloutOf(t *testing.T, text string) (r v1.Rollout) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// asRead returns a model that declares text and the defaults, as a plan does, after a read
// of the server's rollout.
func asRead(t *testing.T, text string, server func(own v1.Rollout) v1.Rollout) (before, after map[string]any, m model) {
	t.Helper()
	var diags diag.Diagnostics
	kind.Declare(t.Context(), &m.Policy, kind.Filled(parse(t, text)), &diags)
	before = kind.Declared(t.Context(), m.Policy, &diags)
	m.FromAPI(t.Context(), server(m.ToAPI(t.Context(), &diags)), false, &diags)
	after = kind.Declared(t.Context(), m.Policy, &diags)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return before, after, m
}

func TestDeclared_isWhatWasDeclared(t *testing.T) {
	t.Parallel()
	before, _, _ := asRead(t, declared, func(r v1.Rollout) v1.Rollout { return r })
	if want := kind.Filled(parse(t, declared)); !reflect.DeepEqual(before, want) {
		t.Errorf("got  %v\nwant %v", before, want)
	}
}

func TestFromAPI_keepsWhatIsDeclared(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]func(v1.Rollout) v1.Rollout{
		"as it is":      func(r v1.Rollout) v1.Rollout { return r },
		"canonical":     v1.Rollout.Canonical,
		"with defaults": v1.Rollout.WithDefaults,
		"both":          func(r v1.Rollout) v1.Rollout { return r.WithDefaults().Canonical() },
	} {
		for kind, text := range map[string]string{
			"everything":        declared,
			"nothing":           `{}`,
			"empty and false":   `{"stages": [], "paused": false, "checks": {"fleet": []}, "hooks": {}, "timeouts": {}}`,
			"empty below":       `{"stages": [{"name": "a", "approval": false, "match": {"hosts": ["h01"], "roles": [], "labels": {}}}]}`,
			"defaults":          `{"max-failures": "1", "on-failure": "stop", "min-prepared": "50%", "prepare-patience": "300s", "splay": "0m", "timeouts": {"reboot": "900s"}}`,
			"defaults of parts": `{"checks": {"fleet": [{"type": "tcp", "address": "a:1", "passes": 1, "interval": "5s"}]}, "hooks": {"drain": {"type": "http", "url": "http://a/", "retries": 2}}}`,
		} {
			if before, after, _ := asRead(t, text, show); !reflect.DeepEqual(before, after) {
				t.Errorf("%s, %s: got %v, want %v", name, kind, after, before)
			}
		}
	}
}

// TestFromAPI_seesEveryEdit checks that after a read the model has the meaning of the
// server's rollout and differs from before only in the edited member.
func TestFromAPI_seesEveryEdit(t *testing.T) {
	t.Parallel()
	for name, edit := range edits {
		_, after, m := asRead(t, declared, func(r v1.Rollout) v1.Rollout {
			edit.do(&r)
			return r
		})
		var diags diag.Diagnostics
		server := rolloutOf(t, declared)
		edit.do(&server)
		if !kind.Same(m.ToAPI(t.Context(), &diags), server) {
			t.Errorf("%s: got %v, want what the server has", name, after)
		}
		for member, was := range kind.Filled(parse(t, declared)) {
			if changed := !reflect.DeepEqual(after[member], was); changed != (member == edit.member) {
				t.Errorf("%s: %s is %v and was %v", name, member, after[member], was)
			}
		}
	}
}

type edit struct {
	member string
	do     func(*v1.Rollout)
}

var edits = map[string]edit{
	"stage removed":         {"stages", func(r *v1.Rollout) { r.Stages = r.Stages[:1] }},
	"stage added":           {"stages", func(r *v1.Rollout) { r.Stages = append([]v1.Stage{{Name: "first", Match: r.Exempt}}, r.Stages...) }},
	"all stages gone":       {"stages", func(r *v1.Rollout) { r.Stages = nil }},
	"name of a stage":       {"stages", func(r *v1.Rollout) { r.Stages[0].Name = "other" }},
	"hosts":                 {"stages", func(r *v1.Rollout) { r.Stages[0].Match.Hosts = []string{"h01"} }},
	"labels":                {"stages", func(r *v1.Rollout) { r.Stages[0].Match.Labels["ring"] = "1" }},
	"roles":                 {"stages", func(r *v1.Rollout) { r.Stages[0].Match.Roles = nil }},
	"applications":          {"stages", func(r *v1.Rollout) { r.Stages[0].Match.Applications = []string{"other"} }},
	"max-unavailable":       {"stages", func(r *v1.Rollout) { r.Stages[1].MaxUnavailable = "50%" }},
	"soak":                  {"stages", func(r *v1.Rollout) { r.Stages[0].Soak = "" }},
	"approval":              {"stages", func(r *v1.Rollout) { r.Stages[0].Approval = false }},
	"approval-timeout":      {"stages", func(r *v1.Rollout) { r.Stages[0].ApprovalTimeout = "13h" }},
	"step gone":             {"stages", func(r *v1.Rollout) { r.Stages[2].Step = nil }},
	"script of a step":      {"stages", func(r *v1.Rollout) { r.Stages[2].Step.Do.Script = "other" }},
	"undo of a step":        {"stages", func(r *v1.Rollout) { r.Stages[2].Step.Undo = nil }},
	"host of a step":        {"stages", func(r *v1.Rollout) { r.Stages[2].Step.Match.Labels = nil }},
	"outputs of a step":     {"stages", func(r *v1.Rollout) { r.Stages[2].Step.Gives = []string{"JOIN"} }},
	"point-of-no-return":    {"stages", func(r *v1.Rollout) { r.Stages[2].PointOfNoReturn = false }},
	"freeze-changes":        {"freeze-changes", func(r *v1.Rollout) { r.FreezeChanges = false }},
	"start check gone":      {"checks", func(r *v1.Rollout) { r.Checks.Start = r.Checks.Start[:2] }},
	"hosts of a check":      {"checks", func(r *v1.Rollout) { r.Checks.Start[2].Match = nil }},
	"query":                 {"checks", func(r *v1.Rollout) { r.Checks.Start[1].Query = "up == 0" }},
	"bound of a query":      {"checks", func(r *v1.Rollout) { r.Checks.Start[1].Below = "" }},
	"max-failures":          {"max-failures", func(r *v1.Rollout) { r.MaxFailures = "50%" }},
	"on-failure":            {"on-failure", func(r *v1.Rollout) { r.OnFailure = "continue" }},
	"min-prepared":          {"min-prepared", func(r *v1.Rollout) { r.MinPrepared = "" }},
	"prepare-patience":      {"prepare-patience", func(r *v1.Rollout) { r.PreparePatience = "3m" }},
	"overrun":               {"overrun", func(r *v1.Rollout) { r.Overrun = "finish-host" }},
	"overrun-limit":         {"overrun-limit", func(r *v1.Rollout) { r.OverrunLimit = "6m" }},
	"reserve":               {"reserve", func(r *v1.Rollout) { r.Reserve = "11m" }},
	"splay":                 {"splay", func(r *v1.Rollout) { r.Splay = "" }},
	"paused":                {"paused", func(r *v1.Rollout) { r.Paused = false }},
	"exempt gone":           {"exempt", func(r *v1.Rollout) { r.Exempt = nil }},
	"exempt-reboot":         {"exempt-reboot", func(r *v1.Rollout) { r.ExemptReboot.Roles = []string{"db", "web"} }},
	"checks gone":           {"checks", func(r *v1.Rollout) { r.Checks = nil }},
	"check removed":         {"checks", func(r *v1.Rollout) { r.Checks.BeforeHost = r.Checks.BeforeHost[:1] }},
	"type of a check":       {"checks", func(r *v1.Rollout) { r.Checks.BeforeHost[0] = v1.Check{Type: "tcp", Address: "a:1"} }},
	"address":               {"checks", func(r *v1.Rollout) { r.Checks.BeforeHost[1].Address = "127.0.0.1:23" }},
	"name of a check":       {"checks", func(r *v1.Rollout) { r.Checks.BeforeHost[1].Name = "" }},
	"unit":                  {"checks", func(r *v1.Rollout) { r.Checks.BeforeHost[0].Unit = "sshd.service" }},
	"url":                   {"checks", func(r *v1.Rollout) { r.Checks.AfterHost[0].URL = "http://127.0.0.1/" }},
	"status":                {"checks", func(r *v1.Rollout) { r.Checks.AfterHost[0].Status = 0 }},
	"passes":                {"checks", func(r *v1.Rollout) { r.Checks.AfterHost[0].Passes = 1 }},
	"interval":              {"checks", func(r *v1.Rollout) { r.Checks.AfterHost[0].Interval = "3s" }},
	"timeout":               {"checks", func(r *v1.Rollout) { r.Checks.AfterHost[0].Timeout = "2m" }},
	"script":                {"checks", func(r *v1.Rollout) { r.Checks.Fleet[0].Script = "other" }},
	"args":                  {"checks", func(r *v1.Rollout) { r.Checks.Fleet[0].Args = []string{"--least", "1h"} }},
	"path":                  {"checks", func(r *v1.Rollout) { r.Checks.Fleet[1].Path = "/" }},
	"min-free":              {"checks", func(r *v1.Rollout) { r.Checks.Fleet[1].MinFree = "1GiB" }},
	"hooks gone":            {"hooks", func(r *v1.Rollout) { r.Hooks = nil }},
	"hook gone":             {"hooks", func(r *v1.Rollout) { r.Hooks.Undrain = nil }},
	"where a hook runs":     {"hooks", func(r *v1.Rollout) { r.Hooks.Drain.On = "host" }},
	"retries":               {"hooks", func(r *v1.Rollout) { r.Hooks.Drain.Retries = nil }},
	"retry-interval":        {"hooks", func(r *v1.Rollout) { r.Hooks.Drain.RetryInterval = "" }},
	"timeout of a hook":     {"hooks", func(r *v1.Rollout) { r.Hooks.Drain.Timeout = "6m" }},
	"method":                {"hooks", func(r *v1.Rollout) { r.Hooks.Undrain.Method = "" }},
	"timeouts gone":         {"timeouts", func(r *v1.Rollout) { r.Timeouts = nil }},
	"timeout of the reboot": {"timeouts", func(r *v1.Rollout) { r.Timeouts.Reboot = "21m" }},
}

func TestFromAPI_importTakesAll(t *testing.T) {
	t.Parallel()
	var m model
	var diags diag.Diagnostics
	server := rolloutOf(t, declared)
	m.FromAPI(t.Context(), server, true, &diags)
	if got := kind.Declared(t.Context(), m.Policy, &diags); diags.HasError() || !reflect.DeepEqual(got, kind.Filled(tenantobject.Tree(server))) {
		t.Errorf("got %v %v, want %v", got, diags, tenantobject.Tree(server))
	}
}
