package config_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// later is terraform_data.later, a value that is unknown before the apply.
func later(value string) string {
	return "resource \"terraform_data\" \"later\" {\n input = " + value + "\n}\n"
}

func TestAccConfig_valuesThatAreNotKnownYet(t *testing.T) {
	t.Parallel()
	known := v1.OSUpgrade{WorkerApplications: apps("os-upgrade-debian"), MaintenanceWindows: []v1.MaintenanceWindow{apiA}}
	window := func(days, start, zone, length string) string {
		return "worker_applications = [\"os-upgrade-debian\"]\n maintenance_windows = [{ days_of_week = " + days +
			", start_time = " + start + ", timezone = " + zone + ", duration = " + length + " }]"
	}
	const days, start, zone, length = `["Friday", "Saturday"]`, `"01:00"`, `"site-local"`, `"4h"`
	const out = "terraform_data.later.output"
	for name, row := range map[string]struct {
		value, body, attribute string
	}{
		"days":         {days, window(out, start, zone, length), "maintenance_windows"},
		"one day":      {`"Friday"`, window(`[`+out+`, "Saturday"]`, start, zone, length), "maintenance_windows"},
		"start time":   {start, window(days, out, zone, length), "maintenance_windows"},
		"timezone":     {zone, window(days, start, out, length), "maintenance_windows"},
		"duration":     {length, window(days, start, zone, out), "maintenance_windows"},
		"application":  {`"os-upgrade-debian"`, "worker_applications = [" + out + "]\n maintenance_windows = [" + windowA + "]", "worker_applications"},
		"applications": {`toset(["os-upgrade-debian"])`, "worker_applications = " + out + "\n maintenance_windows = [" + windowA + "]", "worker_applications"},
		"all windows": {
			"[" + windowA + "]",
			"worker_applications = [\"os-upgrade-debian\"]\n maintenance_windows = " + out, "maintenance_windows",
		},
		"tenant": {`"acme"`, "tenant = " + out + "\n worker_applications = [\"os-upgrade-debian\"]\n maintenance_windows = [" + windowA + "]", "tenant"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			config := server.Config(later(row.value), block(row.body))
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: config, Check: stored(api, known)},
				{Config: config, ConfigPlanChecks: emptyPlan()},
			}})
		})
	}
}

func TestAccConfig_providerThatIsNotKnownYet(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	config := acctest.Requirement + later(`{ endpoint = "`+server.Endpoint+`", tenant = "acme", token = "`+server.Token+`" }`) + `
provider "osupgrade" {
  endpoint = terraform_data.later.output.endpoint
  tenant   = terraform_data.later.output.tenant
  token    = terraform_data.later.output.token
}
` + owner(windowA)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:           config,
			ConfigPlanChecks: expect(plancheck.ExpectUnknownValue(address, tfjsonpath.New("tenant"))),
			Check:            stored(api, v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{apiA}}),
		},
		{Config: config, ConfigPlanChecks: emptyPlan()},
	}})
}

func TestAccConfig_needsAProviderThatIsKnown(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(owner(windowA))},
		{
			Config: acctest.Requirement + later(`"`+server.Endpoint+`"`) + `
provider "osupgrade" {
  endpoint = terraform_data.later.output
  tenant   = "acme"
  token    = "` + server.Token + `"
}
` + owner(windowA),
			ExpectError: regexp.MustCompile(`(?s)not\s+known\s+yet:\s+endpoint.*environment\s+variables\s+do\s+not\s+replace`),
		},
		{Config: server.Config(owner(windowA)), ConfigPlanChecks: emptyPlan()},
	}})
}
