package config_test

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

func TestAccConfig_driftOfEveryAttributeIsPutBack(t *testing.T) {
	t.Parallel()
	drifts := map[string]func(*v1.OSUpgrade){
		"application replaced": func(c *v1.OSUpgrade) { c.WorkerApplications = apps("other") },
		"applications gone":    func(c *v1.OSUpgrade) { c.WorkerApplications = nil },
		"days":                 func(c *v1.OSUpgrade) { c.MaintenanceWindows[0].DaysOfWeek = "Sunday" },
		"start time":           func(c *v1.OSUpgrade) { c.MaintenanceWindows[0].StartTime = "02:00" },
		"timezone":             func(c *v1.OSUpgrade) { c.MaintenanceWindows[1].Timezone = "Europe/Stockholm" },
		"duration":             func(c *v1.OSUpgrade) { c.MaintenanceWindows[1].Duration = "3h" },
		"window removed":       func(c *v1.OSUpgrade) { c.MaintenanceWindows = c.MaintenanceWindows[1:] },
		"all windows gone":     func(c *v1.OSUpgrade) { c.MaintenanceWindows = nil },
		"a window that our rules cannot read": func(c *v1.OSUpgrade) {
			c.MaintenanceWindows = append(c.MaintenanceWindows, v1.MaintenanceWindow{DaysOfWeek: "Mon-Fri", StartTime: "1", Timezone: "+02:00", Duration: "1w"})
		},
	}
	api, server := acctest.Fake(t)
	want := v1.OSUpgrade{WorkerApplications: apps("os-upgrade-debian"), MaintenanceWindows: []v1.MaintenanceWindow{apiA, apiB}}
	steps := []resource.TestStep{{Config: server.Config(block(complete))}}
	for name, edit := range drifts {
		steps = append(steps, resource.TestStep{
			PreConfig: func() {
				t.Log(name)
				api.EditConfig(acctest.Tenant, edit)
			},
			Config:           server.Config(block(complete)),
			ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			Check:            stored(api, want),
		})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func TestAccConfig_disappears(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			PreConfig:        func() { api.RemoveConfig(acctest.Tenant) },
			Config:           server.Config(block(complete)),
			ConfigPlanChecks: action(plancheck.ResourceActionCreate),
		},
	}})
}

func TestAccConfig_foreign404IsProvedByTheState(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			PreConfig: func() {
				api.RemoveConfig(acctest.Tenant)
				api.Inject(http.MethodGet, "/os-upgrade", fakeapi.Status(http.StatusNotFound, "no such object"))
			},
			Config:           server.Config(block(complete)),
			ConfigPlanChecks: action(plancheck.ResourceActionCreate),
		},
	}})
}

func TestAccConfig_isNotForgottenWithoutProof(t *testing.T) {
	t.Parallel()
	notFound := fakeapi.Status(http.StatusNotFound, "no such object")
	rows := map[string]struct {
		faults []fakeapi.Fault
		says   string
	}{
		"the tenant does not exist":     {[]fakeapi.Fault{fakeapi.Status(http.StatusNotFound, `tenant "acme" does not exist`)}, `does not exist`},
		"neither is there":              {[]fakeapi.Fault{notFound, notFound}, `no such object`},
		"a proxy answers 404":           {[]fakeapi.Fault{fakeapi.Raw(http.StatusNotFound, "text/html", "<html>nothing here</html>")}, `nothing here`},
		"the token is wrong":            {[]fakeapi.Fault{fakeapi.Status(http.StatusUnauthorized, "token expired")}, `OSUPGRADE_TOKEN`},
		"the token may not":             {[]fakeapi.Fault{fakeapi.Status(http.StatusForbidden, "not for you")}, `does not permit`},
		"the server fails":              {[]fakeapi.Fault{fakeapi.Status(500, "broken"), fakeapi.Status(500, "broken")}, `broken`},
		"the answer is not JSON":        {[]fakeapi.Fault{fakeapi.Raw(http.StatusOK, "text/html", "<html>login</html>")}, `login`},
		"the answer is cut":             {[]fakeapi.Fault{fakeapi.Truncate()}, `GET`},
		"the connection is closed":      {[]fakeapi.Fault{fakeapi.CloseBefore(), fakeapi.CloseBefore()}, `endpoint`},
		"the server is not ready":       {[]fakeapi.Fault{fakeapi.Status(503, "starting"), fakeapi.Status(503, "starting")}, `starting`},
		"the server is sealed":          {[]fakeapi.Fault{fakeapi.Status(503, "strongbox sealed")}, `unseal`},
		"an error body that is no JSON": {[]fakeapi.Fault{fakeapi.Raw(502, "text/html", "<html>bad gateway</html>"), fakeapi.Raw(502, "text/html", "<html>bad gateway</html>")}, `bad gateway`},
	}
	api, server := acctest.Fake(t)
	steps := []resource.TestStep{{Config: server.Config(block(complete))}}
	for name, row := range rows {
		steps = append(steps, resource.TestStep{
			PreConfig: func() {
				t.Log(name)
				api.Inject(http.MethodGet, "", row.faults...)
			},
			Config:      server.Config(block(complete)),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(row.says),
		}, resource.TestStep{Config: server.Config(block(complete)), ConfigPlanChecks: emptyPlan()})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
	if left := api.Pending(); left > 0 {
		t.Errorf("%d faults met no request", left)
	}
}

func TestAccConfig_passingTroubleIsRetried(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]fakeapi.Fault{
		"too many requests":  fakeapi.RetryAfter(http.StatusTooManyRequests, "0"),
		"not ready":          fakeapi.RetryAfter(http.StatusServiceUnavailable, "0"),
		"lost answer":        fakeapi.CloseAfter(),
		"closed connection":  fakeapi.CloseBefore(),
		"failure afterwards": fakeapi.StatusAfter(http.StatusBadGateway, "gone away"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
				{
					Config:           server.Config("# validate_at_plan is on, which takes a PUT too", block(complete)),
					ConfigPlanChecks: expect(do(func() { api.Inject(http.MethodPut, "", fault) })),
					Check:            stored(api, v1.OSUpgrade{WorkerApplications: apps("os-upgrade-debian"), MaintenanceWindows: []v1.MaintenanceWindow{apiA, apiB}}),
				},
				{Config: server.Config(block(complete)), ConfigPlanChecks: emptyPlan()},
			}})
		})
	}
}
