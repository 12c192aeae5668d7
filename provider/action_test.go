package provider_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

// The tests of this file invoke the actions at the protocol, as Terraform 1.14 does, so that
// they run with each CLI. TestActionsCLI, below, invokes them with a CLI that has actions.

type values = map[string]tftypes.Value

// told is what an action has told.
type told struct {
	progress, errors, warnings []string
}

func (d *told) add(found []*tfprotov6.Diagnostic) {
	for _, one := range found {
		line := one.Summary + "\n" + one.Detail
		if one.Attribute != nil {
			line = one.Attribute.String() + "\n" + line
		}
		if one.Severity == tfprotov6.DiagnosticSeverityError {
			d.errors = append(d.errors, line)
		} else {
			d.warnings = append(d.warnings, line)
		}
	}
}

// says fails the test unless exactly one of the lines matches.
func says(t *testing.T, lines []string, want string) {
	t.Helper()
	if len(lines) != 1 || !regexp.MustCompile(`(?s)`+want).MatchString(lines[0]) {
		t.Errorf("it says %q, want one line like %q", lines, want)
	}
}

func (p protocol) actions(t *testing.T) tfprotov6.ActionServer {
	t.Helper()
	server, ok := p.ProviderServer.(tfprotov6.ActionServer)
	if !ok {
		t.Fatal("the provider serves no actions")
	}
	return server
}

// invoke validates, plans and invokes an action; it ends at the first error.
func (p protocol) invoke(t *testing.T, name string, config values) told {
	t.Helper()
	var d told
	of := p.schemas.ActionSchemas[name].Schema.ValueType()
	valid, err := p.actions(t).ValidateActionConfig(t.Context(), &tfprotov6.ValidateActionConfigRequest{ActionType: name, Config: object(t, of, config)})
	if err != nil {
		t.Fatal(err)
	}
	if d.add(valid.Diagnostics); len(d.errors) > 0 {
		return d
	}
	planned, err := p.actions(t).PlanAction(t.Context(), &tfprotov6.PlanActionRequest{ActionType: name, Config: object(t, of, config)})
	if err != nil {
		t.Fatal(err)
	}
	if d.add(planned.Diagnostics); len(d.errors) > 0 {
		return d
	}
	stream, err := p.actions(t).InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{ActionType: name, Config: object(t, of, config)})
	if err != nil {
		t.Fatal(err)
	}
	for event := range stream.Events {
		switch event := event.Type.(type) {
		case tfprotov6.ProgressInvokeActionEventType:
			d.progress = append(d.progress, event.Message)
		case tfprotov6.CompletedInvokeActionEventType:
			d.add(event.Diagnostics)
		default:
			t.Fatalf("unexpected event %T", event)
		}
	}
	return d
}

// fleet is a fake API with two hosts and a provider for it.
func fleet(t *testing.T) (*fakeapi.Server, protocol) {
	t.Helper()
	api, server := acctest.Fake(t)
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01"}, v1.Host{Hostname: "h02"})
	return api, configured(t, server)
}

func TestAction_start(t *testing.T) {
	t.Parallel()
	api, p := fleet(t)
	api.OnStart(func(tenant string, run v1.Run) { api.FinishRun(tenant, run.ID, "completed", "done") })
	got := p.invoke(t, "osupgrade_start", values{"reason": text("CVE-2026-1"), "override_window": boolean(true), "until": text("canary")})
	if len(got.errors)+len(got.warnings) > 0 {
		t.Fatal(got)
	}
	for _, want := range []string{"run 41 is preparing: 0 of 2 hosts upgraded", "host h02 is upgraded", "run 41 ended: completed: done"} {
		if !slices.Contains(got.progress, want) {
			t.Errorf("there is no %q in %q", want, got.progress)
		}
	}
	if runs := api.Runs(acctest.Tenant); len(runs) != 1 || runs[0].RequestReason != "CVE-2026-1" || runs[0].Until != "canary" {
		t.Errorf("the runs are %v", runs)
	}
}

