// Package inventory says what a machine consists of: as its worker tells it, the site
// keeps it, and the API and Terraform show it. It is one form for all of them.
//
// It decides what a well-formed inventory is. It has no serial number and no other
// number that is a secret of a machine, and never reads one.
package inventory

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// Inventory is what a machine consists of. What it does not tell is empty.
type Inventory struct {
	Machine   Machine   `json:"machine,omitzero"`
	Processor Processor `json:"processor,omitzero"`
	// MemoryBytes is the memory that the kernel can use.
	MemoryBytes int64       `json:"memory-bytes,omitempty"`
	Disks       []Disk      `json:"disks,omitempty"`
	Interfaces  []Interface `json:"interfaces,omitempty"`
	// More says how many disks and interfaces were left out, because there are too many.
	More int `json:"more,omitempty"`
}

// Machine is the machine as a whole.
type Machine struct {
	Vendor       string `json:"vendor,omitempty"`
	Product      string `json:"product,omitempty"`
	Firmware     string `json:"firmware,omitempty"`
	Architecture string `json:"architecture,omitempty"`
	// Kind is physical, virtual or container.
	Kind string `json:"kind,omitempty"`
}

// The kinds of machines.
const (
	Physical  = "physical"
	Virtual   = "virtual"
	Container = "container"
)

// Processor are the processors. Threads is how many the kernel can use.
type Processor struct {
	Model   string `json:"model,omitempty"`
	Sockets int    `json:"sockets,omitempty"`
	Cores   int    `json:"cores,omitempty"`
	Threads int    `json:"threads,omitempty"`
}

// Disk is a disk with a device of its own: no partition, no loop device.
type Disk struct {
	Name  string `json:"name"`
	Model string `json:"model,omitempty"`
	Bytes int64  `json:"bytes,omitempty"`
	// Rotational is what the kernel takes the disk for.
	Rotational bool `json:"rotational,omitempty"`
	Removable  bool `json:"removable,omitempty"`
}

// Interface is a network interface with a device or an address of its own.
type Interface struct {
	Name string `json:"name"`
	MAC  string `json:"mac,omitempty"`
	// Addresses are its global addresses, such as 192.0.2.7/24, without temporary ones.
	Addresses []string `json:"addresses,omitempty"`
}

// Bounds of an inventory. MaxBody is in bytes, encoded, and holds an inventory at all of
// the others.
const (
	MaxText      = 100
	MaxDisks     = 64
	MaxAddresses = 16
	MaxBody      = 256 << 10
	// MaxInterfaces bounds the interfaces: a host of many containers has hundreds.
	MaxInterfaces = 64
)

// Fit makes an inventory that was read fit to be told: sorted, bounded, of printable
// text. Check has nothing against the result.
func (v Inventory) Fit() Inventory {
	for _, s := range []*string{&v.Machine.Vendor, &v.Machine.Product, &v.Machine.Firmware, &v.Machine.Architecture, &v.Processor.Model} {
		*s = fit(*s)
	}
	if !isKind(v.Machine.Kind) {
		v.Machine.Kind = ""
	}
	v.MemoryBytes = max(v.MemoryBytes, 0)
	for _, n := range []*int{&v.Processor.Sockets, &v.Processor.Cores, &v.Processor.Threads} {
		*n = max(*n, 0)
	}
	v.More = 0
	v.Disks = slices.Clone(v.Disks)
	for i, d := range v.Disks {
		v.Disks[i] = Disk{fit(d.Name), fit(d.Model), max(d.Bytes, 0), d.Rotational, d.Removable}
	}
	v.Disks = named(v.Disks, MaxDisks, &v.More, func(d Disk) string { return d.Name })
	v.Interfaces = slices.Clone(v.Interfaces)
	for i, n := range v.Interfaces {
		n.Addresses = slices.DeleteFunc(slices.Clone(n.Addresses), func(a string) bool { return checkAddress(a) != nil })
		slices.Sort(n.Addresses)
		n.Addresses = slices.Compact(n.Addresses)
		n.Addresses = slices.Clip(n.Addresses[:min(len(n.Addresses), MaxAddresses)])
		v.Interfaces[i] = Interface{fit(n.Name), fit(n.MAC), n.Addresses}
	}
	v.Interfaces = named(v.Interfaces, MaxInterfaces, &v.More, func(n Interface) string { return n.Name })
	return v
}

