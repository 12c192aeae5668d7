package config_test

import (
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestAccConfigDataSource(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Avassa()
	api.SetConfigBody(acctest.Tenant, `{"future-key":1,"worker-applications":[{"name":"b"},{"name":"a"}],
		"maintenance-windows":[{"days-of-week":"Friday, Saturday","start-time":"01:00","duration":"240m"}]}`)
	const address = "data.osupgrade_config.acme"
	has := func(attribute, value string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr(address, attribute, value)
	}
	config := server.Config(`data "osupgrade_config" "acme" {}`)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: config,
			Check: resource.ComposeAggregateTestCheckFunc(
				has("tenant", "acme"), has("worker_applications.#", "2"), has("maintenance_windows.#", "1"), has("maintenance_windows.0.days_of_week.#", "2"),
				has("maintenance_windows.0.start_time", "01:00"), has("maintenance_windows.0.timezone", "site-local"), has("maintenance_windows.0.duration", "240m"),
			),
		},
		{
			PreConfig: func() { api.SetConfig(acctest.Tenant, v1.OSUpgrade{}) },
			Config:    config,
			Check:     resource.ComposeAggregateTestCheckFunc(has("worker_applications.#", "0"), has("maintenance_windows.#", "0")),
		},
		{
			PreConfig:   func() { api.RemoveConfig(acctest.Tenant) },
			Config:      config,
			ExpectError: regexp.MustCompile(`(?s)Unable to read osupgrade_config.*tenant\s+exists,\s+but\s+not\s+what`),
		},
	}})
}
