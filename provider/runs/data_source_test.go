package runs_test

import (
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const address = "data.osupgrade_runs.test"

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

func block(body string) string { return "data \"osupgrade_runs\" \"test\" {\n" + body + "\n}\n" }

func text(value string) knownvalue.Check { return knownvalue.StringExact(value) }

// withRuns returns a server with three runs, an hour apart: 41 is completed, 42 failed,
// 43 under way.
func withRuns(t *testing.T) (*fakeapi.Server, acctest.Server) {
	t.Helper()
	api, server := acctest.Fake(t)
	ended := noon.Add(time.Hour)
	api.AddRun(acctest.Tenant, v1.Run{
		Environment: "basel", Until: "canary", Phase: "finished", Result: "completed", Trigger: "window", OpenedAt: noon, EndedAt: &ended, NotAfter: noon.Add(4 * time.Hour),
		Hosts: []v1.RunHost{{Hostname: "h01", Status: "upgraded", UpToDate: true, Stage: "canary", Note: "its reboot was skipped"}},
	})
	api.AddRun(acctest.Tenant, v1.Run{
		WayBack: &v1.WayBack{Until: "complete", Closed: &ended},
		Phase:   "finished", Result: "failed", Reason: "h02 failed", Trigger: "manual", OpenedAt: noon.Add(time.Hour), EndedAt: &ended, NotAfter: noon.Add(5 * time.Hour),
		Hosts: []v1.RunHost{{Hostname: "h02", Status: "failed", Error: "no space left"}},
	})
	api.AddRun(acctest.Tenant, v1.Run{WayBack: &v1.WayBack{Until: "complete"}, Phase: "preparing", Trigger: "window", OpenedAt: noon.Add(2 * time.Hour), NotAfter: noon.Add(6 * time.Hour), Hosts: []v1.RunHost{}})
	return api, server
}

func TestAccRuns_complete(t *testing.T) {
	t.Parallel()
	_, server := withRuns(t)
	host := func(name, status string, failure, stage, note knownvalue.Check) knownvalue.Check {
		return knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
			"hostname": text(name), "status": text(status), "error": failure, "stage": stage, "note": note, "up_to_date": knownvalue.Bool(name == "h01"),
		})})
	}
	null := knownvalue.Null()
	back := func(closed knownvalue.Check) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{"until": text("complete"), "closed_at": closed})
	}
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config(block("")),
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(address, tfjsonpath.New("tenant"), text("acme")),
			statecheck.ExpectKnownValue(address, tfjsonpath.New("runs"), knownvalue.ListExact([]knownvalue.Check{
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"id": knownvalue.Int64Exact(43), "environment": null, "until": null, "phase": text("preparing"), "result": null, "reason": null, "trigger": text("window"),
					"opened_at": text("2026-11-27T14:00:00Z"), "ended_at": null, "not_after": text("2026-11-27T18:00:00Z"), "hosts": knownvalue.ListSizeExact(0),
					"way_back": back(null),
				}),
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"id": knownvalue.Int64Exact(42), "environment": null, "until": null, "phase": text("finished"), "result": text("failed"), "reason": text("h02 failed"), "trigger": text("manual"),
					"opened_at": text("2026-11-27T13:00:00Z"), "ended_at": text("2026-11-27T13:00:00Z"), "not_after": text("2026-11-27T17:00:00Z"),
					"hosts": host("h02", "failed", text("no space left"), null, null), "way_back": back(text("2026-11-27T13:00:00Z")),
				}),
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"id": knownvalue.Int64Exact(41), "environment": text("basel"), "until": text("canary"), "phase": text("finished"), "result": text("completed"), "reason": null, "trigger": text("window"),
					"opened_at": text("2026-11-27T12:00:00Z"), "ended_at": text("2026-11-27T13:00:00Z"), "not_after": text("2026-11-27T16:00:00Z"),
					"hosts": host("h01", "upgraded", null, text("canary"), text("its reboot was skipped")), "way_back": null,
				}),
			})),
		},
	}}})
}

