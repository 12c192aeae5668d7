package simulated

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
)

// Effect is a line of effects.log: something that the host has done, once for
// every time that it did it.
type Effect struct {
	// Action is prepare, upgrade, reboot (a reboot was asked for), boot (it
	// took place, or the host came back after a crash) or rollback.
	Action string `json:"action"`
	// Run is the run it was done for; for reboot and boot, that of the last
	// upgrade.
	Run uint64 `json:"run"`
	// BootID is the host's boot id then; for boot, the new one.
	BootID string `json:"boot-id"`
}

// Effects reads what the host has done so far, oldest first. A last line that
// a crash cut short counts as not there.
func (h *Host) Effects() ([]Effect, error) {
	data, err := os.ReadFile(h.path(effectsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	effects, err := parseEffects(data)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", h.path(effectsFile), err)
	}
	return effects, nil
}

func parseEffects(data []byte) ([]Effect, error) {
	var effects []Effect
	for number := 1; ; number++ {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			return effects, nil
		}
		var e Effect
		if err := format.Simulated.Decode(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		effects, data = append(effects, e), rest
	}
}

// count tells how often the host has done an action for a run.
func (h *Host) count(action string, run uint64) (int, error) {
	effects, err := h.Effects()
	count := 0
	for _, e := range effects {
		if e.Action == action && e.Run == run {
			count++
		}
	}
	return count, err
}

// record appends one effect and syncs it.
func (h *Host) record(action string, run uint64) error {
	bootID, err := h.BootID()
	if err != nil {
		return err
	}
	line, err := format.Simulated.Encode(Effect{Action: action, Run: run, BootID: bootID})
	if err != nil {
		return err
	}
	if err := h.appendEffect(append(line, '\n')); err != nil {
		return fmt.Errorf("cannot write %s: %w", h.path(effectsFile), err)
	}
	return nil
}

func (h *Host) appendEffect(line []byte) (err error) {
	fresh := !exists(h.path(effectsFile))
	f, err := os.OpenFile(h.path(effectsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := cutTorn(f); err != nil {
		return err
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	if err := f.Sync(); err != nil || !fresh {
		return err
	}
	return durable.SyncFolder(h.dir)
}

// cutTorn removes a last line that lacks its end.
func cutTorn(f *os.File) error {
	data, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole == len(data) {
		return nil
	}
	return f.Truncate(int64(whole))
}
