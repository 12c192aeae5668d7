package hardware

import (
	"encoding/hex"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
)

// field cuts a line of /proc/cpuinfo or /proc/meminfo.
func field(line string) (key, value string) {
	key, value, _ = strings.Cut(line, ":")
	return strings.TrimSpace(key), strings.TrimSpace(value)
}

// processors counts what /proc/cpuinfo has of each processor.
type processors struct {
	model          string
	threads        int
	socket         string
	sockets, cores map[string]bool
	// hypervisor tells that the processor says that it is a virtual one.
	hypervisor bool
}

// add takes a line. What lies between two lines "processor" is of one processor.
func (p *processors) add(line string) {
	if p.sockets == nil {
		p.sockets, p.cores = map[string]bool{}, map[string]bool{}
	}
	key, value := field(line)
	switch key {
	case "processor":
		p.threads++
		p.socket = ""
	case "model name", "cpu model", "uarch":
		if p.model == "" {
			p.model = value
		}
	case "flags":
		p.hypervisor = p.hypervisor || strings.Contains(" "+value+" ", " hypervisor ")
	case "physical id":
		p.socket = value
		count(p.sockets, value)
	case "core id":
		count(p.cores, p.socket+"/"+value)
	}
}

// mostCounted bounds what is counted: no kernel has as many processors.
const mostCounted = 1 << 16

func count(set map[string]bool, name string) {
	if len(set) < mostCounted && len(name) < 40 {
		set[name] = true
	}
}

func (p *processors) sum() inventory.Processor {
	return inventory.Processor{Model: p.model, Sockets: len(p.sockets), Cores: len(p.cores), Threads: p.threads}
}

// parseMemory reads the memory of /proc/meminfo, in bytes.
func parseMemory(text string) (int64, error) {
	for line := range strings.Lines(text) {
		key, value := field(line)
		if key != "MemTotal" {
			continue
		}
		number, unit, _ := strings.Cut(value, " ")
		kib, err := strconv.ParseInt(number, 10, 64)
		if err != nil || strings.TrimSpace(unit) != "kB" || kib < 0 || kib > math.MaxInt64>>10 {
			return 0, fmt.Errorf("cannot read /proc/meminfo: MemTotal is %.40q; it should be a number of kB", value)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("cannot read /proc/meminfo: it has no MemTotal")
}

// The flags of an address in /proc/net/if_inet6 that say that it will not last: temporary,
// refused because another host has it, deprecated, tentative (if_addr.h).
const fleeting = 0x01 | 0x08 | 0x20 | 0x40

// parseIPv6 reads the global addresses of /proc/net/if_inet6 by interface, without those
// that will not last. A line that is not well formed is left out.
func parseIPv6(text string) map[string][]string {
	found := map[string][]string{}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line) // Address, index, prefix, scope, flags, name.
		if len(fields) != 6 {
			continue
		}
		raw, err := hex.DecodeString(fields[0])
		bits, wrong := strconv.ParseUint(fields[2], 16, 8)
		flags, bad := strconv.ParseUint(fields[4], 16, 32)
		address, ok := netip.AddrFromSlice(raw)
		if err != nil || wrong != nil || bad != nil || !ok || !address.Is6() || bits > 128 || flags&fleeting != 0 || !address.IsGlobalUnicast() {
			continue
		}
		found[fields[5]] = append(found[fields[5]], netip.PrefixFrom(address, int(bits)).String())
	}
	return found
}
