package config_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestAccConfig_otherSpellingIsNoChange: each text is compared with the prior one of the
// same window.
func TestAccConfig_otherSpellingIsNoChange(t *testing.T) {
	t.Parallel()
	spellings := map[string]string{
		"other order of days": `{ days_of_week = ["Saturday", "Friday"], start_time = "01:00", timezone = "site-local", duration = "4h" }, ` + windowB,
		"other duration":      `{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", timezone = "site-local", duration = "240m" }, ` + windowB,
		"default timezone":    `{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = "4h" }, ` + windowB,
		"all at once": `{ days_of_week = ["Saturday", "Friday"], start_time = "01:00", duration = "3h60m" },
		                { days_of_week = ["Monday"], start_time = "22:30", timezone = "UTC", duration = "120m" }`,
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

// TestAccConfig_otherOrderWritesNothing: another order of windows and another case of a
// day are shown, because Terraform compares lists by position and sets by text, but they
// mean the same, and nothing is written.
func TestAccConfig_otherOrderWritesNothing(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(owner(windowA + ", " + windowB))},
		{
			PreConfig: api.ForgetRequests,
			Config: server.Config(owner(`{ days_of_week = ["monday"], start_time = "22:30", timezone = "UTC", duration = "2h" },
			                             { days_of_week = ["SATURDAY", "Friday"], start_time = "01:00", duration = "4h" }`)),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			Check:            asked(api, http.MethodPut, 0),
		},
	}})
}

// TestAccConfig_otherSpellingBesideAnUnknownValue: what a text is planned as does not
// depend on a value beside it that is unknown at plan and known at apply.
func TestAccConfig_otherSpellingBesideAnUnknownValue(t *testing.T) {
	t.Parallel()
	const out = "terraform_data.later.output"
	for name, row := range map[string]struct{ value, windows string }{
		"in another window": {`"22:30"`, `{ days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = "240m" },
		                                   { days_of_week = ["Monday"], start_time = ` + out + `, timezone = "UTC", duration = "2h" }`},
		"in the same window": {`"01:00"`, `{ days_of_week = ["Friday", "Saturday"], start_time = ` + out + `, timezone = "site-local", duration = "240m" }, ` + windowB},
		"a day of the week":  {`"Saturday"`, `{ days_of_week = ["FRIDAY", ` + out + `], start_time = "01:00", duration = "240m" }, ` + windowB},
		"reordered":          {`"240m"`, windowB + `, { days_of_week = ["Friday", "Saturday"], start_time = "01:00", duration = ` + out + ` }`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, server := acctest.Fake(t)
			config := server.Config(later(row.value), owner(row.windows))
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: server.Config(owner(windowA + ", " + windowB))},
				{Config: config},
				{Config: config, ConfigPlanChecks: emptyPlan()},
			}})
		})
	}
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
	}})
}

func TestAccConfig_importsOtherSpelling(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Render(func(c v1.OSUpgrade) v1.OSUpgrade {
		c.MaintenanceWindows[0].Duration, c.MaintenanceWindows[0].Timezone = "240m", ""
		return c
	})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
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
			Check:            resource.ComposeAggregateTestCheckFunc(asked(api, http.MethodGet, 0), asked(api, http.MethodPut, 1)),
		},
	}})
}
