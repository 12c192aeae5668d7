package store_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/log/store"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/report"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestInventories checks that one inventory of each host is kept, the last, that those of a
// tenant are listed without what cannot be read, and that an inventory goes
// with its host.
func TestInventories(t *testing.T) {
	t.Parallel()
	s, nc := openWith(t)
	ctx := t.Context()
	put := func(tenant, key string, v inventory.Inventory) {
		t.Helper()
		body, err := v.Encode()
		if err == nil {
			err = s.PutReport(ctx, tenant, key, report.Inventory.Of(body))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func(tenant string) map[string]v1.HostInventory {
		t.Helper()
		found, err := s.Reports(ctx, tenant, report.Inventory)
		if err != nil {
			t.Fatal(err)
		}
		shown := map[string]v1.HostInventory{}
		for key, kept := range found {
			var on v1.Host
			if err := report.Inventory.Show(kept, &on); err != nil {
				t.Errorf("%s: %v", key, err)
				continue
			}
			shown[key] = *on.Inventory
		}
		return shown
	}
	id := report.ID{Kind: report.Inventory}
	if kept, err := s.Report(ctx, "acme", "h01", id); !errors.Is(err, store.ErrNotFound) || kept.Body != nil || len(list("acme")) != 0 {
		t.Errorf("an empty store has %q, %v", kept.Body, err)
	}
	last := inventory.Inventory{MemoryBytes: 2, Disks: []inventory.Disk{{Name: "sda"}}}
	put("acme", "h01", inventory.Inventory{MemoryBytes: 1})
	put("acme", "h01", last)
	put("acme", "h=2e2", inventory.Inventory{MemoryBytes: 3})
	put("acme-2", "h01", inventory.Inventory{MemoryBytes: 4})
	for key, number := range map[string]string{"newer": "9", "damaged": "x"} {
		publish(t, nc, &nats.Msg{Subject: "$KV.osu-inventories.acme." + key, Header: nats.Header{format.Header: {number}}, Data: []byte(`{"format":1}`)})
	}
	all := list("acme")
	if got := all["h01"]; len(all) != 2 || !reflect.DeepEqual(got.Inventory, last) || got.At.IsZero() || all["h=2e2"].MemoryBytes != 3 {
		t.Errorf("there are %+v", all)
	}
	want, _ := last.Encode()
	if kept, err := s.Report(ctx, "acme", "h01", id); err != nil || string(kept.Body) != string(want) || !kept.At.Equal(all["h01"].At) {
		t.Errorf("of h01 there is %s, told at %s, %v", kept.Body, kept.At, err)
	}
	if err := s.DeleteHost(ctx, "acme", "h01"); err != nil {
		t.Fatal(err)
	}
	if kept, err := s.Report(ctx, "acme", "h01", id); !errors.Is(err, store.ErrNotFound) || kept.Body != nil || len(list("acme")) != 1 || len(list("acme-2")) != 1 {
		t.Errorf("after its host there is %q, %v", kept.Body, err)
	}
}
