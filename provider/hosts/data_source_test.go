package hosts_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const address = "data.osupgrade_hosts.test"

func text(value string) knownvalue.Check { return knownvalue.StringExact(value) }

func TestAccHosts_complete(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	at := time.Date(2026, 11, 27, 1, 0, 0, 500, time.UTC)
	api.SetHosts(acctest.Tenant,
		v1.Host{Hostname: "h02", Application: "a"},
		v1.Host{
			Hostname: "h01", Application: "a", Online: true, LastSeen: &at, AgentVersion: "1.2.3",
			Role: "db", Labels: map[string]string{"ring": "0"},
			Versions: map[string]string{"kernel": "6.12"}, VersionsAt: &at,
			LastRun: &v1.HostRun{ID: 41, Phase: "finished", Result: "partial", Status: "failed", Class: "space"}, OutdatedSince: &at,
		})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config("data \"osupgrade_hosts\" \"test\" {\n site = \"north\"\n}\n"),
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(address, tfjsonpath.New("tenant"), text("acme")),
			statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts"), knownvalue.ListExact([]knownvalue.Check{
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"hostname": text("h01"), "application": text("a"), "online": knownvalue.Bool(true),
					"last_seen": text("2026-11-27T01:00:00.0000005Z"), "agent_version": text("1.2.3"),
					"role": text("db"), "labels": knownvalue.MapExact(map[string]knownvalue.Check{"ring": text("0")}),
					"versions": knownvalue.MapExact(map[string]knownvalue.Check{"kernel": text("6.12")}), "versions_at": text("2026-11-27T01:00:00.0000005Z"),
					"last_run": knownvalue.Int64Exact(41), "last_run_status": text("failed"), "last_run_class": text("space"), "outdated_since": text("2026-11-27T01:00:00.0000005Z"),
				}),
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"hostname": text("h02"), "application": text("a"), "online": knownvalue.Bool(false),
					"last_seen": knownvalue.Null(), "agent_version": knownvalue.Null(), "role": knownvalue.Null(), "labels": knownvalue.Null(), "versions": knownvalue.Null(), "versions_at": knownvalue.Null(),
					"last_run": knownvalue.Null(), "last_run_status": knownvalue.Null(), "last_run_class": knownvalue.Null(), "outdated_since": knownvalue.Null(),
				}),
			})),
		},
	}}})
	for _, r := range api.Requests() {
		if r.Query.Get("site") != "north" {
			t.Errorf("asked for %s?%s", r.Path, r.Query.Encode())
		}
	}
}

func TestAccHosts_none(t *testing.T) {
	t.Parallel()
	_, server := acctest.Fake(t)
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:            server.Config("data \"osupgrade_hosts\" \"test\" {}\n"),
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts"), knownvalue.ListSizeExact(0))},
	}}})
}

func TestAccHosts_tenantThatDoesNotExist(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.OnlyTenants("beta")
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:      server.Config("data \"osupgrade_hosts\" \"test\" {}\n"),
		ExpectError: regexp.MustCompile(`(?s)Unable to read osupgrade_hosts.*tenant "acme" does not exist`),
	}}})
}
