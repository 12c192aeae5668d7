package natsd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/credential"
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

// Hosts are the hosts that may connect: a credential per public key. One that is
// added counts from the next connection on, without a restart; one that is removed
// ends its connections within seconds.
type Hosts struct {
	keys credential.Store
}

// OpenHosts opens the hosts whose keys are kept in a folder, which it makes when
// it is missing.
func OpenHosts(dir string) (*Hosts, error) {
	keys, err := credential.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	return &Hosts{keys: keys}, nil
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
	if err := h.keys.Put(public, append(body, '\n')); err != nil {
		return nil, err
	}
	return key.Seed()
}

// HostKey is a key of a host, by its public part.
type HostKey struct {
	Public string
	Made   time.Time
	// Identity is whose key it is; Damage tells why nobody knows.
	Identity
	Damage error
}

// List returns all keys.
func (h *Hosts) List() ([]HostKey, error) {
	entries, err := h.keys.List()
	if err != nil {
		return nil, err
	}
	all := make([]HostKey, 0, len(entries))
	for _, e := range entries {
		id, known, err := h.Find(e.Name)
		if err == nil && !known {
			err = fmt.Errorf("%s is not the name of a host key", e.Name)
		}
		all = append(all, HostKey{Public: e.Name, Made: e.Made, Identity: id, Damage: err})
	}
	return all, nil
}

// Remove removes a key: whoever is connected with it is disconnected within
// seconds.
func (h *Hosts) Remove(public string) error { return h.keys.Remove(public) }

// Find returns the host of a public key; false when no host has it.
func (h *Hosts) Find(public string) (Identity, bool, error) {
	// A valid public key has no character that means anything in a path.
	if !nkeys.IsValidPublicUserKey(public) {
		return Identity{}, false, nil
	}
	body, err := h.keys.Get(public)
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, false, nil
	}
	if err != nil {
		return Identity{}, false, fmt.Errorf("cannot look up host key %s: %w", public, err)
	}
	var file hostFile
	switch err := format.HostKey.Decode(body, &file); {
	case format.IsUnsupported(err):
		return Identity{}, false, fmt.Errorf("cannot read host key %s: %w", public, err)
	case err != nil:
		return Identity{}, false, fmt.Errorf("host key %s is damaged: %w; make a new key for the host", public, err)
	case file.Sum != file.sum(public) || file.Tenant == "" || !names.ValidHost(file.Host):
		return Identity{}, false, fmt.Errorf("host key %s is damaged: make a new key for the host", public)
	}
	return file.Identity, true, nil
}
