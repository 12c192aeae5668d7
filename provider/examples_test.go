package provider_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/release"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func example(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "examples", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// exampleSecrets are the ephemeral variables of examples.
var exampleSecrets = map[string]string{"ann_password": "correct horse", "chat_secret": "whsec_" + strings.Repeat("QUJD", 10)}

// TestExamples_run applies every example of the documentation.
func TestExamples_run(t *testing.T) {
	t.Parallel()
	for _, path := range []string{
		"resources/osupgrade_config/resource.tf", "resources/osupgrade_maintenance_window/resource.tf", "resources/osupgrade_calendar/resource.tf", "resources/osupgrade_rollout/resource.tf", "resources/osupgrade_rollout/steps.tf", "resources/osupgrade_run/resource.tf", "resources/osupgrade_run/without-waiting.tf", "resources/osupgrade_policy/resource.tf", "resources/osupgrade_user/resource.tf", "resources/osupgrade_approle/resource.tf", "resources/osupgrade_webhook/resource.tf", "resources/osupgrade_tenant/resource.tf", "resources/osupgrade_disruption_budget/resource.tf", "resources/osupgrade_environment/resource.tf", "resources/osupgrade_release/resource.tf",
		"data-sources/osupgrade_state/data-source.tf", "data-sources/osupgrade_hosts/data-source.tf", "data-sources/osupgrade_runs/data-source.tf", "data-sources/osupgrade_environment/data-source.tf", "data-sources/osupgrade_health/data-source.tf", "data-sources/osupgrade_releases/data-source.tf",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			api.SetEnvironments(acctest.Tenant, v1.EnvironmentStatus{Name: "basel", Status: "idle"})
			api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01", Versions: map[string]string{"kernel": "6.12"}})
			api.OnStart(func(tenant string, run v1.Run) { api.FinishRun(tenant, run.ID, "completed", "") })
			step := resource.TestStep{Config: server.Config(example(t, path))}
			for name, secret := range exampleSecrets {
				if strings.Contains(step.Config, "var."+name) {
					acctest.Need(t, acctest.WriteOnly)
					step.ConfigVariables = config.Variables{name: config.StringVariable(secret)}
				}
			}
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{step}})
		})
	}
}

// TestExamples_actions invokes the action of each example with a CLI that has actions. The server
// refuses all but one, as no run is in progress and no such window opens, which shows that they came as
// far as that.
func TestExamples_actions(t *testing.T) {
	t.Parallel()
	acctest.Need(t, acctest.Actions)
	const noRun = "no run is in progress"
	for action, refused := range map[string]string{
		"start.release": "", "pause.acme": noRun, "resume.acme": noRun, "abort.acme": noRun, "abort.all": "", "approve.rest": noRun, "release.h02": noRun, "skip_window.shops": "no such window opens", "rollback_run.release": "no run has upgraded a host",
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			api.OnStart(func(tenant string, run v1.Run) { api.FinishRun(tenant, run.ID, "completed", "") })
			w := acctest.NewWorkspace(t, server.Env()...)
			name, _, _ := strings.Cut(action, ".")
			w.Write(t, "main.tf", acctest.Requirement+example(t, "actions/osupgrade_"+name+"/action.tf"))
			if out := w.Run(t, 0, "apply", "-auto-approve", "-no-color"); name == "start" != strings.Contains(out, "run 41 ended: completed") {
				t.Errorf("the resource invokes nothing: %s", out)
			}
			code := 0
			if refused != "" {
				code = 1
			}
			if out := w.Run(t, code, "apply", "-auto-approve", "-no-color", "-invoke=action.osupgrade_"+action); !strings.Contains(out, refused) {
				t.Errorf("the server did not refuse: %s", out)
			}
		})
	}
}

// TestExamples_functions: the functions' examples stand together, without a
// server, and their outputs are what their comments say. The check may warn.
func TestExamples_functions(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t)
	w.Write(t, "main.tf", acctest.Requirement)
	for _, name := range []string{"next_windows", "in_window", "normalize_duration", "parse_ics"} {
		w.Write(t, name+".tf", example(t, "functions/"+name+"/function.tf"))
	}
	out := w.Run(t, 0, "apply", "-auto-approve", "-no-color")
	for _, want := range []string{`"1d4h"`, `"2026-12-18T21:00:00Z"`, `"2026-12-19T21:00:00Z"`, `"2027-01-08T21:00:00Z"`, `"Freeze: Christmas"`} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %s in %s", want, out)
		}
	}
}

