package dev

import (
	"context"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/worker"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
)

// hardware is the machine that a simulated host pretends to be.
type hardware struct{}

var _ worker.Reader = hardware{}

// Report implements worker.Reader.
func (hardware) Report() ([]byte, error) {
	return inventory.Inventory{
		Machine:   inventory.Machine{Product: "simulated host", Kind: inventory.Virtual},
		Processor: inventory.Processor{Sockets: 1, Cores: 2, Threads: 4}, MemoryBytes: 8 << 30,
		Disks: []inventory.Disk{{Name: "vda", Bytes: 32 << 30}},
	}.Fit().Encode()
}

// Watch implements worker.Reader. The machine never changes.
func (hardware) Watch(ctx context.Context, changed func()) error {
	changed()
	<-ctx.Done()
	return ctx.Err()
}