// named sorts parts by their names and leaves out those without one, of a name that is
// there already, and those beyond the limit, which are counted.
func named[T any](parts []T, limit int, more *int, name func(T) string) []T {
	parts = slices.DeleteFunc(parts, func(p T) bool { return name(p) == "" })
	slices.SortStableFunc(parts, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	parts = slices.CompactFunc(parts, func(a, b T) bool { return name(a) == name(b) })
	*more += max(len(parts)-limit, 0)
	return parts[:min(len(parts), limit)]
}

// fit makes a text one line of printable characters without surrounding space.
func fit(s string) string {
	s = strings.Map(func(r rune) rune {
		if !isPlain(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, " "))
	return strings.TrimSpace(text.Cut(strings.Join(strings.Fields(s), " "), MaxText, ""))
}

// isPlain reports whether a character may be in a text: those that a terminal prints, of
// ASCII. Firmware has nothing else but by mistake.
func isPlain(r rune) bool { return r >= ' ' && r <= '~' }

func isKind(kind string) bool {
	return kind == "" || kind == Physical || kind == Virtual || kind == Container
}

// Check says what is wrong with an inventory that a host tells; nil when nothing is.
func (v Inventory) Check() error {
	for name, s := range map[string]string{
		"machine.vendor": v.Machine.Vendor, "machine.product": v.Machine.Product, "machine.firmware": v.Machine.Firmware,
		"machine.architecture": v.Machine.Architecture, "processor.model": v.Processor.Model,
	} {
		if err := checkText(name, s); err != nil {
			return err
		}
	}
	switch {
	case !isKind(v.Machine.Kind):
		return fmt.Errorf("machine.kind: %.20q is invalid; use %s, %s or %s", v.Machine.Kind, Physical, Virtual, Container)
	case min(v.Processor.Sockets, v.Processor.Cores, v.Processor.Threads, v.More) < 0 || v.MemoryBytes < 0:
		return errors.New("a number is below zero; use 0 for what is not known")
	case len(v.Disks) > MaxDisks:
		return fmt.Errorf("disks: there are %d; use at most %d", len(v.Disks), MaxDisks)
	case len(v.Interfaces) > MaxInterfaces:
		return fmt.Errorf("interfaces: there are %d; use at most %d", len(v.Interfaces), MaxInterfaces)
	}
	for _, d := range v.Disks {
		if err := errors.Join(checkName("disks", d.Name), checkText("disks.model", d.Model)); err != nil {
			return err
		}
		if d.Bytes < 0 {
			return fmt.Errorf("disks.bytes: %d is invalid; use 0 for what is not known", d.Bytes)
		}
	}
	for _, n := range v.Interfaces {
		if err := errors.Join(checkName("interfaces", n.Name), checkText("interfaces.mac", n.MAC)); err != nil {
			return err
		}
		if len(n.Addresses) > MaxAddresses {
			return fmt.Errorf("interfaces.addresses: there are %d; use at most %d", len(n.Addresses), MaxAddresses)
		}
		for _, a := range n.Addresses {
			if err := checkAddress(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkName(field, name string) error {
	if name == "" {
		return fmt.Errorf("%s.name: it is empty", field)
	}
	return checkText(field+".name", name)
}

func checkText(field, s string) error {
	if len(s) > MaxText || strings.ContainsFunc(s, func(r rune) bool { return !isPlain(r) }) {
		return fmt.Errorf("%s: %.20q is invalid; use at most %d printable characters of ASCII", field, s, MaxText)
	}
	return nil
}

// checkAddress refuses an address that is in no canonical form.
func checkAddress(address string) error {
	prefix, err := netip.ParsePrefix(address)
	if err != nil || prefix.String() != address {
		return fmt.Errorf("interfaces.addresses: %.50q is invalid; use an address with its prefix, such as 192.0.2.7/24", address)
	}
	return nil
}

// Encode returns the body that a worker tells. Equal inventories have equal bodies.
func (v Inventory) Encode() ([]byte, error) { return format.Inventory.Encode(v) }

// Decode reads what Encode has written. A member that is not known is left out: it is of
// a newer version.
func Decode(body []byte) (v Inventory, err error) {
	if len(body) > MaxBody {
		return Inventory{}, fmt.Errorf("cannot read the inventory: %d bytes; at most %d", len(body), MaxBody)
	}
	if err = format.Inventory.Decode(body, &v); err == nil {
		err = v.Check()
	}
	if err != nil {
		return Inventory{}, fmt.Errorf("cannot read the inventory: %w", err)
	}
	return v, nil
}
