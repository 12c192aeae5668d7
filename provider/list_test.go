package provider_test

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/principal"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// list asks a list at the protocol, as terraform query does. It returns the names of what it
// lists and the errors.
func (p protocol) list(t *testing.T, name string, config values, limit int64, contents bool) (results []tfprotov6.ListResourceResult, names []string, told told) {
	t.Helper()
	server, ok := p.ProviderServer.(tfprotov6.ListResourceServer)
	if !ok {
		t.Fatal("the provider serves no lists")
	}
	of := p.schemas.ListResourceSchemas[name].ValueType()
	valid, err := server.ValidateListResourceConfig(t.Context(), &tfprotov6.ValidateListResourceConfigRequest{TypeName: name, Config: object(t, of, config)})
	if err != nil {
		t.Fatal(err)
	}
	if told.add(valid.Diagnostics); len(told.errors) > 0 {
		return nil, nil, told
	}
	stream, err := server.ListResource(t.Context(), &tfprotov6.ListResourceRequest{TypeName: name, Config: object(t, of, config), Limit: limit, IncludeResource: contents})
	if err != nil {
		t.Fatal(err)
	}
	for result := range stream.Results {
		if told.add(result.Diagnostics); result.Identity != nil {
			results, names = append(results, result), append(names, result.DisplayName)
		}
	}
	return results, names, told
}

// full is a fake API with something to list of each resource.
func full(t *testing.T) (*fakeapi.Server, acctest.Server) {
	t.Helper()
	api, server := acctest.Fake(t)
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{
		WorkerApplications: []v1.WorkerApplication{{Name: "a"}},
		MaintenanceWindows: []v1.MaintenanceWindow{
			{DaysOfWeek: "friday,saturday", StartTime: "22:30", Timezone: "Europe/Stockholm", Duration: "120m"},
			{DaysOfWeek: "Monday", StartTime: "01:00", Duration: "4h"},
		},
	})
	api.SetCalendar(acctest.Tenant, "christmas", v1.Calendar{Kind: "freeze"})
	api.SetCalendar(acctest.Tenant, "summer", v1.Calendar{Kind: "allow"})
	api.SetRollout(acctest.Tenant, v1.Rollout{OnFailure: "pause"})
	setAccess(api)
	api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "completed", RequestReason: "because", Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded"}}})
	api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "failed", OpenedAt: time.Date(2026, 11, 20, 1, 0, 0, 0, time.UTC)})
	return api, server
}

// setAccess puts in place what says who may do what at a tenant.
func setAccess(api *fakeapi.Server) {
	api.SetPolicy(principal.Policy{Tenant: acctest.Tenant, Name: "night-shift", Rules: []principal.PolicyRule{{Path: "/v1/*/os-upgrade/**", Operations: map[string]string{"read": "allow"}}}})
	api.SetUserOf(principal.User{Tenant: acctest.Tenant, Name: "ann", Allow: []string{"operator", "approver"}, Life: principal.Life{Seconds: 8 * 3600}}, "correct horse")
	api.SetApproleOf(principal.Approle{Tenant: acctest.Tenant, Name: "deploy", Allow: []string{"read"}, Uses: new(0)})
	api.SetTenant("beta", "Beta Ltd")
	api.SetBudget(acctest.Tenant, "racks", v1.Budget{Per: "rack", MaxUnavailable: "1"})
	api.SetRelease(acctest.Tenant, "nov", v1.Release{
		Description: "November", Version: "2.1.0", Scheme: "semver", From: []string{">= 2.0, < 2.1"}, Requires: map[string]string{"kernel": ">= 6"}, Installs: map[string]string{"app": "2.1.0"},
		Data: []byte(`{"image":"box<2>"}`), Withdrawn: &release.Withdrawn{Reason: "loses routes", By: "ann"},
	})
	api.SetEnvironment(acctest.Tenant, "basel", v1.Environment{
		Match:              v1.Match{Labels: map[string]string{"shop": "basel"}},
		MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Monday, Tuesday", StartTime: "02:00", Duration: "3h"}},
		Rollout:            &v1.Rollout{MaxFailures: "2"},
	})
	secret, _ := hookSecret("a", 1)
	api.SetWebhook(acctest.Tenant, "chat", v1.Webhook{URL: "https://hooks.example/osupgrade", Secret: secret, News: []string{"run.blocked"}})
}

