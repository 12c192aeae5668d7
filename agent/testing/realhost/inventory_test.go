package realhost_test

import (
	"strings"
	"testing"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/realhost"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestRealInventory checks that the worker of a real Debian, started by systemd with the
// sandbox of its unit, tells what its machine consists of.
func TestRealInventory(t *testing.T) {
	realhost.Need(t, realhost.Quick)
	t.Parallel()
	r := newRig(t, realhost.ContainerOptions{}, realhost.Deb{Name: "appliance", Version: "1.0"})
	var h v1.Host
	realhost.Until(t, "the inventory is told", patience, func() bool {
		var err error
		if h, err = r.Client.Host(t.Context(), realhost.Tenant, "h01"); err != nil {
			t.Fatal(err)
		}
		return h.Inventory != nil
	})
	if v := h.Inventory; v.Machine.Kind != inventory.Container || v.Machine.Architecture == "" || v.Processor.Threads == 0 || v.MemoryBytes < 64<<20 {
		t.Errorf("h01 has %+v", v)
	}
	if log := r.c.Must("journalctl -q -u osupgrade-worker -p warning --no-pager -o cat"); strings.Contains(log, "machine") || strings.Contains(log, "inventory") {
		t.Errorf("the worker warns: %s", log)
	}
}
