package simulated

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
)

// Event is what happens to a host that only its supervisor can act on.
type Event int

const (
	// RebootRequested is a reboot that was asked for: stop the worker, call
	// Boot, start the worker.
	RebootRequested Event = iota + 1
	// Crashed is a fault: stop the worker and start it again; call Boot in
	// between if the machine is to have crashed and not the worker alone.
	Crashed
)

// String is the event in words.
func (e Event) String() string {
	switch e {
	case RebootRequested:
		return "reboot requested"
	case Crashed:
		return "crashed"
	default:
		return fmt.Sprintf("event %d", int(e))
	}
}

var bootIDPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Events tells the supervisor what happens to the host. It is never closed.
// More than 16 events that nobody received are dropped.
func (h *Host) Events() <-chan Event { return h.events }

func (h *Host) signal(e Event) {
	select {
	case h.events <- e:
	default:
	}
}

// BootID reads the host's boot id, which changes with every boot.
func (h *Host) BootID() (string, error) {
	data, err := os.ReadFile(h.path(bootIDFile))
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(data))
	if !bootIDPattern.MatchString(id) {
		return "", fmt.Errorf("cannot read %s: %.50q is not a UUID in lower case", h.path(bootIDFile), id)
	}
	return id, nil
}

// Reboot asks for a reboot and returns at once, or with the fault. The
// supervisor learns of it by RebootRequested; the host is the same until Boot.
func (h *Host) Reboot(ctx context.Context) error {
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

// Boot starts the host anew, once its worker has stopped: it takes one step,
// makes a pending kernel current and writes a new boot id.
func (h *Host) Boot(ctx context.Context) error {
	if h.options.Step > 0 {
		if err := h.options.Sleep(ctx, h.options.Step); err != nil {
			return err
		}
	}
	if err := h.locked(h.boot); err != nil {
		return fmt.Errorf("cannot boot simulated host: %w", err)
	}
	return nil
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
	return h.record("boot", u.Run)
}

// activate makes a pending kernel current. The database goes first: repeated
// after a crash in between it writes the same again.
func (h *Host) activate(u upgrade) error {
	if !u.Settled || len(u.Pending) == 0 {
		return nil
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

func (h *Host) newBootID() error {
	var b [16]byte
	if _, err := io.ReadFull(h.options.Random, b[:]); err != nil {
		return fmt.Errorf("cannot make a boot id: %w", err)
	}
	return durable.WriteFile(h.path(bootIDFile), []byte(uuid(b)+"\n"), 0o644)
}

// uuid is the version 4 UUID of random bytes (RFC 9562 5.4), which is what a
// kernel's boot id is.
func uuid(b [16]byte) string {
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// portion is the length of one part of a step, such that all of them together
// are exactly the step.
func portion(step int64, part int) time.Duration {
	return time.Duration(step*int64(part)/parts - step*int64(part-1)/parts)
}
