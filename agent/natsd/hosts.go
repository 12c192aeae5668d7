package natsd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/names"
)

// Identity is the host that a key belongs to.
type Identity struct {
	Tenant string `json:"tenant"`
	Host   string `json:"host"`
}

// hostFile is what the file of a key holds. Sum ties the host to the key, so
// that a damaged file does not let one host in as another.
type hostFile struct {
	Identity
	Sum string `json:"sum"`
}

func (f hostFile) sum(public string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", public, f.Tenant, f.Host))
	return hex.EncodeToString(sum[:])
}

// Hosts is the folder of the hosts that may connect: a file per public key.
// A file that is added or removed counts from the next connection on, without
// a restart.
type Hosts struct {
	dir string
}

// OpenHosts makes the folder when it is missing.
func OpenHosts(dir string) (*Hosts, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make the folder of hosts: %w", err)
	}
	return &Hosts{dir: dir}, nil
}

// Add makes a key for a host and returns its seed, which is kept nowhere else.
// A host may have several keys, so that a new one can be brought to it before
// the old one is removed.
func (h *Hosts) Add(id Identity) (seed []byte, err error) {
	if !names.ValidHost(id.Host) {
		return nil, fmt.Errorf("host %q is not a host name; use letters, digits, \"-\", \"_\" and \".\"", id.Host)
	}
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	file := hostFile{Identity: id}
	file.Sum = file.sum(public)
	body, err := format.HostKey.Encode(file)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(h.path(public), append(body, '\n'), 0o600); err != nil {
		return nil, err
	}
	return key.Seed()
}

// Find returns the host of a public key; false when no host has it.
func (h *Hosts) Find(public string) (Identity, bool, error) {
	// A public key that is one has no character that means anything in a path.
	if !nkeys.IsValidPublicUserKey(public) {
		return Identity{}, false, nil
	}
	body, err := os.ReadFile(h.path(public))
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, fmt.Errorf("cannot look up host key %s: %w", public, err)
	}
	var file hostFile
	switch err := format.HostKey.Decode(body, &file); {
	case format.IsUnsupported(err):
		return Identity{}, false, fmt.Errorf("cannot read host key %s: %w", h.path(public), err)
	case err != nil:
		return Identity{}, false, fmt.Errorf("host key %s is damaged: %w; make a new key for the host", h.path(public), err)
	case file.Sum != file.sum(public) || file.Tenant == "" || !names.ValidHost(file.Host):
		return Identity{}, false, fmt.Errorf("host key %s is damaged: make a new key for the host", h.path(public))
	}
	return file.Identity, true, nil
}

func (h *Hosts) path(public string) string { return filepath.Join(h.dir, public+".json") }
