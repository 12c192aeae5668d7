package hosts_test

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
	"github.com/osupgrade/terraform-provider-osupgrade/provider/acctest"
)

const address = "data.osupgrade_hosts.test"

func text(value string) knownvalue.Check { return knownvalue.StringExact(value) }

func TestAccHosts_complete(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	at := time.Date(2026, 11, 27, 1, 0, 0, 500, time.UTC)
	api.SetHosts(acctest.Tenant,
		v1.Host{Hostname: "h02", Application: "a", Unplaced: true},
		v1.Host{
			Hostname: "h01", Application: "a", Online: true, LastSeen: &at, AgentVersion: "1.2.3",
			Role: "db", Environment: "basel", Labels: map[string]string{"ring": "0"},
			Versions: map[string]string{"kernel": "6.12"}, VersionsAt: &at, Release: "spring", Was: "winter",
			LastRun: &v1.HostRun{ID: 41, Phase: "finished", Result: "partial", Status: "failed", Class: "space"}, OutdatedSince: &at, MissedSince: &at,
			Busy:     &v1.HostBusy{Reason: "backup", Until: at},
			Warnings: []v1.Warning{{Host: "h01", Kind: "clock", Text: "is late", Since: at}},
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
					"role": text("db"), "environment": text("basel"), "unplaced": knownvalue.Bool(false), "labels": knownvalue.MapExact(map[string]knownvalue.Check{"ring": text("0")}),
					"versions": knownvalue.MapExact(map[string]knownvalue.Check{"kernel": text("6.12")}), "versions_at": text("2026-11-27T01:00:00.0000005Z"),
					"last_run": knownvalue.Int64Exact(41), "last_run_result": text("partial"), "last_run_status": text("failed"), "last_run_class": text("space"), "last_run_up_to_date": knownvalue.Bool(false), "outdated_since": text("2026-11-27T01:00:00.0000005Z"), "missed_since": text("2026-11-27T01:00:00.0000005Z"),
					"busy":      knownvalue.ObjectExact(map[string]knownvalue.Check{"reason": text("backup"), "until": text("2026-11-27T01:00:00.0000005Z")}),
					"inventory": server640(), "release": text("spring"), "was": text("winter"),
					"warnings": knownvalue.ListExact([]knownvalue.Check{knownvalue.ObjectExact(map[string]knownvalue.Check{
						"kind": text("clock"), "text": text("is late"), "since": text("2026-11-27T01:00:00.0000005Z"),
					})}),
				}),
				knownvalue.ObjectExact(map[string]knownvalue.Check{
					"hostname": text("h02"), "application": text("a"), "online": knownvalue.Bool(false),
					"last_seen": knownvalue.Null(), "agent_version": knownvalue.Null(), "role": knownvalue.Null(), "environment": knownvalue.Null(), "unplaced": knownvalue.Bool(true), "labels": knownvalue.Null(), "versions": knownvalue.Null(), "versions_at": knownvalue.Null(),
					"last_run": knownvalue.Null(), "last_run_result": knownvalue.Null(), "warnings": knownvalue.ListSizeExact(0), "last_run_status": knownvalue.Null(), "last_run_class": knownvalue.Null(), "last_run_up_to_date": knownvalue.Null(), "outdated_since": knownvalue.Null(), "missed_since": knownvalue.Null(), "busy": knownvalue.Null(), "inventory": knownvalue.Null(), "release": knownvalue.Null(), "was": knownvalue.Null(),
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

// TestAccHosts_parts: a long list is read in parts, all of them, and a server without parts
// is read whole.
func TestAccHosts_parts(t *testing.T) {
	t.Parallel()
	var many []v1.Host
	for i := range 1201 {
		many = append(many, v1.Host{Hostname: fmt.Sprintf("h%04d", i), Role: []string{"db", "web"}[i%2]})
	}
	for name, row := range map[string]struct {
		whole bool
		reads int
	}{"parts": {false, 2}, "whole": {true, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api, server := acctest.Fake(t)
			api.SetHosts(acctest.Tenant, many...)
			if row.whole {
				api.Whole()
			}
			acctest.Run(t, resource.TestCase{Steps: []resource.TestStep{{
				Config: server.Config("data \"osupgrade_hosts\" \"test\" {\n role = \"db\"\n}\n"),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts"), knownvalue.ListSizeExact(601)),
					statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts").AtSliceIndex(600).AtMapKey("hostname"), text("h1200")),
				},
			}}})
			// Each plan and apply reads all.
			whole := 0
			for _, r := range api.Requests() {
				if !r.Query.Has("after") {
					whole++
				}
			}
			if n := len(api.Requests()); whole == 0 || n != whole*row.reads {
				t.Errorf("the server had %d requests for %d lists", n, whole)
			}
		})
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

// TestAccHosts_filtered: the hosts are those that fit; a filter that is wrong is found
// before a request.
func TestAccHosts_filtered(t *testing.T) {
	t.Parallel()
	api, server := acctest.Fake(t)
	at := time.Now().AddDate(0, 0, -40)
	api.SetHosts(acctest.Tenant,
		v1.Host{Hostname: "h01", Application: "a", Role: "db", Online: true, Versions: map[string]string{"kernel": "6.12"}, OutdatedSince: &at},
		v1.Host{Hostname: "h02", Application: "b", Environment: "basel", Labels: map[string]string{"ring": "0"}, Versions: map[string]string{"kernel": "6.13"}},
	)
	data := func(body string) string { return "data \"osupgrade_hosts\" \"test\" {\n" + body + "\n}\n" }
	var steps []resource.TestStep
	for body, want := range map[string]string{
		`application = "b"`:                                  "h02",
		`role = "db"`:                                        "h01",
		`environment = "basel"`:                              "h02",
		`state = "offline"`:                                  "h02",
		`labels = { ring = "0" }`:                            "h02",
		`labels = { ring = "1,0" }`:                          "h02",
		`version_constraints = { kernel = "< 6.13" }`:        "h01",
		`outdated_since = timeadd(plantimestamp(), "-720h")`: "h01",
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(data(body)), ConfigStateChecks: []statecheck.StateCheck{
			statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts"), knownvalue.ListSizeExact(1)),
			statecheck.ExpectKnownValue(address, tfjsonpath.New("hosts").AtSliceIndex(0).AtMapKey("hostname"), text(want)),
		}})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
	api.ForgetRequests()
	steps = nil
	for body, says := range map[string]string{
		`environment = "Basel"`:                     `"Basel"\s+is\s+not\s+a\s+name`,
		`state = "gone"`:                            `(?s)Invalid\s+value\s+of\s+state.*"gone"\s+is\s+invalid;\s+use\s+online,\s+offline,\s+busy,\s+outdated\s+or\s+missed`,
		`version_constraints = { kernel = "=> 6" }`: `(?s)not\s+a\s+range\s+of\s+versions`,
		`outdated_since = "yesterday"`:              `Invalid RFC3339`,
		`labels = { ring = "0," }`:                  `(?s)"0,"\s+has\s+a\s+comma\s+with\s+no\s+value\s+next\s+to\s+it`,
		`labels = { "a b" = "0" }`:                  `(?s)"a\s+b"\s+is\s+not\s+the\s+key\s+of\s+a\s+label`,
	} {
		steps = append(steps, resource.TestStep{Config: server.Config(data(body)), PlanOnly: true, ExpectError: regexp.MustCompile(says)})
	}
	acctest.Run(t, resource.TestCase{Steps: steps})
	if n := len(api.Requests()); n > 0 {
		t.Errorf("the server had %d requests, want none", n)
	}
}
