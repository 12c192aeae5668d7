package hosts_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/inventory"
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
			Busy: &v1.HostBusy{Reason: "backup", Until: at},
			Inventory: &v1.HostInventory{At: at, Inventory: inventory.Inventory{
				Machine:   inventory.Machine{Vendor: "Dell Inc.", Product: "PowerEdge R640", Firmware: "2.21.2", Architecture: "amd64", Kind: inventory.Physical},
				Processor: inventory.Processor{Model: "Xeon", Sockets: 2, Cores: 32, Threads: 64}, MemoryBytes: 128 << 30,
				Disks:      []inventory.Disk{{Name: "sda", Model: "ST4000NM", Bytes: 4000787030016, Rotational: true}, {Name: "sdb"}},
				Interfaces: []inventory.Interface{{Name: "eno1", MAC: "52:54:00:12:34:56", Addresses: []string{"192.0.2.7/24"}}, {Name: "eno2"}},
			}},
		})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: server.Config("data \"osupgrade_hosts\" \"test\" {\n site = \"north\"\n inventories = true\n}\n"),
		ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(address, tfjsonpath.New("tenant"), text("acme")),
			statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts"), knownvalue.ListExact([]knownvalue.Check{
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"hostname": text("h01"), "application": text("a"), "online": knownvalue.Bool(true),
					"last_seen": text("2026-11-27T01:00:00.0000005Z"), "agent_version": text("1.2.3"),
					"role": text("db"), "labels": knownvalue.MapExact(map[string]knownvalue.Check{"ring": text("0")}),
					"versions": knownvalue.MapExact(map[string]knownvalue.Check{"kernel": text("6.12")}), "versions_at": text("2026-11-27T01:00:00.0000005Z"),
					"last_run": knownvalue.Int64Exact(41), "last_run_status": text("failed"), "last_run_class": text("space"), "outdated_since": text("2026-11-27T01:00:00.0000005Z"),
					"busy":      knownvalue.ObjectExact(map[string]knownvalue.Check{"reason": text("backup"), "until": text("2026-11-27T01:00:00.0000005Z")}),
					"inventory": server640(),
				}),
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"hostname": text("h02"), "application": text("a"), "online": knownvalue.Bool(false),
					"last_seen": knownvalue.Null(), "agent_version": knownvalue.Null(), "role": knownvalue.Null(), "labels": knownvalue.Null(), "versions": knownvalue.Null(), "versions_at": knownvalue.Null(),
					"last_run": knownvalue.Null(), "last_run_status": knownvalue.Null(), "last_run_class": knownvalue.Null(), "outdated_since": knownvalue.Null(), "busy": knownvalue.Null(), "inventory": knownvalue.Null(),
				}),
			})),
		},
	}}})
	for _, r := range api.Requests() {
		if r.Query.Get("site") != "north" || r.Query.Get("inventory") != "true" {
			t.Errorf("asked for %s?%s", r.Path, r.Query.Encode())
		}
	}
}

// server640 is the inventory above, as Terraform has it.
func server640() knownvalue.Check {
	whole := func(n int64) knownvalue.Check { return knownvalue.Int64Exact(n) }
	disk := func(name string, model, bytes knownvalue.Check, rotational bool) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{"name": text(name), "model": model, "bytes": bytes, "rotational": knownvalue.Bool(rotational), "removable": knownvalue.Bool(false)})
	}
	network := func(name string, mac knownvalue.Check, addresses ...knownvalue.Check) knownvalue.Check {
		return knownvalue.ObjectExact(map[string]knownvalue.Check{"name": text(name), "mac": mac, "addresses": knownvalue.ListExact(addresses)})
	}
	return knownvalue.ObjectExact(map[string]knownvalue.Check{
		"at": text("2026-11-27T01:00:00.0000005Z"), "vendor": text("Dell Inc."), "product": text("PowerEdge R640"), "firmware": text("2.21.2"), "architecture": text("amd64"), "kind": text("physical"),
		"processor": text("Xeon"), "sockets": whole(2), "cores": whole(32), "threads": whole(64), "memory_bytes": whole(128 << 30),
		"disks":      knownvalue.ListExact([]knownvalue.Check{disk("sda", text("ST4000NM"), whole(4000787030016), true), disk("sdb", knownvalue.Null(), knownvalue.Null(), false)}),
		"interfaces": knownvalue.ListExact([]knownvalue.Check{network("eno1", text("52:54:00:12:34:56"), text("192.0.2.7/24")), network("eno2", knownvalue.Null())}),
	})
}

// TestAccHosts_withoutInventories checks that inventories are not asked for unless wanted:
// Avassa's own API knows none.
func TestAccHosts_withoutInventories(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	api.SetHosts(acctest.Tenant, v1.Host{Hostname: "h01"})
	acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
		Config:            server.Config("data \"osupgrade_hosts\" \"test\" {}\n"),
		ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts").AtSliceIndex(0).AtMapKey("inventory"), knownvalue.Null())},
	}}})
	for _, r := range api.Requests() {
		if r.Query.Has("inventory") {
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
