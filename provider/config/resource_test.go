package config_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const address = "osupgrade_config.test"

// windowA and windowB are two windows in Terraform, apiA and apiB in the API.
const (
	windowA = `{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", timezone = "site-local", duration = "4h" }`
	windowB = `{ days_of_week = ["Monday"], start_time = "22:30", timezone = "UTC", duration = "2h" }`
)

var (
	apiA = v1.MaintenanceWindow{DaysOfWeek: "Friday, Saturday", StartTime: "01:00", Timezone: "site-local", Duration: "4h"}
	apiB = v1.MaintenanceWindow{DaysOfWeek: "Monday", StartTime: "22:30", Timezone: "UTC", Duration: "2h"}
)

func apps(names ...string) []v1.WorkerApplication {
	list := []v1.WorkerApplication{}
	for _, name := range names {
		list = append(list, v1.WorkerApplication{Name: name})
	}
	return list
}

// block is the resource with this body.
func block(body string) string { return "resource \"osupgrade_config\" \"test\" {\n" + body + "\n}\n" }

const complete = `
  worker_applications = ["os-upgrade-debian"]
  maintenance_windows = [` + windowA + `, ` + windowB + `]`

func emptyPlan() resource.ConfigPlanChecks { return expect(plancheck.ExpectEmptyPlan()) }

func action(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return expect(plancheck.ExpectResourceAction(address, a))
}

func expect(checks ...plancheck.PlanCheck) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: checks}
}

func TestAccConfig_lifecycle(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{
		CheckDestroy: absent(api),
		Steps: []resource.TestStep{
			{
				Config: server.Config(block(complete)),
				Check:  stored(api, v1.OSUpgrade{WorkerApplications: apps("os-upgrade-debian"), MaintenanceWindows: []v1.MaintenanceWindow{apiA, apiB}}),
			},
			{
				Config: server.Config(block(`
  worker_applications = ["os-upgrade-debian", "os-upgrade-rhel"]
  maintenance_windows = [` + windowB + `]`)),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
				Check:            stored(api, v1.OSUpgrade{WorkerApplications: apps("os-upgrade-debian", "os-upgrade-rhel"), MaintenanceWindows: []v1.MaintenanceWindow{apiB}}),
			},
			{ResourceName: address, ImportState: true, ImportStateId: acctest.Tenant, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "tenant"},
			{ResourceName: address, ImportState: true, ImportStateId: acctest.Tenant, ImportStateKind: resource.ImportBlockWithID},
		},
	})
}
