package config_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// owner is a resource that owns the windows only.
func owner(windows string) string { return block("maintenance_windows = [" + windows + "]") }

// onPut makes one edit just before each of the next PUTs of an apply.
func onPut(api *fakeapi.Server, edits ...func(*v1.OSUpgrade)) do {
	return func() { api.Inject(http.MethodPut, "", beforeWrites(api, edits)) }
}

// beforeWrites makes one of the edits before each write, in order. Dry runs do not
// count.
func beforeWrites(api *fakeapi.Server, edits []func(*v1.OSUpgrade)) fakeapi.Fault {
	return func(serve http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			left := edits
			if r.URL.Query().Get("validate") != "true" {
				api.EditConfig(acctest.Tenant, edits[0])
				left = edits[1:]
			}
			if len(left) > 0 {
				api.Inject(http.MethodPut, "", beforeWrites(api, left))
			}
			serve.ServeHTTP(w, r)
		})
	}
}

func foreignApplications(name string) func(*v1.OSUpgrade) {
	return func(c *v1.OSUpgrade) { c.WorkerApplications = apps(name) }
}

func foreignWindows(c *v1.OSUpgrade) {
	c.MaintenanceWindows = []v1.MaintenanceWindow{{DaysOfWeek: "Sunday", StartTime: "12:00", Duration: "1h"}}
}

func TestAccConfig_mergesWhatOthersWriteMeanwhile(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(owner(windowA))},
		{
			Config:           server.Config(owner(windowB)),
			ConfigPlanChecks: expect(onPut(api, foreignApplications("one"), foreignApplications("two"))),
			Check:            stored(api, v1.OSUpgrade{WorkerApplications: apps("two"), MaintenanceWindows: []v1.MaintenanceWindow{apiB}}),
		},
	}})
}

func TestAccConfig_givesUpWhenOthersNeverStop(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	edits := []func(*v1.OSUpgrade){}
	for _, name := range strings.Split("abcdefghij", "") {
		edits = append(edits, foreignApplications(name))
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(owner(windowA))},
		{
			Config:           server.Config(owner(windowB)),
			ConfigPlanChecks: expect(onPut(api, edits...)),
			ExpectError:      regexp.MustCompile(`each\s+of\s+10\s+tries`),
		},
		{
			Config:           server.Config(owner(windowA)),
			ConfigPlanChecks: emptyPlan(),
			Check:            stored(api, v1.OSUpgrade{WorkerApplications: apps("j"), MaintenanceWindows: []v1.MaintenanceWindow{apiA}}),
		},
	}})
}

func TestAccConfig_refusesToOverwriteWhatChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*fakeapi.Server) do{
		"just before the apply": func(api *fakeapi.Server) do {
			return func() { api.EditConfig(acctest.Tenant, foreignWindows) }
		},
		"just before the write": func(api *fakeapi.Server) do { return onPut(api, foreignWindows) },
	} {
		for kind, body := range map[string][2]string{
			"owner of all":          {complete, `worker_applications = ["other"]` + "\n maintenance_windows = [" + windowB + "]"},
			"owner of one":          {"maintenance_windows = [" + windowA + "]", "maintenance_windows = [" + windowB + "]"},
			"also with overwriting": {complete, "overwrite_existing = true\n maintenance_windows = [" + windowB + "]"},
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				api, server := acctest.Fake(t)
				acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
					{Config: server.Config(block(body[0]))},
					{
						Config:           server.Config(block(body[1])),
						ConfigPlanChecks: expect(change(api)),
						ExpectError:      regexp.MustCompile(`(?s)Somebody else changed maintenance_windows.*when planned:.*on the server now:\s+- Sunday from\s+12:00.*Run plan again`),
					},
					// The remedy: plan again, and decide.
					{Config: server.Config(block(body[1]))},
				}})
			})
		}
	}
}

func TestAccConfig_theSameChangeByOthersIsFine(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	same := func(c *v1.OSUpgrade) { c.MaintenanceWindows = []v1.MaintenanceWindow{apiB} }
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(owner(windowA))},
		{
			Config:           server.Config(owner(windowB)),
			ConfigPlanChecks: expect(onPut(api, same)),
			Check:            stored(api, v1.OSUpgrade{MaintenanceWindows: []v1.MaintenanceWindow{apiB}}),
		},
	}})
}

func TestAccConfig_createdByOthersMeanwhile(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:           server.Config(block(complete)),
		ConfigPlanChecks: expect(onPut(api, foreignWindows)),
		ExpectError:      regexp.MustCompile(`acme has maintenance_windows\s+already`),
	}}})
}

func TestAccConfig_withoutETags(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.NoETags()
	api.EmptyWhenAbsent()
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			Config:           server.Config(owner(windowB)),
			ConfigPlanChecks: expect(do(func() { api.EditConfig(acctest.Tenant, foreignWindows) })),
			ExpectError:      regexp.MustCompile(`Somebody else changed maintenance_windows`),
		},
		{Config: server.Config(block("worker_applications = []\n maintenance_windows = [" + windowB + "]"))},
	}})
	for _, r := range api.Requests() {
		if values, there := r.Header["If-Match"]; there && values[0] == "" {
			t.Errorf("%s %s has an empty If-Match", r.Method, r.Path)
		}
	}
}