func TestAccRuns_filters(t *testing.T) {
	t.Parallel()
	_, server := withRuns(t)
	var steps []resource.TestStep
	for body, ids := range map[string][]int64{
		`result = "failed"`:                           {42},
		`host = "h01"`:                                {41},
		`host = "h09"`:                                {},
		`environment = "basel"`:                       {41},
		`environment = "default"`:                     {43, 42},
		`since = "2026-11-27T15:00:00+02:00"`:         {43, 42},
		`until = "2026-11-27T13:00:00Z"`:              {41},
		`limit = 2`:                                   {43, 42},
		"result = \"completed\"\n host = \"h02\"":     {},
		"since = \"2026-11-27T12:30:00Z\"\nlimit = 1": {43},
	} {
		var want []knownvalue.Check
		for _, id := range ids {
			want = append(want, knownvalue.ObjectPartial(map[string]knownvalue.Check{"id": knownvalue.Int64Exact(id)}))
		}
		steps = append(steps, resource.TestStep{
			PreConfig:         func() { t.Log(body) },
			Config:            server.Config(block(body)),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("runs"), knownvalue.ListExact(want))},
		})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
}

func TestAccRuns_wrongFilters(t *testing.T) {
	t.Parallel()
	api, server := withRuns(t)
	var steps []resource.TestStep
	for body, says := range map[string]string{
		`environment = "Basel"`: `"Basel"\s+is\s+not\s+a\s+name`,
		`result = "good"`:       `(?s)value of result.*use\s+completed,\s+partial`,
		`host = "h 1"`:          `(?s)value of host.*not\s+the\s+name\s+of\s+a\s+host`,
		`since = "yesterday"`:   `(?s)Invalid RFC3339.*yesterday`,
		`until = "2026-11-27"`:  `(?s)Invalid RFC3339.*2026-11-27`,
		`limit = 1001`:          `(?s)1001\s+is\s+out\s+of\s+range;\s+use\s+a\s+whole\s+number\s+from\s+1\s+to\s+1000`,
		`limit = 0`:             `(?s)0\s+is\s+out\s+of\s+range;\s+use\s+a\s+whole\s+number\s+from\s+1\s+to\s+1000`,
		"since = \"2026-11-27T12:00:00Z\"\n until = \"2026-11-27T12:00:00Z\"": `(?s)value of until.*not\s+after\s+since`,
		`tenant = "Acme"`: `is\s+not\s+a\s+name`,
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(block(body)), PlanOnly: true, ExpectError: regexp.MustCompile(says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
	if n := len(api.Requests()); n > 0 {
		t.Errorf("the server had %d requests, want none", n)
	}
}

func TestAccRuns_whatCannotBeRead(t *testing.T) {
	t.Parallel()
	api, server := withRuns(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{
			PreConfig:   func() { api.Inject(http.MethodGet, "/runs", fakeapi.Status(http.StatusForbidden, "not for you")) },
			Config:      server.Config(block("")),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`(?s)Unable to read osupgrade_runs.*not for you`),
		},
		{
			PreConfig:   func() { api.Inject(http.MethodGet, "/runs/42", fakeapi.Status(http.StatusForbidden, "not for you")) },
			Config:      server.Config(block("")),
			PlanOnly:    true,
			ExpectError: regexp.MustCompile(`(?s)Unable to read osupgrade_runs.*runs/42.*not for you`),
		},
		{
			// The server deletes a run after it has listed it.
			PreConfig: func() {
				api.Inject(http.MethodGet, "/runs/42", fakeapi.Status(http.StatusNotFound, `tenant "acme" has no run 42`))
			},
			Config:            server.Config(block("result = \"failed\"")),
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("runs").AtSliceIndex(0).AtMapKey("hosts"), knownvalue.ListSizeExact(0))},
		},
	}})
}
