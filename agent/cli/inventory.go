package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// addInventory shows what the machine of a host consists of.
func addInventory(f *facts, at timeFormat, v *v1.HostInventory) {
	if v == nil {
		return
	}
	f.add("machine", machineLine(v.Machine))
	f.add("processor", processorLine(v.Processor))
	f.add("memory", binarySize(v.MemoryBytes))
	for _, d := range v.Disks {
		f.add("disk "+d.Name, diskLine(d))
	}
	for _, n := range v.Interfaces {
		f.add("interface "+n.Name, cmp.Or(listOf(append([]string{n.MAC}, n.Addresses...)...), "no address"))
	}
	more := ""
	if v.More > 0 {
		more = fmt.Sprintf(", without %s", text.Count(v.More, "other disk or interface", "other disks and interfaces"))
	}
	f.add("inventory", "told at "+at.at(v.At)+more)
}

func machineLine(m inventory.Machine) string {
	firmware := ""
	if m.Firmware != "" {
		firmware = "firmware " + m.Firmware
	}
	return cmp.Or(listOf(strings.TrimSpace(m.Vendor+" "+m.Product), m.Architecture, m.Kind, firmware), "unknown")
}

func processorLine(p inventory.Processor) string {
	parts := []string{p.Model}
	for _, count := range []struct {
		n         int
		one, many string
	}{{p.Sockets, "socket", "sockets"}, {p.Cores, "core", "cores"}, {p.Threads, "thread", "threads"}} {
		if count.n > 0 {
			parts = append(parts, text.Count(count.n, count.one, count.many))
		}
	}
	return cmp.Or(listOf(parts...), "unknown")
}

func diskLine(d inventory.Disk) string {
	parts := []string{binarySize(d.Bytes), d.Model}
	if d.Rotational {
		parts = append(parts, "rotational")
	}
	if d.Removable {
		parts = append(parts, "removable")
	}
	return listOf(parts...)
}

// listOf joins the parts that are not empty.
func listOf(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), ", ")
}

// binarySize is a size in units of 1,024, such as 7.8 GiB.
func binarySize(bytes int64) string {
	switch {
	case bytes <= 0:
		return "size unknown"
	case bytes < 1024:
		return fmt.Sprintf("%d B", bytes)
	}
	const units = "KMGTPE"
	size, unit := float64(bytes)/1024, 0
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", size), ".0") + " " + units[unit:unit+1] + "iB"
}
