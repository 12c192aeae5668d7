package config_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestAccConfig_otherSpellingIsNoChange(t *testing.T) {
	t.Parallel()
	spellings := map[string]string{
		"reordered":          windowB + ", " + windowA,
		"other case of days": `{ days_of_week = ["SATURDAY", "friday"], start_time = "01:00", timezone = "site-local", duration = "4h" }, ` + windowB,
		"other duration":     `{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", timezone = "site-local", duration = "240m" }, ` + windowB,
		"default timezone":   `{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = "4h" }, ` + windowB,
		"all at once": `{ days_of_week = ["monday"], start_time = "22:30", timezone = "UTC", duration = "120m" },
		                { days_of_week = ["Saturday", "FRIDAY"], start_time = "01:00", duration = "3h60m" }`,
	}
	api, server := acctest.Fake(t)
	steps := []resource.TestStep{{Config: server.Config(block(complete))}}
	for name, windows := range spellings {
		steps = append(steps, resource.TestStep{
			PreConfig: func() {
				t.Log(name)
				api.ForgetRequests()
			},
			Config:           server.Config(block(`worker_applications = ["os-upgrade-debian"]` + "\n maintenance_windows = [" + windows + "]")),
			ConfigPlanChecks: emptyPlan(),
			Check:            asked(api, http.MethodPut, 0),
		})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func TestAccConfig_onlyTheRealChangeIsShown(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			Config: server.Config(block(`
  worker_applications = ["os-upgrade-rhel"]
  maintenance_windows = [` + windowB + ", " + windowA + "]")),
			ConfigPlanChecks: expect(
				plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate),
				unchangedAttribute("maintenance_windows"),
			),
		},
	}})
}

func TestAccConfig_serverReordersAndRespells(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Render(func(c v1.OSUpgrade) v1.OSUpgrade {
		slices.Reverse(c.MaintenanceWindows)
		for i := range c.MaintenanceWindows {
			if c.MaintenanceWindows[i].Duration == "4h" {
				c.MaintenanceWindows[i].Duration = "240m"
			}
		}
		return c
	})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{Config: server.Config(block(complete)), ConfigPlanChecks: emptyPlan()},
		{ResourceName: address, ImportState: true, ImportStateId: acctest.Tenant, ImportStateKind: resource.ImportBlockWithID},
	}})
}

func TestAccConfig_refreshAsksOnceAndWritesNothing(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			PreConfig:    api.ForgetRequests,
			RefreshState: true,
			Check: resource.ComposeAggregateTestCheckFunc(
				asked(api, http.MethodGet, 1), asked(api, http.MethodPut, 0), asked(api, http.MethodDelete, 0),
			),
		},
	}})
}

func TestAccConfig_updateUsesTheVersionThatThePlanRead(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			// Another version of the same content.
			PreConfig:        func() { api.EditConfig(acctest.Tenant, func(*v1.OSUpgrade) {}) },
			Config:           server.Config(block("worker_applications = []\n maintenance_windows = [" + windowB + "]")),
			ConfigPlanChecks: expect(do(api.ForgetRequests)),
			// The one GET reads back what was written.
			Check: resource.ComposeAggregateTestCheckFunc(asked(api, http.MethodGet, 1), asked(api, http.MethodPut, 1)),
		},
	}})
}
