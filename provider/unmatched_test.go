package provider_test

import (
	"strings"
	"testing"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

// TestUnmatched_isToldAtPlan: a plan that changes an object warns of what in it matches no
// host that the server knows, at its attribute, and of nothing that the resource does not own.
func TestUnmatched_isToldAtPlan(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	w := acctest.NewWorkspace(t, server.Env()...)
	w.Write(t, "main.tf", acctest.Requirement+`
resource "osupgrade_config" "acme" {
  maintenance_windows = [{ days_of_week = ["Friday"], start_time = "21:00", duration = "4h" }]
}
resource "osupgrade_rollout" "acme" {
  stages = [
    { name = "canary", match = { hosts = ["h09"], roles = ["egde"] } },
    { name = "rest" },
  ]
}
`)
	plan := func() map[string][]string {
		return acctest.Diagnostics(t, planned(w.Run(t, 0, "plan", "-json")))
	}
	api.SetConfig(acctest.Tenant, v1.OSUpgrade{WorkerApplications: []v1.WorkerApplication{{Name: "foreign"}}})
	if told := plan(); len(told["osupgrade_config.acme"])+len(told["osupgrade_rollout.acme"]) > 0 {
		t.Errorf("of a tenant without hosts it says %q", told)
	}
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01", Application: "app", Role: "edge"})
	told := plan()
	all := strings.Join(told["osupgrade_rollout.acme"], "\n")
	for _, part := range []string{
		"No known host matches\nAttribute: stages[0].match.hosts\nThe server says: no known host is named \"h09\"",
		"No known host matches\nAttribute: stages[0].match.roles\nThe server says: no known host has role \"egde\"; did you mean edge?",
	} {
		if !strings.Contains(all, part) {
			t.Errorf("no %q in\n%s", part, all)
		}
	}
	if of := told["osupgrade_config.acme"]; len(of) > 0 {
		t.Errorf("of applications that it does not own it says %q", of)
	}
}
