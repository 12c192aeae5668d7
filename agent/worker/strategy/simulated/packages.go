package simulated

import (
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
)

// packages maps each package to its version.
type packages map[string]string

// kernel is the one package whose new version runs only after a boot.
const kernel = "kernel"

var lastNumber = regexp.MustCompile(`^(.*?)([0-9]+)([^0-9]*)$`)

// packages reads the packages that run.
func (h *Host) packages() (packages, error) {
	var p packages
	if err := h.read(packagesFile, &p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", h.path(packagesFile), err)
	}
	return p, nil
}

func (p packages) check() error {
	if len(p) == 0 {
		return errors.New(`it names no package; it should be like {"base-os": "1.0", "kernel": "6.1.0"}`)
	}
	for name, version := range p {
		if name == "" || version == "" {
			return fmt.Errorf("package %q has version %q; neither may be empty", name, version)
		}
	}
	return nil
}

// raised returns each package one step further.
func (p packages) raised() packages {
	next := make(packages, len(p))
	for name, version := range p {
		next[name] = raise(version)
	}
	return next
}

// raise returns the version after this one: its last number and one.
func raise(version string) string {
	parts := lastNumber.FindStringSubmatch(version)
	if parts == nil {
		return version + ".1"
	}
	number, ok := new(big.Int).SetString(parts[2], 10)
	if !ok {
		return version + ".1"
	}
	return parts[1] + number.Add(number, big.NewInt(1)).String() + parts[3]
}

// after returns what runs once to is installed on p: everything but the kernel
// at once, which is left pending until the boot when it differs.
func (p packages) after(to packages) (running, pending packages) {
	running = maps.Clone(to)
	old, had := p[kernel]
	if wanted, has := to[kernel]; had && has && wanted != old {
		running[kernel] = old
		pending = packages{kernel: wanted}
	}
	return running, pending
}

// with returns p with the packages of more in place of its own.
func (p packages) with(more packages) packages {
	merged := maps.Clone(p)
	maps.Copy(merged, more)
	return merged
}
