package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/testing/fakeapi"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// TestHostWithInventory checks what is printed of the machine of a host.
func TestHostWithInventory(t *testing.T) {
	t.Parallel()
	s := fakeapi.New(t)
	at := time.Date(2026, 11, 13, 1, 30, 0, 0, time.UTC)
	s.SetHosts("acme",
		v1.Host{Hostname: "h01", Inventory: &v1.HostInventory{At: at, Inventory: inventory.Inventory{
			Machine:   inventory.Machine{Vendor: "Dell Inc.", Product: "PowerEdge R640", Firmware: "2.21.2", Architecture: "amd64", Kind: inventory.Physical},
			Processor: inventory.Processor{Model: "Xeon", Sockets: 1, Cores: 32, Threads: 64}, MemoryBytes: 134820229120,
			Disks:      []inventory.Disk{{Name: "sda", Model: "ST4000NM", Bytes: 4000787030016, Rotational: true}, {Name: "sdb", Removable: true}},
			Interfaces: []inventory.Interface{{Name: "eno1", MAC: "52:54:00:12:34:56", Addresses: []string{"192.0.2.7/24", "2001:db8::7/64"}}, {Name: "eno2"}}, More: 1,
		}}},
		v1.Host{Hostname: "h02", Inventory: &v1.HostInventory{At: at}},
	)
	for host, want := range map[string]string{
		"h01": `machine:         Dell Inc. PowerEdge R640, amd64, physical, firmware 2.21.2
processor:       Xeon, 1 socket, 32 cores, 64 threads
memory:          125.6 GiB
disk sda:        3.6 TiB, ST4000NM, rotational
disk sdb:        size unknown, removable
interface eno1:  52:54:00:12:34:56, 192.0.2.7/24, 2001:db8::7/64
interface eno2:  no address
inventory:       told at Fri 2026-11-13 02:30:00 CET, without 1 other disk or interface
`,
		"h02": `machine:        unknown
processor:      unknown
memory:         size unknown
inventory:      told at Fri 2026-11-13 02:30:00 CET
`,
	} {
		if code, stdout, stderr := call(t, as(t, s.URL, s.Token, "acme", "hosts", host)...); code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("of %s it prints, with code %d,\n%s%s\nwithout\n%s", host, code, stdout, stderr, want)
		}
	}
	if code, stdout, _ := call(t, as(t, s.URL, s.Token, "acme", "hosts", "h01", "--output", "json")...); code != exitOK || !strings.Contains(stdout, `"memory-bytes": 134820229120`) {
		t.Errorf("as JSON it is, with code %d,\n%s", code, stdout)
	}
}

// TestBinarySize checks sizes at the bounds of their units.
func TestBinarySize(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{0: "size unknown", 1: "1 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1024 KiB", 1 << 20: "1 MiB", 1<<63 - 1: "8 EiB"} {
		if got := binarySize(bytes); got != want {
			t.Errorf("%d bytes are %q, not %q", bytes, got, want)
		}
	}
}
