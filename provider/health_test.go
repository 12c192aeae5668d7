package provider_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest/realagent"
)

const (
	healthAddress = "data.osupgrade_health.all"
	health        = "data \"osupgrade_health\" \"all\" {\n depends_on = [osupgrade_config.all, osupgrade_rollout.all]\n}\n"
	healthOrError = `data "osupgrade_health" "all" {
  depends_on = [osupgrade_config.all, osupgrade_rollout.all]
  lifecycle {
    postcondition {
      condition = self.ok
      error_message = "${self.environment} is not ok: ${join(", ", [for c in self.checks :
        "${c.name}${c.host == null ? "" : " of ${c.host}"} ${c.result}${c.text == null ? "" : ": ${c.text}"}"])}."
    }
  }
}
`
	noRollout = "resource \"osupgrade_rollout\" \"all\" {}\n"
	simulated = "resource \"osupgrade_config\" \"all\" {\n worker_applications = [\"os-upgrade-simulated\"]\n}\n"
)

// startChecks is a rollout with start checks: a script at the site, one on each host, and one for a role
// that no host has. They have little time, so that a failure comes soon.
const startChecks = `resource "osupgrade_rollout" "all" {
  checks = {
    start = [
      { name = "alarms", type = "exec", script = "alarms", timeout = "1s", interval = "2s" },
      { name = "backup", type = "exec", script = "backup", timeout = "1s", match = { hosts = ["h01", "h02"] } },
      { name = "raid", type = "exec", script = "raid", match = { roles = ["storage"] } },
    ]
  }
}
`

// script writes the script of a check.
func script(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // A script is executed.
		t.Fatal(err)
	}
}

// TestHealthData asks the real agent: a rollout without start checks, checks that pass, one that
// fails, and a host that lost its power. None of it is an error, and none starts a run.
func TestHealthData(t *testing.T) {
	t.Parallel()
	server, dir := realagent.Start(t, 2)
	api := rest(t, server)
	onHost := func(name string) string { return filepath.Join(dir, "hosts", name) }
	script(t, filepath.Join(dir, "checks"), "alarms", "exit 0")
	for _, host := range []string{"h01", "h02"} {
		script(t, filepath.Join(onHost(host), "checks"), "backup", "exit 0")
	}
	has := func(ok string, checks ...[4]string) resource.TestCheckFunc {
		all := []resource.TestCheckFunc{resource.TestCheckResourceAttr(healthAddress, "ok", ok), resource.TestCheckResourceAttr(healthAddress, "environment", "default")}
		all = append(all, resource.TestCheckResourceAttr(healthAddress, "checks.#", strconv.Itoa(len(checks))))
		for i, c := range checks {
			for n, name := range []string{"name", "host", "result", "text"} {
				at := "checks." + strconv.Itoa(i) + "." + name
				if c[n] == "" {
					all = append(all, resource.TestCheckNoResourceAttr(healthAddress, at))
				} else {
					all = append(all, resource.TestCheckResourceAttr(healthAddress, at, c[n]))
				}
			}
		}
		return resource.ComposeAggregateTestCheckFunc(all...)
	}
	raid := [4]string{"raid", "", "not asked", "no host of the run matches it"}
	powerOff := func() {
		faults := filepath.Join(onHost("h02"), "faults.json")
		if err := os.WriteFile(faults, []byte(`{"prepare":"power-off"}`), 0o600); err != nil {
			t.Error(err)
		}
		script(t, filepath.Join(dir, "checks"), "alarms", "exit 0")
		if _, err := api.Start(t.Context(), acctest.Tenant, v1.Start{OverrideWindow: true, Hosts: []string{"h02"}, Reason: "its power"}); err != nil {
			t.Error(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			left, err := os.ReadFile(faults)
			if err != nil || time.Now().After(end) {
				t.Errorf("h02 still has its power: %s, %v", left, err)
			}
			if err != nil || !strings.Contains(string(left), "power-off") || time.Now().After(end) {
				break
			}
		}
		if _, err := api.Abort(t.Context(), acctest.Tenant, v1.Ask{Reason: "it has none"}); err != nil {
			t.Error(err)
		}
	}
	passed := [4]string{"alarms", "", "passed", ""}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(simulated, noRollout, health), Check: has("true")},
		{Config: server.Config(simulated, startChecks, health), Check: has("true", passed, [4]string{"backup", "h01", "passed", ""}, [4]string{"backup", "h02", "passed", ""}, raid)},
		{
			PreConfig: func() { script(t, filepath.Join(dir, "checks"), "alarms", "echo one alarm; exit 1") },
			Config:    server.Config(simulated, startChecks, health),
			Check:     has("false", [4]string{"alarms", "", "failed", "passed 0 of 1 times in a row within 1s, in 1 try; the last failed try: one alarm: exit status 1"}, [4]string{"backup", "h01", "passed", ""}, [4]string{"backup", "h02", "passed", ""}, raid),
		},
		// Each read waits half a minute for the host, so the first one of the step is the only one:
		// it tells all checks in the error of a postcondition.
		{
			PreConfig: powerOff,
			Config:    server.Config(simulated, startChecks, healthOrError),
			ExpectError: spoken("default is not ok: alarms passed, backup of h01 passed, " +
				"backup of h02 failed: no outcome within 31s; its worker may be silent, or older than these checks, " +
				"raid not asked: no host of the run matches it."),
		},
	}})
	if runs, err := api.Runs(t.Context(), acctest.Tenant, v1.RunFilter{}); err != nil || len(runs) != 1 {
		t.Errorf("there are the runs %+v, %v; the test started one", runs, err)
	}
}

// TestHealthData_refused: a tenant without a configuration, and a name that is none.
func TestHealthData_refused(t *testing.T) {
	t.Parallel()
	site := realagent.StartSite(t, acctest.Tenant)
	of := func(environment string) string {
		return "data \"osupgrade_health\" \"all\" {\n environment = \"" + environment + "\"\n}\n"
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: site.Config("data \"osupgrade_health\" \"all\" {}\n"), ExpectError: spoken("Unable to read osupgrade_health")},
		{Config: site.Config(simulated), Check: resource.TestCheckResourceAttr("osupgrade_config.all", "tenant", acctest.Tenant)},
		{Config: site.Config(simulated, of("chur")), ExpectError: spoken("there is no environment chur")},
		{Config: site.Config(simulated, of("Chur")), PlanOnly: true, ExpectError: spoken(`"Chur" is not a name`)},
		{Config: site.Config(simulated)},
	}})
}