func TestExamples_import(t *testing.T) {
	t.Parallel()
	for name, resource := range map[string]string{"osupgrade_config": "acme", "osupgrade_calendar": "christmas", "osupgrade_rollout": "acme", "osupgrade_run": "acme", "osupgrade_maintenance_window": "weekend", "osupgrade_policy": "night_shift", "osupgrade_user": "ann", "osupgrade_approle": "deploy", "osupgrade_webhook": "chat", "osupgrade_tenant": "beta", "osupgrade_disruption_budget": "racks", "osupgrade_environment": "basel", "osupgrade_release": "packages"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			api.SetConfig(acctest.Tenant, v1.OSUpgrade{
				WorkerApplications: []v1.WorkerApplication{{Name: "a"}},
				MaintenanceWindows: []v1.MaintenanceWindow{{DaysOfWeek: "Friday, Saturday", StartTime: "22:30", Timezone: "Europe/Stockholm", Duration: "2h"}},
			})
			api.SetCalendar(acctest.Tenant, "christmas", v1.Calendar{Kind: "freeze"})
			api.SetRollout(acctest.Tenant, v1.Rollout{OnFailure: "pause"})
			api.SetRelease(acctest.Tenant, "security-2026-11-21", v1.Release{Packages: &release.Packages{Select: release.Security}})
			setAccess(api)
			api.AddRun(acctest.Tenant, v1.Run{Phase: "finished", Result: "completed"})
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+example(t, "resources/"+name+"/import-by-string-id.tf"))
			w.Run(t, 0, "plan", "-input=false", "-generate-config-out=generated.tf")

			w = acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", acctest.Requirement+"resource \""+name+"\" \""+resource+"\" {"+required[name]+"}\n")
			w.Run(t, 0, strings.Fields(lastLine(example(t, "resources/"+name+"/import.sh")))[1:]...)
		})
	}
}

// required are attributes that must stand in a block to import into.
var required = map[string]string{
	"osupgrade_calendar":          "\n  name = \"christmas\"\n  kind = \"freeze\"\n",
	"osupgrade_policy":            "\n  name = \"night-shift\"\n  rest_api = { rules = [] }\n",
	"osupgrade_user":              "\n  name = \"ann\"\n  token_policies = [\"operator\"]\n",
	"osupgrade_approle":           "\n  name = \"deploy\"\n  token_policies = [\"read\"]\n",
	"osupgrade_webhook":           "\n  name = \"chat\"\n  url = \"https://hooks.example\"\n",
	"osupgrade_tenant":            "\n  name = \"beta\"\n",
	"osupgrade_disruption_budget": "\n  name = \"racks\"\n",
	"osupgrade_environment":       "\n  name = \"basel\"\n  match = { hosts = [\"h01\"] }\n",
	"osupgrade_release":           "\n  name = \"security-2026-11-21\"\n  packages = { select = \"security\" }\n",
	"osupgrade_config":            "\n  worker_applications = [\"a\"]\n",
}

func TestExamples_provider(t *testing.T) {
	t.Parallel()
	w := acctest.NewWorkspace(t)
	w.Write(t, "main.tf", strings.ReplaceAll(example(t, "provider/provider.tf"), `"osupgrade/osupgrade"`, `"`+acctest.Source+`"`))
	w.Run(t, 0, "validate")
	for _, name := range []string{"provider-token.tf", "provider-login.tf"} {
		w = acctest.NewWorkspace(t)
		w.Write(t, "main.tf", acctest.Requirement+example(t, "provider/"+name))
		w.Run(t, 0, "validate")
	}
}

// TestExamples_order: wherever the documents declare windows beside a freeze or a rollout,
// the windows depend on it, and so does a run.
func TestExamples_order(t *testing.T) {
	t.Parallel()
	blocks := regexp.MustCompile(`(?s)resource "(osupgrade_\w+)" "(\w+)" \{\n(.*?)\n\}`)
	found := 0
	for _, folder := range []string{"../examples", "../templates", "../docs/guides", "../README.md"} {
		err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			resources := blocks.FindAllStringSubmatch(string(text), -1)
			for _, r := range resources {
				for _, on := range resources {
					first := on[1] == "osupgrade_rollout" || on[1] == "osupgrade_calendar" && strings.Contains(on[3], `"freeze"`)
					if (r[1] != "osupgrade_config" && r[1] != "osupgrade_run") || !first {
						continue
					}
					found++
					if !regexp.MustCompile(`depends_on = \[.*` + on[1] + `\.` + on[2]).MatchString(r[3]) {
						t.Errorf("%s: %s.%s does not depend on %s.%s", path, r[1], r[2], on[1], on[2])
					}
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if found < 5 {
		t.Errorf("%d pairs found, want 5 at least", found)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// TestGuides_run applies the configuration in each guide.
func TestGuides_run(t *testing.T) {
	t.Parallel()
	// What lies ahead may be another in the next plan.
	for guide, steady := range map[string]bool{"rollout": true, "calendar": false, "order": true, "ownership": true} {
		t.Run(guide, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("../docs/guides/" + guide + ".md")
			if err != nil {
				t.Fatal(err)
			}
			_, after, _ := strings.Cut(string(text), "```terraform\n")
			config, _, found := strings.Cut(after, "```")
			if !found {
				t.Fatal("the guide shows no configuration")
			}
			_, server := acctest.Fake(t)
			w := acctest.NewWorkspace(t, server.Env()...)
			w.Write(t, "main.tf", server.Config(config))
			w.Run(t, 0, "apply", "-auto-approve", "-no-color")
			if steady {
				w.Run(t, 0, "plan", "-detailed-exitcode", "-no-color")
			}
		})
	}
}
