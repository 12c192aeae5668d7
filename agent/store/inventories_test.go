package store_test

import (
	"reflect"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/store"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/v1"
)

// TestInventories checks that one inventory of each host is kept, the last, that those of a
// tenant or of one host are listed without what cannot be read, and that an inventory goes
// with its host.
func TestInventories(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	ctx := t.Context()
	put := func(tenant, key string, v inventory.Inventory) {
		t.Helper()
		body, err := v.Encode()
		if err == nil {
			err = s.PutInventory(ctx, tenant, key, body)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(tenant, key string) map[string]v1.HostInventory {
		t.Helper()
		found, err := s.Inventories(ctx, tenant, key)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if body, _, err := s.Inventory(ctx, "acme", "h01"); err != nil || body != nil || len(list("acme", store.AllHosts)) != 0 {
		t.Errorf("an empty store has %q, %v", body, err)
	}
	last := inventory.Inventory{MemoryBytes: 2, Disks: []inventory.Disk{{Name: "sda"}}}
	put("acme", "h01", inventory.Inventory{MemoryBytes: 1})
	put("acme", "h01", last)
	put("acme", "h=2e2", inventory.Inventory{MemoryBytes: 3})
	put("acme-2", "h01", inventory.Inventory{MemoryBytes: 4})
	for key, body := range map[string]string{"newer": `{"format":9}`, "damaged": `{"format":1`} {
		publish(t, nc, &nats.Msg{Subject: "$KV.osu-inventories.acme." + key, Data: []byte(body)})
	}
	all := list("acme", store.AllHosts)
	if got := all["h01"]; len(all) != 2 || !reflect.DeepEqual(got.Inventory, last) || got.At.IsZero() || all["h=2e2"].MemoryBytes != 3 {
		t.Errorf("there are %+v", all)
	}
	if got := list("acme", "h01"); len(got) != 1 || !reflect.DeepEqual(got["h01"], all["h01"]) {
		t.Errorf("of h01 there are %+v", got)
	}
	want, _ := last.Encode()
	if body, at, err := s.Inventory(ctx, "acme", "h01"); err != nil || string(body) != string(want) || !at.Equal(all["h01"].At) {
		t.Errorf("of h01 there is %s, told at %s, %v", body, at, err)
	}
	if err := s.DeleteHost(ctx, "acme", "h01"); err != nil {
		t.Fatal(err)
	}
	if body, _, err := s.Inventory(ctx, "acme", "h01"); err != nil || body != nil || len(list("acme", store.AllHosts)) != 1 || len(list("acme-2", "h01")) != 1 {
		t.Errorf("after its host there is %q, %v", body, err)
	}
}
