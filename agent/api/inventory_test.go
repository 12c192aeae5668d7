package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/api/client"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/site/dev"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestInventories checks that the API shows what the machines of hosts consist of: for one
// host always, for all when that is asked for.
func TestInventories(t *testing.T) {
	t.Parallel()
	d, err := dev.Start(t.Context(), dev.Options{Dir: t.TempDir(), Hosts: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	c, err := client.New(client.Options{Endpoint: d.Endpoint, Token: d.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx := t.Context()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		h, err := c.Host(ctx, d.Tenant, "h02")
		if err == nil && h.Inventory != nil {
			if h.Inventory.MemoryBytes != 8<<30 || h.Inventory.At.IsZero() || h.Inventory.At.Nanosecond() != 0 {
				t.Errorf("h02 has %+v", h.Inventory)
			}
			break
		}
		if err != nil && !client.HasStatus(err, http.StatusNotFound) || time.Now().After(end) {
			t.Fatalf("h02 is %+v, %v", h, err)
		}
	}
	if hosts, err := c.Hosts(ctx, d.Tenant, ""); err != nil || len(hosts) != 2 || hosts[1].Inventory != nil {
		t.Errorf("the hosts are %+v, %v", hosts, err)
	}
	var hosts []v1.Host
	for part, err := range c.HostParts(ctx, d.Tenant, client.HostQuery{Inventories: true}) {
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, part...)
	}
	if len(hosts) != 2 || hosts[1].Inventory == nil || hosts[1].Inventory.Disks[0].Name != "vda" {
		t.Errorf("with inventories the hosts are %+v", hosts)
	}
}
