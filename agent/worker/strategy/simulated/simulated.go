// Package simulated is a host without a machine: a folder with a package
// database, a boot id and a list of faults. Upgrades and reboots change the
// folder, take as much time as told, and fail, hang or crash on demand.
//
// It touches its own folder and nothing else. It never ends a process, starts
// one or changes the machine that it runs on: that the host reboots or crashes
// is an Event, and its supervisor stops and starts the worker.
//
// The folder of a host:
//
//	packages.json  the packages that run, a flat object package → version
//	boot-id        the boot id, a UUID
//	faults.json    what is to go wrong, a flat object action → fault; optional
//	upgrade.json   the last upgrade: what it was to change, and from what
//	effects.log    one line of JSON for every effect, in order
package simulated

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/worker/strategy"
)

// Options tells how a simulated host behaves. The zero value is a host that
// takes no time.
type Options struct {
	// Step is how long one action takes; zero is no time at all.
	Step time.Duration
	// Sleep waits until the time has passed or the context has ended, and then
	// returns its error. Nil waits in real time.
	Sleep func(context.Context, time.Duration) error
	// Random is where boot ids come from. Nil is crypto/rand.
	Random io.Reader
}

// Host is a simulated host. It may be used by several goroutines; its folder
// belongs to one Host at a time.
type Host struct {
	dir     string
	options Options
	events  chan Event
	// mu guards the files of the folder from one read to the write that
	// follows from it; it is never held while time passes.
	mu sync.Mutex
}

var _ strategy.Strategy = (*Host)(nil)

// maxUntoldEvents bounds the events that nobody has received yet.
const maxUntoldEvents = 16

// Open returns the host of a folder, and makes the folder where there is none:
// a host with base-os 1.0 and kernel 6.1.0 that has booted once. A host that
// was there before goes on where it was; opening it is not a boot.
func Open(dir string, o Options) (*Host, error) {
	if o.Step < 0 {
		return nil, fmt.Errorf("cannot simulate a host with steps of %s; use 0s or more", o.Step)
	}
	if o.Sleep == nil {
		o.Sleep = wait.Sleep
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	h := &Host{dir: dir, options: o, events: make(chan Event, maxUntoldEvents)}
	if err := h.install(); err != nil {
		return nil, fmt.Errorf("cannot open simulated host: %w", err)
	}
	return h, nil
}

// install writes what a new host lacks and reads what an old one has.
func (h *Host) install() error {
	if err := os.MkdirAll(h.dir, 0o755); err != nil {
		return err
	}
	if !exists(h.path(bootIDFile)) {
		if err := h.newBootID(); err != nil {
			return err
		}
	}
	if !exists(h.path(packagesFile)) {
		if err := h.write(packagesFile, packages{"base-os": "1.0", kernel: "6.1.0"}); err != nil {
			return err
		}
	}
	if err := h.settle(); err != nil {
		return err
	}
	return h.check()
}

// check reads every file of the folder and returns what is wrong with it.
func (h *Host) check() error {
	if _, err := h.packages(); err != nil {
		return err
	}
	if _, err := h.BootID(); err != nil {
		return err
	}
	if _, err := h.upgrade(); err != nil {
		return err
	}
	_, err := h.faults()
	return err
}

// Dir is the host's folder.
func (h *Host) Dir() string { return h.dir }

func (h *Host) path(name string) string { return filepath.Join(h.dir, name) }
