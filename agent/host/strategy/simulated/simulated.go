// Package simulated is the strategy of a simulated host: a folder with a package
// database, a boot id and a list of faults. Upgrades and reboots change the
// folder, take a configured time, and fail, hang or crash on demand.
//
// It touches only its own folder. It never starts or kills a process and never
// changes the machine: a reboot or crash of the host is an Event, and the host's
// supervisor stops and starts the worker.
//
// The folder of a host:
//
//	packages.json   the running packages, a flat object package → version
//	available.json  the packages that the host has fetched last; optional
//	boot-id         the boot id, a UUID
//	faults.json     the faults, a flat object action → fault; optional
//	upgrade.json    the last upgrade: the packages before and after
//	effects.log     one line of JSON for each effect, in order
package simulated

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/strict"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/text"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/host/strategy"
)

// Options configure a simulated host. In the zero value actions take no time.
type Options struct {
	// ActionTime is the duration of an action.
	ActionTime time.Duration
	// Sleep waits until the time has passed or the context has ended, and then
	// returns the context's error. Nil waits in real time.
	Sleep func(context.Context, time.Duration) error
	// Random is the source of boot ids. Nil means crypto/rand.
	Random io.Reader
}

// Host is a simulated host. It is safe for concurrent use; its folder belongs to
// one Host at a time.
type Host struct {
	dir     string
	options Options
	events  chan Event
	// mu guards the files of the folder. It is never held during Sleep.
	mu sync.Mutex
}

var (
	_ strategy.Strategy         = (*Host)(nil)
	_ strategy.Confirmer        = (*Host)(nil)
	_ strategy.Watcher          = (*Host)(nil)
	_ strategy.Printer          = (*Host)(nil)
	_ strategy.Releaser         = (*Host)(nil)
	_ strategy.RollbackPreparer = (*Host)(nil)
)

// maxEvents is how many events wait for the supervisor.
const maxEvents = 16

