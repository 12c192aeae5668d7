package config_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestAccConfig_wrongValuesAreToldAtPlan(t *testing.T) {
	t.Parallel()
	one := func(days, start, zone, length string) string {
		return "maintenance_windows = [{ days_of_week = " + days + ", start_time = \"" + start + "\", timezone = \"" + zone + "\", duration = \"" + length + "\" }]"
	}
	rows := map[string]struct{ body, says string }{
		"tenant":               {`tenant = "Acme"`, `"Acme"\s+is\s+not\s+a\s+name`},
		"application":          {`worker_applications = ["os_upgrade"]`, `"os_upgrade"\s+is\s+not\s+a\s+name`},
		"day":                  {one(`["Fryday"]`, "01:00", "UTC", "1h"), `Invalid value of maintenance_windows\[0\].days_of_week\s[^V]*"Fryday"`},
		"two days in one":      {one(`["Friday, Sunday"]`, "01:00", "UTC", "1h"), `more\s+than\s+one\s+day`},
		"day twice":            {one(`["Friday", "FRIDAY"]`, "01:00", "UTC", "1h"), `the\s+same\s+day`},
		"no day":               {one(`[]`, "01:00", "UTC", "1h"), `at\s+least\s+1`},
		"start time":           {one(`["Friday"]`, "25:00", "UTC", "1h"), `(?s)start_time.*"25:00"\s+is\s+not\s+a\s+time\s+of\s+day`},
		"timezone":             {one(`["Friday"]`, "01:00", "Europe/Stokholm", "1h"), `Stokholm`},
		"empty timezone":       {one(`["Friday"]`, "01:00", "", "1h"), `omit\s+it`},
		"duration":             {one(`["Friday"]`, "01:00", "UTC", "1 hour"), `1 hour`},
		"duration too long":    {one(`["Friday"]`, "01:00", "UTC", "8d"), `1m\s+to\s+7d`},
		"same window twice":    {`maintenance_windows = [` + windowA + `, ` + windowB + `, { days_of_week = ["saturday", "friday"], start_time = "01:00", duration = "240m" }]`, `(?s)Duplicate maintenance window.*index\s+0`},
		"null among windows":   {`maintenance_windows = [null]`, `(?i)null`},
		"timeout without unit": {`timeouts = { create = "10" }`, `10`},
	}
	api, server := acctest.Fake(t)
	var steps []resource.TestStep
	for name, row := range rows {
		steps = append(steps, resource.TestStep{
			PreConfig:   func() { t.Log(name) },
			Config:      server.Config(block(row.body)),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(row.says),
		})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
	if n := len(api.Requests()); n > 0 {
		t.Errorf("the server had %d requests, want none", n)
	}
}

func TestAccConfig_theServerChecksThePlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.Accept(func(_ string, c v1.OSUpgrade) []v1.Error {
		var problems []v1.Error
		if len(c.MaintenanceWindows) == 2 {
			problems = append(problems, v1.Error{Message: "it is too short here", Info: v1.ErrorInfo{Field: "maintenance-windows[1].duration"}})
		}
		if len(c.WorkerApplications) == 1 {
			problems = append(problems, v1.Error{Message: "no such application", Info: v1.ErrorInfo{Field: "worker-applications[0].name"}})
		}
		return problems
	})
	windows := `maintenance_windows = [` + windowA + `,
` + windowB + `]`
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{
		{
			Config:      server.Config(block(windows)),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`(?s)would not accept osupgrade_config.*Attribute: maintenance_windows\[1\].duration.*it is too short here`),
		},
		{
			Config:      server.Config(block(`worker_applications = ["a"]`)),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`(?s)Attribute: worker_applications\s.*no such application`),
		},
	}})
	if _, _, ok := api.Config(acctest.Tenant); ok {
		t.Error("a plan has written")
	}
}

func TestAccConfig_aCheckThatFailsIsOnlyAWarning(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fakeapi.Fault{
		"token":           fakeapi.Status(http.StatusUnauthorized, "token expired"),
		"forbidden":       fakeapi.Status(http.StatusForbidden, "no"),
		"unknown tenant":  fakeapi.Status(http.StatusNotFound, `tenant "acme" does not exist`),
		"server failure":  fakeapi.Status(http.StatusNotImplemented, "what?"),
		"not a JSON body": fakeapi.Raw(http.StatusNotFound, "text/html", "<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			api.Inject(http.MethodPut, "", fault)
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
				Config: server.Config(block(complete)),
				Check:  stored(api, v1.OSUpgrade{WorkerApplications: apps("os-upgrade-debian"), MaintenanceWindows: []v1.MaintenanceWindow{apiA, apiB}}),
			}}})
		})
	}
}

func TestAccConfig_theCheckCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: acctest.Requirement + `
provider "osupgrade" {
  endpoint         = "` + server.Endpoint + `"
  token            = "` + server.Token + `"
  tenant           = "acme"
  validate_at_plan = false
}
` + block(complete),
	}}})
	if n := api.DryRuns(); n != 0 {
		t.Errorf("the server had %d dry runs, want none", n)
	}
}

func TestAccConfig_createForATenantThatDoesNotExist(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.OnlyTenants("beta")
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:      server.Config(block(complete)),
		ExpectError: regexp.MustCompile(`(?s)Unable to create osupgrade_config.*tenant "acme" does not exist`),
	}}})
}

func TestAccConfig_importIDs(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{ResourceName: address, ImportState: true, ImportStateId: "Acme!", ExpectError: regexp.MustCompile(`"Acme!" is not the name of a tenant`)},
		{ResourceName: address, ImportState: true, ImportStateId: "beta", ExpectError: regexp.MustCompile(`(?i)cannot import non-existent`)},
	}})
}
