// Package hardware reads what this machine consists of, from /sys and /proc, and waits for
// the kernel to tell that it has changed.
//
// It decides which devices count. It starts no program, asks nothing again and again, and
// reads no serial number, which the kernel shows to root alone.
package hardware

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/inventory"
)

// Machine is the machine that is read. It implements worker.Reader.
type Machine struct {
	// Root is "/".
	Root string
}

// Read returns what the machine consists of. What it does not tell is empty: a container
// has no disk, a small computer no DMI.
func (m Machine) Read() (v inventory.Inventory, err error) {
	v.Machine = m.machine()
	var p processors
	if err := m.lines("proc/cpuinfo", p.add); err != nil {
		return inventory.Inventory{}, err
	}
	v.Processor = p.sum()
	if v.MemoryBytes, err = parseMemory(m.text("proc/meminfo")); err != nil {
		return inventory.Inventory{}, err
	}
	v.Machine.Kind = m.kind(v.Machine, p.hypervisor)
	v.Disks = m.disks()
	if v.Interfaces, err = m.interfaces(); err != nil {
		return inventory.Inventory{}, err
	}
	return v.Fit(), nil
}

// Report returns the inventory as a worker reports it.
func (m Machine) Report() ([]byte, error) {
	v, err := m.Read()
	if err != nil {
		return nil, err
	}
	return v.Encode()
}

// maxText bounds a file that is read as a whole, in bytes, and maxLine a line of one that is not.
const maxText, maxLine = 64 << 10, 64 << 10

// text returns the text of a small file; empty when it cannot be read, as with a device
// that has no such attribute.
func (m Machine) text(name string) string {
	file, err := os.Open(filepath.Join(m.Root, name))
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	body, err := io.ReadAll(io.LimitReader(file, maxText))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.TrimRight(string(body), "\x00"))
}

func (m Machine) exists(names ...string) bool {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(m.Root, name)); err == nil {
			return true
		}
	}
	return false
}

// machine reads DMI and, where there is none, the device tree.
func (m Machine) machine() inventory.Machine {
	const dmi = "sys/class/dmi/id/"
	found := inventory.Machine{
		Vendor: meant(m.text(dmi + "sys_vendor")), Product: meant(m.text(dmi + "product_name")), Architecture: runtime.GOARCH,
		Firmware: strings.TrimSpace(meant(m.text(dmi+"bios_vendor")) + " " + meant(m.text(dmi+"bios_version"))),
	}
	if found.Product == "" {
		found.Product = m.text("proc/device-tree/model")
	}
	return found
}

// meant is what a vendor has written; empty for what says that nobody has.
func meant(s string) string {
	switch strings.ToLower(strings.Trim(s, ". ")) {
	case "to be filled by o.e.m", "default string", "system product name", "system manufacturer", "not specified", "not applicable", "none", "n/a", "oem", "unknown":
		return ""
	}
	return s
}

// kind tells a container and a virtual machine by the traces that they leave. A processor
// of Intel or AMD says that there is a hypervisor, others do not.
func (m Machine) kind(found inventory.Machine, hypervisor bool) string {
	switch {
	case m.exists("run/systemd/container", ".dockerenv", "run/.containerenv"):
		return inventory.Container
	case hypervisor || m.exists("sys/hypervisor/type"):
		return inventory.Virtual
	}
	for _, name := range []string{"QEMU", "KVM", "VMware", "Xen", "Amazon EC2", "Google Compute", "Virtual"} {
		if strings.Contains(found.Vendor+" "+found.Product, name) {
			return inventory.Virtual
		}
	}
	return inventory.Physical
}

// lines calls take with each line of a file: that of a machine with hundreds of processors
// is large.
func (m Machine) lines(name string, take func(line string)) error {
	file, err := os.Open(filepath.Join(m.Root, name))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	scanner := bufio.NewScanner(file)
	scanner.Buffer(make([]byte, 0, 4<<10), maxLine)
	for scanner.Scan() {
		take(scanner.Text())
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("cannot read %s: %w", name, err)
	}
	return nil
}

// mostDevices bounds the folders that are looked at.
const mostDevices = 1000

// names are those of the entries of a folder.
func (m Machine) names(folder string) []string {
	opened, err := os.Open(filepath.Join(m.Root, folder))
	if err != nil {
		return nil
	}
	defer func() { _ = opened.Close() }()
	names, _ := opened.Readdirnames(mostDevices) // What there is counts.
	return names
}

// disks are the block devices with a device below them. A loop device, an array and a
// mapping have none, and a drive that may be empty is no disk.
func (m Machine) disks() (all []inventory.Disk) {
	for _, name := range m.names("sys/block") {
		of := "sys/block/" + name + "/"
		sectors, err := strconv.ParseInt(m.text(of+"size"), 10, 64)
		if !m.exists(of+"device") || err != nil || sectors <= 0 || sectors > maxSectors || isDrive(name) {
			continue
		}
		model := m.text(of + "device/model")
		if model == "" { // A card.
			model = m.text(of + "device/name")
		}
		all = append(all, inventory.Disk{
			Name: name, Model: model, Bytes: sectors * sectorSize, Rotational: m.text(of+"queue/rotational") == "1", Removable: m.text(of+"removable") == "1",
		})
	}
	return all
}

// sectorSize is the unit of sizes in /sys/block, whatever the sectors of the disk are.
const sectorSize, maxSectors = 512, 1 << 53

func isDrive(name string) bool { return strings.HasPrefix(name, "sr") || strings.HasPrefix(name, "fd") }

// interfaces are those with a device, or with a global address.
func (m Machine) interfaces() (all []inventory.Interface, err error) {
	addresses := parseIPv6(m.text("proc/net/if_inet6"))
	if m.Root == "/" {
		err = addIPv4(addresses)
	}
	for _, name := range m.names("sys/class/net") {
		of := "sys/class/net/" + name + "/"
		if m.text(of+"type") == loopback || !m.exists(of+"device") && len(addresses[name]) == 0 {
			continue
		}
		mac := m.text(of + "address")
		if strings.Trim(mac, "0:") == "" {
			mac = ""
		}
		all = append(all, inventory.Interface{Name: name, MAC: mac, Addresses: addresses[name]})
	}
	return all, err
}

// loopback is ARPHRD_LOOPBACK.
const loopback = "772"

// addIPv4 asks the kernel for the addresses that no file has.
func addIPv4(to map[string][]string) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("cannot list the network interfaces: %w", err)
	}
	var failed error
	for _, n := range interfaces {
		addresses, err := n.Addrs()
		failed = errors.Join(failed, err)
		for _, a := range addresses {
			if prefix, ok := a.(*net.IPNet); ok && prefix.IP.To4() != nil && prefix.IP.IsGlobalUnicast() {
				to[n.Name] = append(to[n.Name], prefix.String())
			}
		}
	}
	return failed
}