// TestAction_startIsJudged as the resource is, in the words of an action.
func TestAction_startIsJudged(t *testing.T) {
	t.Parallel()
	partial := tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text("completed"), text("partial")})
	for name, row := range map[string]struct {
		result           string
		config           values
		errors, warnings string
	}{
		"partial":          {result: "partial", errors: `^Not all hosts of osupgrade_start were upgraded\n.*because.*set retry_of = 41\. .*: invoke the action again\. .*accept`},
		"accepted partial": {result: "partial", config: values{"accept": partial}, warnings: `^Not all hosts of osupgrade_start`},
		"failed":           {result: "failed", errors: `^Unable to complete osupgrade_start\n.*invoke the action again, which starts another run\.$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, p := fleet(t)
			api.OnStart(func(tenant string, run v1.Run) { api.FinishRun(tenant, run.ID, row.result, "because") })
			got := p.invoke(t, "osupgrade_start", row.config)
			if row.errors != "" {
				says(t, got.errors, row.errors)
			}
			if row.warnings != "" {
				says(t, got.warnings, row.warnings)
			}
			if (len(got.errors) > 0) != (row.errors != "") {
				t.Errorf("the errors are %q", got.errors)
			}
		})
	}
}

// TestAction_startWithoutWait returns while the run goes on; an action with the same triggers
// takes that over, and one with others waits for its end first.
func TestAction_startWithoutWait(t *testing.T) {
	t.Parallel()
	api, p := fleet(t)
	triggers := func(release string) tftypes.Value {
		return tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, values{"release": text(release)})
	}
	got := p.invoke(t, "osupgrade_start", values{"wait": boolean(false), "triggers": triggers("one")})
	if len(got.errors) > 0 || !slices.Equal(got.progress, []string{"run 41 was started; not done yet: h01 (preparing), h02 (preparing)"}) {
		t.Fatal(got)
	}
	got = p.invoke(t, "osupgrade_start", values{"wait": boolean(false), "triggers": triggers("one")})
	if len(got.errors) > 0 || !strings.Contains(got.progress[0], "run 41 of tenant acme was started for the same purpose; taking it over") {
		t.Fatal(got)
	}
	go func() {
		api.AwaitStreams(1)
		api.FinishRun(acctest.Tenant, 41, "completed", "")
	}()
	got = p.invoke(t, "osupgrade_start", values{"wait": boolean(false), "triggers": triggers("two")})
	says(t, got.warnings, "^A run could not start now") // The plan.
	if last := len(got.progress) - 1; len(got.errors) > 0 || got.progress[0] != "run 41 of tenant acme is in progress; waiting for its end" || !strings.HasPrefix(got.progress[last], "run 42 was started") {
		t.Error(got)
	}
	if n := len(api.Runs(acctest.Tenant)); n != 2 {
		t.Errorf("%d runs were started", n)
	}
}

func TestAction_timeIsOver(t *testing.T) {
	t.Parallel()
	_, p := fleet(t)
	limit := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"invoke": tftypes.String}}
	got := p.invoke(t, "osupgrade_start", values{"timeouts": tftypes.NewValue(limit, values{"invoke": text("2s")})})
	says(t, got.errors, `^Unable to wait for the end of osupgrade_start\nRun 41 of tenant acme was started, but it did not end within timeouts\.invoke; not done yet: h01 .* invoked again with the same triggers`)
}

// TestAction_asks: each request about the run under way has its effect, and its own advice if
// there is no run.
func TestAction_asks(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		config   values
		prepare  func(run *v1.Run)
		done     func(run v1.Run) bool
		progress string
		refused  string
	}{
		"pause":   {nil, nil, func(r v1.Run) bool { return r.Paused == "fakeapi: because" }, "run 7 was paused; not done yet: h02 (upgrading)", "Nothing was paused"},
		"resume":  {nil, func(r *v1.Run) { r.Paused = "ann" }, func(r v1.Run) bool { return r.Paused == "" }, "run 7 was resumed", "Nothing was resumed"},
		"abort":   {values{"now": boolean(true)}, nil, func(r v1.Run) bool { return r.Result == "aborted" }, "run 7 ended: aborted: aborted by fakeapi: because", "Nothing was aborted"},
		"approve": {values{"stage": text("rest")}, nil, func(r v1.Run) bool { return r.Stages[0].Phase == "running" }, "run 7 was approved", "Nothing was approved"},
		"release": {values{"host": text("h02")}, nil, func(r v1.Run) bool { return r.Hosts[1].Slot == nil }, "run 7 continues", "Nothing was released"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, p := fleet(t)
			config := values{"reason": text("because")}
			for attribute, value := range row.config {
				config[attribute] = value
			}
			got := p.invoke(t, "osupgrade_"+name, config)
			says(t, got.errors, "^Unable to invoke osupgrade_"+name+"\nTenant: acme\nRequest: POST /v1/state/tenants/acme/os-upgrade/"+name+"\nStatus: 412 .*no run is in progress\n\n"+row.refused)

			began := api.AddRun(acctest.Tenant, under(row.prepare))
			got = p.invoke(t, "osupgrade_"+name, config)
			if len(got.errors)+len(got.warnings) > 0 || !slices.ContainsFunc(got.progress, func(line string) bool { return strings.HasPrefix(line, row.progress) }) {
				t.Errorf("it tells %q, want %q", got, row.progress)
			}
			if run := api.Runs(acctest.Tenant)[0]; run.ID != began || !row.done(run) {
				t.Errorf("the run is %+v", run)
			}
		})
	}
}

// under is run 7, in which h02 is upgraded and a stage waits for approval.
func under(prepare func(run *v1.Run)) v1.Run {
	run := v1.Run{
		ID: 7, Phase: "upgrading", Stages: []v1.RunStage{{Name: "rest", Phase: "waiting-for-approval"}},
		Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}, {Hostname: "h02", Status: "upgrading"}},
	}
	since := run.OpenedAt
	run.Hosts[1].Slot = &since
	if prepare != nil {
		prepare(&run)
	}
	return run
}

// TestAction_asksAndWaits: a request may wait for the end of the run, which is then judged.
func TestAction_asksAndWaits(t *testing.T) {
	t.Parallel()
	api, p := fleet(t)
	api.AddRun(acctest.Tenant, under(nil))
	go func() {
		api.AwaitStreams(1)
		api.FinishRun(acctest.Tenant, 7, "partial", "h02 was not reached")
	}()
	got := p.invoke(t, "osupgrade_approve", values{"reason": text("because"), "stage": text("rest"), "wait": boolean(true)})
	says(t, got.errors, `^Not all hosts of osupgrade_approve were upgraded\n.*h02 was not reached.*set retry_of = 7 in osupgrade_start\. .* invoke osupgrade_start\.`)
}

// TestAction_wrongValues are told before anything is asked of the server.
func TestAction_wrongValues(t *testing.T) {
	t.Parallel()
	api, p := fleet(t)
	for _, row := range []struct {
		action string
		config values
		says   string
	}{
		{"start", values{"override_window": boolean(true)}, `reason.*Invalid configuration of osupgrade_start`},
		{"start", values{"duration": text("4h")}, `duration.*override_window`},
		{"start", values{"tenant": text("Acme")}, `tenant.*is not a name`},
		{"start", values{"retry_of": tftypes.NewValue(tftypes.Number, 0)}, `retry_of.*0 is out of range; use a whole number from 1`},
		{"start", values{"timeouts": tftypes.NewValue(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"invoke": tftypes.String}}, values{"invoke": text("soon")})}, `timeouts.*invoke`},
		{"start", values{"environment": text("Basel")}, `environment.*"Basel" is not a name`},
		{"pause", values{"reason": text("x"), "environment": text("Basel")}, `environment.*"Basel" is not a name`},
		{"pause", values{"reason": text(" ")}, `reason.*is empty`},
		{"approve", values{"reason": text("x"), "stage": text("Not One")}, `stage.*Not One`},
		{"release", values{"reason": text("x"), "host": text("no host")}, `host.*is not the name of a host`},
		{"abort", values{"reason": text(strings.Repeat("x", 1001))}, `reason.*1000`},
		{"abort", values{"reason": text("x"), "all": boolean(true), "environment": text("basel")}, `all.*omit environment`},
		{"skip_window", values{"reason": text(" ")}, `reason.*is empty`},
		{"skip_window", values{"reason": text("x"), "environment": text("Basel")}, `environment.*"Basel" is not a name`},
		{"skip_window", values{"reason": text("x"), "window_start": text("Sunday")}, `window_start.*"Sunday" is not a time`},
	} {
		got := p.invoke(t, "osupgrade_"+row.action, row.config)
		if len(got.errors) == 0 || !regexp.MustCompile(`(?s)`+row.says).MatchString(strings.Join(got.errors, "\n")) {
			t.Errorf("%s says %q, want %q", row.action, got.errors, row.says)
		}
	}
	if n := len(api.Requests()); n > 0 {
		t.Errorf("the server had %d requests", n)
	}
}

// TestAction_skipWindow skips the next window, which is the same one when it is invoked again, and is
// refused a window that does not open.
func TestAction_skipWindow(t *testing.T) {
	t.Parallel()
	api, p := fleet(t)
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "app"}}, MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Sunday", StartTime: "02:00", Timezone: "UTC", Duration: "2h"}},
	})
	for _, reason := range []string{"sale", "another"} {
		got := p.invoke(t, "osupgrade_skip_window", values{"reason": text(reason)})
		if len(got.errors)+len(got.warnings) > 0 {
			t.Fatal(got)
		}
		says(t, got.progress, `^the window from .*T02:00:00Z to .*T04:00:00Z is skipped by fakeapi: sale$`)
	}
	got := p.invoke(t, "osupgrade_skip_window", values{"reason": text("sale"), "window_start": text("2026-11-28T01:00:00Z"), "environment": text("shops")})
	says(t, got.errors, "^Unable to invoke osupgrade_skip_window\nTenant: acme\nRequest: POST /v1/state/tenants/acme/os-upgrade/skip-window\nStatus: 412 .*no such window opens\n\nNothing was skipped")
}

func TestAction_withoutTenantOrRight(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	for name := range configured(t, server).schemas.ActionSchemas {
		nobody := server
		nobody.Tenant = ""
		config := values{"reason": text("because")}
		switch name {
		case "osupgrade_approve":
			config["stage"] = text("rest")
		case "osupgrade_release":
			config["host"] = text("h02")
		case "osupgrade_rollback_run":
			config["run"] = tftypes.NewValue(tftypes.Number, 57)
		}
		says(t, configured(t, nobody).invoke(t, name, config).errors, "There is no tenant")

		operation := strings.ReplaceAll(strings.TrimPrefix(name, "osupgrade_"), "_", "-")
		if name == "osupgrade_rollback_run" {
			operation = "start"
		}
		for range 2 { // Start asks once in the plan.
			api.Inject(http.MethodPost, "/"+operation, fakeapi.Status(http.StatusForbidden, "this needs the role operator"))
		}
		says(t, configured(t, server).invoke(t, name, config).errors, "Unable to invoke "+name+".*403.*needs the role operator.*Use another token")
	}
}

// TestActionsCLI: a CLI that has actions invokes them, by itself and by a resource, and shows
// the progress.
func TestActionsCLI(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.Actions)
	api, server := acctest.Fake(t)
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01"})
	api.OnStart(func(tenant string, run v1.Run) { api.FinishRun(tenant, run.ID, "completed", "done") })
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+`
resource "terraform_data" "release" {
  input = "2026-11"
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.osupgrade_start.now]
    }
  }
}
action "osupgrade_start" "now" {
  config {
    override_window = true
    reason          = "Release ${terraform_data.release.output}"
  }
}
action "osupgrade_pause" "now" {
  config { reason = "because" }
}
`)
	out := w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	for _, want := range []string{"host h01 is upgraded", "run 41 ended: completed: done", "1 invoked"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in %s", want, out)
		}
	}
	if reason := api.Runs(acctest.Tenant)[0].RequestReason; reason != "Release 2026-11" {
		t.Errorf("the reason is %q", reason)
	}
	if out := w.Run(t, 1, "apply", "-auto-approve", "-no-color", "-invoke=action.osupgrade_pause.now"); !strings.Contains(out, "Nothing was paused") {
		t.Errorf("there is no advice in %s", out)
	}
	id := api.AddRun(acctest.Tenant, v1.Run{Phase: "upgrading"})
	if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-invoke=action.osupgrade_pause.now"); !strings.Contains(out, fmt.Sprintf("run %d was paused", id)) {
		t.Errorf("there is no progress in %s", out)
	}
}

// TestSkipWindowCLI: a CLI that has actions skips the next window of an environment, by itself and by a
// resource that changes; the second finds the window skipped already.
func TestSkipWindowCLI(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.Actions)
	site := realagent.StartSite(t, acctest.Tenant)
	w := acctest.NewWorkspace(t, site.Env()...)
	write := func(inventory string) {
		w.Write(t, "main.tf", acctest.Requirement+`