// Open returns the host of a folder. It creates a folder that does not exist, with
// base-os 1.0 and kernel 6.1.0 and one boot. Opening an existing host changes
// nothing; it is not a boot.
func Open(dir string, o Options) (*Host, error) {
	if o.ActionTime < 0 {
		return nil, fmt.Errorf("cannot simulate a host with actions of %s; use 0s or more", o.ActionTime)
	}
	if o.Sleep == nil {
		o.Sleep = wait.Sleep
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	h := &Host{dir: dir, options: o, events: make(chan Event, maxEvents)}
	if err := h.install(); err != nil {
		return nil, fmt.Errorf("cannot open simulated host: %w", err)
	}
	return h, nil
}

// install writes the missing files of a new host and checks the others.
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

// check reads every file of the folder.
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

// Dir returns the host's folder.
func (h *Host) Dir() string { return h.dir }

func (h *Host) path(name string) string { return filepath.Join(h.dir, name) }

// Event is an event of a host that its supervisor handles.
type Event int

const (
	// RebootRequested means: stop the worker, call Boot, start the worker.
	RebootRequested Event = iota + 1
	// Crashed means: stop the worker and start it again. Call Boot in between to
	// simulate a crash of the machine, not only of the worker.
	Crashed
	// PoweredOff means: stop the worker, and do not start another.
	PoweredOff
)

// String returns a text for people.
func (e Event) String() string {
	switch e {
	case RebootRequested:
		return "reboot requested"
	case Crashed:
		return "crashed"
	case PoweredOff:
		return "powered off"
	default:
		return fmt.Sprintf("event %d", int(e))
	}
}

var bootIDPattern = text.Pattern(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Events returns the host's events for the supervisor. The channel is never
// closed. If 16 events wait, further events are dropped.
func (h *Host) Events() <-chan Event { return h.events }

func (h *Host) signal(e Event) {
	select {
	case h.events <- e:
	default:
	}
}

// BootID returns the host's boot id, which changes at each boot.
func (h *Host) BootID() (string, error) {
	data, err := os.ReadFile(h.path(bootIDFile))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(data))
	if !bootIDPattern().MatchString(id) {
		return "", fmt.Errorf("cannot read %s: %.50q is not a UUID in lower case", h.path(bootIDFile), id)
	}
	return id, nil
}

// Reboot sends RebootRequested to the supervisor and returns at once, unless there
// is a fault. The host does not change until Boot.
func (h *Host) Reboot(ctx context.Context, _ strategy.Job) error {
	silent := func(int, string) {}
	return h.act(ctx, actionReboot, silent, func(string) error {
		u, err := h.upgrade()
		if err != nil {
			return err
		}
		if err := h.record(actionReboot, u.Run); err != nil {
			return err
		}
		h.signal(RebootRequested)
		return nil
	})
}

// Down reports whether the host has accepted a reboot and has not booted since. A
// supervisor that is killed meanwhile finds the host so, and calls Boot.
func (h *Host) Down() (bool, error) {
	effects, err := h.Effects()
	down := false
	for _, e := range effects {
		switch e.Action {
		case actionReboot:
			down = true
		case actionBoot:
			down = false
		}
	}
	return down, err
}

// Boot boots the host after its worker has stopped: it takes the time of an action,
// activates a pending kernel and writes a new boot id. The events from before end
// with the old boot.
func (h *Host) Boot(ctx context.Context) error {
	if h.options.ActionTime > 0 {
		if err := h.options.Sleep(ctx, h.options.ActionTime); err != nil {
			return err
		}
	}
	if err := h.locked(h.boot); err != nil {
		return fmt.Errorf("cannot boot simulated host: %w", err)
	}
	for {
		select {
		case <-h.events:
		default:
			return nil
		}
	}
}

func (h *Host) boot() error {
	if err := h.settle(); err != nil {
		return err
	}
	u, err := h.upgrade()
	if err != nil {
		return err
	}
	if err := h.activate(u); err != nil {
		return err
	}
	if err := h.newBootID(); err != nil {
		return err
	}
	return h.record(actionBoot, u.Run)
}

// activate activates a pending kernel. It writes the database first, so that a
// repetition after a crash in between writes the same.
func (h *Host) activate(u upgrade) error {
	if !u.Settled || len(u.Pending) == 0 {
		return nil
	}
	if gaveUp, err := h.fallBack(u); gaveUp || err != nil {
		return err
	}
	current, err := h.packages()
	if err != nil {
		return err
	}
	current = current.with(u.Pending)
	if err := h.write(packagesFile, current); err != nil {
		return err
	}
	u.Running, u.Pending = u.Running.with(u.Pending), nil
	return h.writeUpgrade(u)
}

// fallBack has the machine go back to the system before an upgrade, if it is to.
func (h *Host) fallBack(u upgrade) (gaveUp bool, err error) {
	faults, err := h.faults()
	if err != nil || faults[actionReboot] != FaultFallBack || u.RolledBack {
		return false, err
	}
	if err := h.write(packagesFile, u.From); err != nil {
		return false, err
	}
	u.GaveUp, u.Pending, u.RolledBack = u.Pending[kernel], nil, true
	if err := h.writeUpgrade(u); err != nil {
		return false, err
	}
	delete(faults, actionReboot)
	return true, h.writeFaults(faults)
}

func (h *Host) newBootID() error {
	var b [16]byte
	if _, err := io.ReadFull(h.options.Random, b[:]); err != nil {
		return fmt.Errorf("cannot create a boot id: %w", err)
	}
	return durable.WriteFile(h.path(bootIDFile), []byte(uuid(b)+"\n"), 0o644)
}

// uuid returns a version 4 UUID (RFC 9562 5.4), the form of a kernel's boot id.
func uuid(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// portion returns the duration of one part of an action. The parts add up to exactly
// the action.
func portion(whole int64, part int) time.Duration {
	return time.Duration(whole*int64(part)/parts - whole*int64(part-1)/parts)
}

const (
	packagesFile  = "packages.json"
	availableFile = "available.json"
	bootIDFile    = "boot-id"
	faultsFile    = "faults.json"
	upgradeFile   = "upgrade.json"
	effectsFile   = "effects.log"
)

// read decodes a JSON file of the host, which people may write, into to. A file
// that does not exist is fs.ErrNotExist.
func (h *Host) read(name string, to any) error { return h.decode(name, to, strict.JSON) }

// decode reads a file of the host with a decoder.
func (h *Host) decode(name string, to any, decode func([]byte, any) error) error {
	data, err := os.ReadFile(h.path(name))
	if err != nil {
		return err
	}
	if err := decode(data, to); err != nil {
		return fmt.Errorf("cannot read %s: %w", h.path(name), err)
	}
	return nil
}

// write replaces a JSON file of the host at once.
func (h *Host) write(name string, from any) error {
	data, err := json.MarshalIndent(from, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", h.path(name), err)
	}
	return durable.WriteFile(h.path(name), append(data, '\n'), 0o644)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
