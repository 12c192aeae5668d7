package simulated

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/strict"
)

const (
	packagesFile = "packages.json"
	bootIDFile   = "boot-id"
	faultsFile   = "faults.json"
	upgradeFile  = "upgrade.json"
	effectsFile  = "effects.log"
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

// write replaces a JSON file of the host in one step.
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