resource "osupgrade_config" "acme" {
  worker_applications = ["till"]
}
resource "osupgrade_environment" "basel" {
  name                = "basel"
  match               = { labels = { shop = "basel" } }
  maintenance_windows = [{ days_of_week = ["Monday", "Thursday"], start_time = "02:00", timezone = "UTC", duration = "2h" }]
}
resource "terraform_data" "inventory" {
  input = "`+inventory+`"
  lifecycle {
    action_trigger {
      events  = [after_update]
      actions = [action.osupgrade_skip_window.basel]
    }
  }
}
action "osupgrade_skip_window" "basel" {
  config {
    environment = osupgrade_environment.basel.name
    reason      = "Inventory ${terraform_data.inventory.output}"
  }
}
action "osupgrade_skip_window" "chur" {
  config {
    environment = "chur"
    reason      = "nobody"
  }
}
data "osupgrade_environment" "basel" {
  name       = "basel"
  depends_on = [osupgrade_environment.basel]
}
output "skipped" {
  value = data.osupgrade_environment.basel.skipped_window
}
`)
	}
	write("2026")
	w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	said := regexp.MustCompile(`the window from \S+T02:00:00Z to \S+T04:00:00Z is skipped by .*: Inventory 2026`)
	first := said.FindString(w.Run(t, 0, "apply", "-auto-approve", "-no-color", "-invoke=action.osupgrade_skip_window.basel"))
	write("2027")
	second := said.FindString(w.Run(t, 0, "apply", "-auto-approve", "-no-color"))
	if first == "" || first != second {
		t.Errorf("it says %q, and again %q", first, second)
	}
	if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, `"reason" = "Inventory 2026"`) {
		t.Errorf("the window is not shown as skipped: %s", out)
	}
	if out := w.Run(t, 1, "apply", "-auto-approve", "-no-color", "-invoke=action.osupgrade_skip_window.chur"); !strings.Contains(strings.Join(strings.Fields(out), " "), "Check the names of the tenant and of the environment") {
		t.Errorf("there is no advice in %s", out)
	}
}
