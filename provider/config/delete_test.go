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

// nothing is a configuration without the resource, which deletes it.
const nothing = "# nothing"

func TestAccConfig_deleteWaitsForTheRunUnderWay(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{CheckDestroy: absent(api), Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			PreConfig: func() {
				id := api.AddRun(acctest.Tenant, v1.Run{Phase: "upgrading"})
				go func() {
					api.AwaitStreams(1)
					api.FinishRun(acctest.Tenant, id, "completed", "")
				}()
			},
			Config: server.Config(nothing),
			Check:  resource.ComposeAggregateTestCheckFunc(absent(api), asked(api, http.MethodDelete, 2)),
		},
	}})
}

func TestAccConfig_deleteGivesUpInTime(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		// The answer that names the run, and later the deletion, must arrive within
		// the timeout, however busy the machine is.
		{Config: server.Config(block(complete + "\n timeouts = { delete = \"5s\" }"))},
		{
			PreConfig:   func() { api.AddRun(acctest.Tenant, v1.Run{Phase: "upgrading"}) },
			Config:      server.Config(nothing),
			ExpectError: regexp.MustCompile(`(?s)Unable to delete osupgrade_config.*run 41.*timeouts`),
		},
		{
			PreConfig: func() { api.FinishRun(acctest.Tenant, 41, "failed", "") },
			Config:    server.Config(nothing),
			Check:     absent(api),
		},
	}})
}

// TestAccConfig_deleteRefusesWhatChangedSinceThePlan also checks the remedy. Terraform
// plans the deletion of a resource that is no longer configured from the state before
// the refresh, so another plan alone would fail again.
func TestAccConfig_deleteRefusesWhatChangedSinceThePlan(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		body string
		tags bool
	}{
		"owner of all":              {complete, true},
		"owner of one":              {"maintenance_windows = [" + windowA + "]", true},
		"of a server without ETags": {complete, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			if !row.tags {
				api.NoETags()
			}
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
				{Config: server.Config(block(row.body))},
				{
					Config:           server.Config(nothing),
					ConfigPlanChecks: expect(do(func() { api.EditConfig(acctest.Tenant, foreignWindows) })),
					ExpectError:      regexp.MustCompile(`(?s)Unable to delete.*Somebody else changed maintenance_windows`),
				},
				{Config: server.Config(nothing), Check: absent(api)},
			}})
		})
	}
}

func TestAccConfig_deleteOfWhatIsGone(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			Config:           server.Config(nothing),
			ConfigPlanChecks: expect(do(func() { api.RemoveConfig(acctest.Tenant) })),
			Check:            absent(api),
		},
	}})
}

func TestAccConfig_deleteWhoseAnswerIsLost(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: server.Config(block(complete))},
		{
			PreConfig: func() { api.Inject(http.MethodDelete, "", fakeapi.CloseAfter()) },
			Config:    server.Config(nothing),
			Check:     absent(api),
		},
	}})
}
