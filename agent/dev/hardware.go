package dev

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/inventory"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker"
)

// hardware is the machine that a simulated host pretends to be.
type hardware struct{}

var _ worker.Inventory = hardware{}

// Read implements worker.Inventory.
func (hardware) Read() (inventory.Inventory, error) {
	return inventory.Inventory{
		Machine:   inventory.Machine{Product: "simulated host", Kind: inventory.Virtual},
		Processor: inventory.Processor{Sockets: 1, Cores: 2, Threads: 4}, MemoryBytes: 8 << 30,
		Disks: []inventory.Disk{{Name: "vda", Bytes: 32 << 30}},
	}, nil
}

// Watch implements worker.Inventory. The machine never changes.
func (hardware) Watch(ctx context.Context, changed func()) error {
	changed()
	<-ctx.Done()
	return ctx.Err()
}
