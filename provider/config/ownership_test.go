package config_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestAccConfig_nullEmptyAndValues(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	have := func(body string, want v1.OSUpgrade) resource.TestStep {
		return resource.TestStep{Config: server.Config(block(body)), Check: stored(api, want)}
	}
	values := "maintenance_windows = [" + windowA + "]"
	withA := []v1.MaintenanceWindow{apiA}
	acctest.Run(t, resource.TestCase{CheckDestroy: stored(api, v1.OSUpgrade{WorkerApplications: apps(), MaintenanceWindows: withA}), Steps: []resource.TestStep{
		{Config: server.Config(block("")), PlanOnly: true, ExpectError: regexp.MustCompile(`(?s)At least one of these attributes must be configured.*worker_applications`)},
		have("maintenance_windows = []", v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}),
		have(values, v1.OSUpgrade{MaintenanceWindows: withA}),
		have(values, v1.OSUpgrade{MaintenanceWindows: withA}),
		have("maintenance_windows = []", v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{}}),
		have(values, v1.OSUpgrade{MaintenanceWindows: withA}),
		have(`worker_applications = ["a"]`, v1.OSUpgrade{WorkerApplications: apps("a"), MaintenanceWindows: withA}),
		have(`worker_applications = []`, v1.OSUpgrade{WorkerApplications: apps(), MaintenanceWindows: withA}),
	}})
}

func TestAccConfig_leavesAloneWhatItDoesNotManage(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	foreign := v1.OSUpgrade{WorkerApplications: apps("theirs")}
	api.SetConfig(acctest.Tenant, foreign)
	acctest.Run(t, resource.TestCase{
		CheckDestroy: stored(api, v1.OSUpgrade{WorkerApplications: apps("theirs2"), MaintenanceWindows: []v1.MaintenanceWindow{}}),
		Steps: []resource.TestStep{
			{
				Config: server.Config(owner(windowA)),
				Check:  stored(api, v1.OSUpgrade{WorkerApplications: apps("theirs"), MaintenanceWindows: []v1.MaintenanceWindow{apiA}}),
			},
			{
				PreConfig:        func() { api.EditConfig(acctest.Tenant, foreignApplications("theirs2")) },
				Config:           server.Config(owner(windowA)),
				ConfigPlanChecks: emptyPlan(),
			},
		},
	})
}

func TestAccConfig_twoResourcesShareATenant(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{{
		Config: server.Config(owner(windowA), `
resource "osupgrade_config" "applications" {
  worker_applications = ["os-upgrade-debian"]
}`),
		Check: stored(api, v1.OSUpgrade{WorkerApplications: apps("os-upgrade-debian"), MaintenanceWindows: []v1.MaintenanceWindow{apiA}}),
	}}})
}

func TestAccConfig_twoResourcesForOneListAreRefused(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{{
		Config: server.Config(owner(windowA), `
resource "osupgrade_config" "rival" {
  tenant              = "acme"
  maintenance_windows = [`+windowB+`]
}`),
		ExpectError: regexp.MustCompile(`Two resources manage maintenance_windows of one tenant`),
	}}})
}

// TestAccConfig_adopts: what is there already is refused in the plan, unless it is what the
// resource declares. Empty lists are nobody's.
func TestAccConfig_adopts(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	both := v1.OSUpgrade{WorkerApplications: apps("os-upgrade-debian"), MaintenanceWindows: []v1.MaintenanceWindow{apiB, apiA}}
	api.SetConfig(acctest.Tenant, both)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config:      server.Config(owner(windowA)),
			ExpectError: regexp.MustCompile(`(?s)has maintenance_windows\s+already.*import \{\s+to = osupgrade_config.example\s+id = "acme".*overwrite_existing = true`),
		},
		{Config: server.Config(block(complete)), Check: stored(api, both)},
		{Config: server.Config(nothing), Check: absent(api)},
		{
			PreConfig: func() {
				api.SetConfig(acctest.Tenant, v1.OSUpgrade{WorkerApplications: apps(), MaintenanceWindows: []v1.MaintenanceWindow{}})
			},
			Config: server.Config(block(complete)),
		},
	}})
}

func TestAccConfig_identicalBlocksAreRefused(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{{
		Config: server.Config(owner(windowA), `
resource "osupgrade_config" "twin" {
  maintenance_windows = [`+windowA+`]
}`),
		ExpectError: regexp.MustCompile(`Two resources manage maintenance_windows of one tenant`),
	}}})
}

func TestAccConfig_overwritesWhenTold(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{apiB}})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(block("overwrite_existing = true\n maintenance_windows = [" + windowA + "]")),
		Check:  stored(api, v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{apiA}}),
	}}})
}

func TestAccConfig_beginsToManageOnlyWhatIsEmpty(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(owner(windowA))},
		{
			PreConfig:   func() { api.EditConfig(acctest.Tenant, foreignApplications("theirs")) },
			Config:      server.Config(block(complete)),
			ExpectError: regexp.MustCompile(`has worker_applications\s+already`),
		},
		{Config: server.Config(owner(windowA)), ConfigPlanChecks: emptyPlan()},
	}})
}

func TestAccConfig_anotherTenantReplaces(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	other := server
	other.Tenant = "beta"
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{
		{Config: server.Config(owner(windowA)), Check: resource.TestCheckResourceAttr(address, "tenant", "acme")},
		{
			Config:           other.Config(owner(windowA)),
			ConfigPlanChecks: action(plancheck.ResourceActionReplace),
			Check:            resource.ComposeAggregateTestCheckFunc(resource.TestCheckResourceAttr(address, "tenant", "beta"), absent(api)),
		},
		{
			Config:           other.Config(block("tenant = \"acme\"\n maintenance_windows = [" + windowA + "]")),
			ConfigPlanChecks: action(plancheck.ResourceActionReplace),
			Check:            stored(api, v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{apiA}}),
		},
	}})
}