// TestList: each resource has a list, with identities that import what an import by hand
// does: the attributes in the list are those that a read after the import has.
func TestList(t *testing.T) {
	t.Parallel()
	_, server := full(t)
	p := configured(t, server)
	wants := map[string][]string{
		"osupgrade_config":             {"acme"},
		"osupgrade_rollout":            {"acme"},
		"osupgrade_calendar":           {"acme/christmas", "acme/summer"},
		"osupgrade_maintenance_window": {"acme/Friday,Saturday@22:30/Europe/Stockholm/2h", "acme/Monday@01:00/site-local/4h"},
		"osupgrade_policy":             {"acme/night-shift"},
		"osupgrade_user":               {"acme/ann"},
		"osupgrade_tenant":             {"beta"},
		"osupgrade_webhook":            {"acme/chat"},
		"osupgrade_disruption_budget":  {"acme/racks"},
		"osupgrade_environment":        {"acme/basel"},
		"osupgrade_release":            {"acme/nov"},
		"osupgrade_approle":            {"acme/deploy"},
		"osupgrade_run":                {"acme/42 2026-11-20T01:00:00Z failed", "acme/41 0001-01-01T00:00:00Z completed"},
	}
	for name := range p.schemas.ResourceSchemas {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			results, names, told := p.list(t, name, nil, 0, true)
			if len(told.errors)+len(told.warnings) > 0 || !slices.Equal(names, wants[name]) {
				t.Fatalf("it lists %q, %v, want %q", names, told, wants[name])
			}
			of := p.schemas.ResourceSchemas[name].ValueType()
			for _, result := range results {
				imported, err := p.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: name, Identity: result.Identity})
				healthy(t, imported.Diagnostics, err)
				one := imported.ImportedResources[0]
				read, err := p.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: name, CurrentState: one.State, Private: one.Private, CurrentIdentity: one.Identity})
				healthy(t, read.Diagnostics, err)
				want, err := read.NewState.Unmarshal(of)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := result.Resource.Unmarshal(of); err != nil || !got.Equal(want) {
					t.Errorf("%s is listed as\n%s, %v, and imported as\n%s", result.DisplayName, got, err, want)
				}
			}
			if _, few, _ := p.list(t, name, nil, 1, false); !slices.Equal(few, wants[name][:1]) {
				t.Errorf("it lists %q with the limit 1", few)
			}
		})
	}
}

func TestList_filtersRuns(t *testing.T) {
	t.Parallel()
	_, server := full(t)
	p := configured(t, server)
	if _, names, told := p.list(t, "osupgrade_run", values{"result": text("completed")}, 0, false); len(names) != 1 || !strings.HasPrefix(names[0], "acme/41 ") {
		t.Errorf("it lists %q, %v", names, told)
	}
	for attribute, value := range map[string]tftypes.Value{"result": text("good"), "host": text("no host"), "since": text("yesterday"), "tenant": text("Acme")} {
		if _, _, told := p.list(t, "osupgrade_run", values{attribute: value}, 0, false); len(told.errors) != 1 || !strings.Contains(told.errors[0], attribute) {
			t.Errorf("%s: the errors are %q", attribute, told.errors)
		}
	}
}

// TestList_nothing: a tenant without objects has empty lists; a failure is no empty list.
func TestList_nothing(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetHosts(acctest.Tenant)
	nobody := server
	nobody.Tenant = ""
	for name := range configured(t, server).schemas.ListResourceSchemas {
		p := configured(t, server) // Windows are read once.
		if _, names, told := p.list(t, name, nil, 0, true); len(names)+len(told.errors) > 0 {
			t.Errorf("%s lists %q, %v", name, names, told)
		}
		_, _, told := configured(t, nobody).list(t, name, nil, 0, true)
		if name != "osupgrade_tenant" {
			says(t, told.errors, "There is no tenant")
		}
		path := map[string]string{"osupgrade_calendar": "/calendars", "osupgrade_rollout": "/rollout", "osupgrade_run": "/runs", "osupgrade_policy": "/policies", "osupgrade_user": "/userpass", "osupgrade_approle": "/approles", "osupgrade_webhook": "/webhooks", "osupgrade_disruption_budget": "/budgets", "osupgrade_environment": "/environments", "osupgrade_release": "/releases", "osupgrade_tenant": "/config/tenants"}[name]
		api.Inject(http.MethodGet, cmp.Or(path, "/os-upgrade"), fakeapi.Status(http.StatusForbidden, "not for you"))
		_, _, told = configured(t, server).list(t, name, nil, 0, true)
		says(t, told.errors, "^Unable to list "+name+".*403.*not for you")
	}
}

// TestQueryCLI: a CLI that has terraform query lists, writes the configuration, and imports
// what it wrote without a change.
func TestQueryCLI(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.Query)
	_, server := full(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+"provider \"osupgrade\" {}\n")
	for _, name := range []string{"config", "maintenance_window", "calendar", "rollout", "run", "policy", "user", "approle", "webhook", "tenant", "disruption_budget", "environment", "release"} {
		text := example(t, "list-resources/osupgrade_"+name+"/list-resource.tfquery.hcl")
		w.Write(t, name+".tfquery.hcl", strings.ReplaceAll(text, `["acme", "globex"]`, `["acme"]`))
	}
	out := w.Run(t, 0, "query", "-no-color")
	for _, want := range []string{"acme/christmas", "acme/summer", "acme/night-shift", "acme/ann", "acme/deploy", "acme/chat", "acme/racks", "acme/basel", "beta", "days_of_week=Friday, Saturday", "run_id="} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in %s", want, out)
		}
	}
	w = acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+"provider \"osupgrade\" {}\n")
	for _, name := range []string{"config", "calendar", "rollout", "policy", "user", "approle", "webhook", "tenant", "disruption_budget", "environment", "release"} {
		w.Write(t, name+".tfquery.hcl", "list \"osupgrade_"+name+"\" \"all\" {\n  provider = osupgrade\n}\n")
	}
	w.Run(t, 0, "query", "-no-color", "-generate-config-out=generated.tf")
	if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); !strings.Contains(out, "11 imported, 0 added, 0 changed, 0 destroyed") {
		t.Errorf("the import changes something: %s", out)
	}
}
