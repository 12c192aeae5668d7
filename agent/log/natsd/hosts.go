package natsd

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
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
	// Replaces are the keys of the host that are removed once a host has connected
	// with this one.
	Replaces []string `json:"replaces,omitempty"`
	// Labels are those that the host was given when it joined.
	Labels map[string]string `json:"labels,omitempty"`
	Sum    string            `json:"sum"`
}

func (f hostFile) sum(public string) string {
	text := fmt.Appendf(nil, "%s\n%s\n%s", public, f.Tenant, f.Host)
	if len(f.Replaces) > 0 {
		text = fmt.Appendf(text, "\n%s", strings.Join(f.Replaces, " "))
	}
	for _, key := range slices.Sorted(maps.Keys(f.Labels)) {
		text = fmt.Appendf(text, "\nlabel %s=%s", key, f.Labels[key])
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Hosts are the hosts that may connect: a credential per public key. One that is
// added counts from the next connection on, without a restart; one that is removed
// ends its connections within a second.
type Hosts struct {
	keys credential.Store
	// mu is held while it is decided whether a host may have one more key.
	mu sync.Mutex
	// byHost are the keys of each host, sorted; nil while they have to be listed. Only this
	// process changes keys, so ten thousand are not listed again for each host that joins.
	byHost map[Identity][]string
	// labels are those that hosts were given, a map[string]string by Identity, once they were
	// listed. They are read without mu: a controller must not wait for the disk.
	labels sync.Map
	listed atomic.Bool
}

// NewHosts returns the hosts whose keys a store has.
func NewHosts(keys credential.Store) *Hosts {
	return &Hosts{keys: keys}
}

// ErrSecondKey means that a host has a key already, and that nobody said that the
// new one replaces it.
var ErrSecondKey = errors.New("has a key already")

// ErrOthersKey means that a public key is that of another host.
var ErrOthersKey = errors.New("is the key of another host")

// maxKeys is how many keys a host may have: the one that it uses, and those by
// which somebody began to replace it. Each is a file.
const maxKeys = 4

// Add makes the key of a host that has none and returns its seed, which is kept
// nowhere else.
func (h *Hosts) Add(id Identity) (seed []byte, err error) { return h.make(id, false) }

// Replace is Add for a host that may have keys: they are removed once the host has
// connected with the new one, so that it is never without.
func (h *Hosts) Replace(id Identity) (seed []byte, err error) { return h.make(id, true) }

func (h *Hosts) make(id Identity, replace bool) (seed []byte, err error) {
	key, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	public, err := key.PublicKey()
	if err != nil {
		return nil, err
	}
	if err := h.Register(public, id, replace); err != nil {
		return nil, err
	}
	return key.Seed()
}

// Register lets a host in with a key of which the host alone has the seed. It has no
// effect if the host has this key already. The host keeps the labels that it was given.
func (h *Hosts) Register(public string, id Identity, replace bool) error {
	return h.RegisterLabelled(public, id, nil, replace)
}

// RegisterLabelled is Register for a host that is given labels. Without any it keeps those that it
// has; others take their place, also if it has the key already.
func (h *Hosts) RegisterLabelled(public string, id Identity, labels map[string]string, replace bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	others, known, err := h.registrable(public, id, replace)
	if err != nil {
		return err
	}
	if known {
		file, _, err := h.find(public)
		if err != nil || len(labels) == 0 || maps.Equal(labels, file.Labels) {
			return err
		}
		others = file.Replaces
	}
	if len(labels) == 0 {
		labels = h.given(id)
	}
	body, err := encodeHost(public, hostFile{Identity: id, Replaces: others, Labels: labels})
	if err != nil {
		return err
	}
	return h.changed(credential.Put(h.keys, public, body), func() {
		keys := append(slices.Clone(h.byHost[id]), public)
		slices.Sort(keys)
		h.noteKeys(id, slices.Compact(keys))
	})
}

// changed notes a change of the keys. After one that failed nobody knows which there are.
func (h *Hosts) changed(err error, note func()) error {
	if err != nil {
		h.byHost = nil
	} else if h.byHost != nil {
		note()
	}
	return err
}

// Registrable returns why Register would refuse a key.
func (h *Hosts) Registrable(public string, id Identity, replace bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _, err := h.registrable(public, id, replace)
	return err
}

// registrable returns the other keys of a host, and whether it has this one.
func (h *Hosts) registrable(public string, id Identity, replace bool) (others []string, known bool, err error) {
	if !names.ValidHost(id.Host) {
		return nil, false, fmt.Errorf("host %q is not a host name; use letters, digits, \"-\", \"_\" and \".\"", id.Host)
	}
	if !nkeys.IsValidPublicUserKey(public) {
		return nil, false, fmt.Errorf("%.100q is not the public key of a host", public)
	}
	owner, known, err := h.Find(public)
	switch {
	case err != nil:
		return nil, false, err
	case known && owner != id:
		return nil, false, fmt.Errorf("key %s %w", public, ErrOthersKey)
	case known:
		return nil, true, nil
	}
	if others, err = h.keysOf(id); err != nil {
		return nil, false, err
	}
	switch {
	case len(others) > 0 && !replace:
		return nil, false, fmt.Errorf("host %s of tenant %s %w", id.Host, id.Tenant, ErrSecondKey)
	case len(others) >= maxKeys:
		return nil, false, fmt.Errorf("host %s of tenant %s has %d keys, none of which has replaced the others: let it connect with the newest, or withdraw some", id.Host, id.Tenant, len(others))
	}
	return others, false, nil
}

// keysOf returns the keys of a host.
func (h *Hosts) keysOf(id Identity) ([]string, error) {
	if h.byHost == nil {
		entries, err := h.keys.List()
		if err != nil {
			return nil, err
		}
		byHost := make(map[Identity][]string, len(entries))
		for _, e := range entries {
			// Nobody connects with a damaged one.
			if owner, known, err := h.Find(e.Name); err == nil && known {
				byHost[owner] = append(byHost[owner], e.Name)
			}
		}
		h.byHost = make(map[Identity][]string, len(byHost))
		for owner, keys := range byHost {
			h.noteKeys(owner, keys)
		}
		h.listed.Store(true)
	}
	return h.byHost[id], nil
}

// noteKeys notes which keys a host has, and which labels it was given with them: those of a key
// that replaces another win.
func (h *Hosts) noteKeys(id Identity, keys []string) {
	if len(keys) == 0 {
		delete(h.byHost, id)
		h.labels.Delete(id)
		return
	}
	h.byHost[id] = keys
	var labels map[string]string
	files, replaced := make([]hostFile, len(keys)), map[string]bool{}
	for i, public := range keys {
		files[i], _, _ = h.find(public) // One that cannot be read has no labels.
		for _, old := range files[i].Replaces {
			replaced[old] = true
		}
	}
	for i, public := range keys {
		if len(files[i].Labels) > 0 && (labels == nil || !replaced[public]) {
			labels = files[i].Labels
		}
	}
	if len(labels) > 0 {
		h.labels.Store(id, labels)
	} else {
		h.labels.Delete(id)
	}
}

func (h *Hosts) given(id Identity) map[string]string {
	labels, _ := h.labels.Load(id)
	given, _ := labels.(map[string]string)
	return given
}

// Labels returns the labels that a host was given when it joined. They are not to be changed.
func (h *Hosts) Labels(id Identity) map[string]string {
	if !h.listed.Load() {
		h.mu.Lock()
		_, _ = h.keysOf(id) // When they cannot be listed, the next call tries again.
		h.mu.Unlock()
	}
	return h.given(id)
}

// Alike returns the name of another host of the tenant that has a key and differs from this one
// in nothing but case; empty if there is none.
func (h *Hosts) Alike(id Identity) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.keysOf(id); err != nil {
		return "", err
	}
	for other := range h.byHost {
		if other.Tenant == id.Tenant && other.Host != id.Host && strings.EqualFold(other.Host, id.Host) {
			return other.Host, nil
		}
	}
	return "", nil
}

func encodeHost(public string, file hostFile) ([]byte, error) {
	file.Sum = file.sum(public)
	body, err := format.HostKey.Encode(file)
	return append(body, '\n'), err
}

// used removes the keys that a key replaces. It is called when a host has connected
// with it: by then the host needs the others no more. A crash in between leaves the
// rest to the next connection.
func (h *Hosts) used(public string) error {
	file, known, err := h.find(public)
	if err != nil || !known || len(file.Replaces) == 0 {
		return err
	}
	for _, old := range file.Replaces {
		owner, known, err := h.Find(old)
		if err == nil && known && owner == file.Identity {
			err = h.Remove(old)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot remove key %s, which another one replaces: %w", old, err)
		}
	}
	err = credential.Update(h.keys, public, func(body []byte) ([]byte, error) {
		file, err := decodeHost(public, body)
		if err != nil {
			return nil, err
		}
		file.Replaces = nil
		return encodeHost(public, file)
	})
	if errors.Is(err, os.ErrNotExist) { // It was withdrawn meanwhile.
		return nil
	}
	return err
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

// Remove removes a key: whoever is connected with it is disconnected within a
// second.
func (h *Hosts) Remove(public string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	id, known, _ := h.Find(public) // Also a damaged one can be removed.
	return h.changed(credential.Remove(h.keys, public), func() {
		if !known {
			return
		}
		h.noteKeys(id, slices.DeleteFunc(slices.Clone(h.byHost[id]), func(key string) bool { return key == public }))
	})
}

// Find returns the host of a public key; false when no host has it.
func (h *Hosts) Find(public string) (Identity, bool, error) {
	file, known, err := h.find(public)
	return file.Identity, known, err
}

func (h *Hosts) find(public string) (hostFile, bool, error) {
	// A valid public key has no character that means anything in a path.
	if !nkeys.IsValidPublicUserKey(public) {
		return hostFile{}, false, nil
	}
	body, err := h.keys.Get(public)
	if errors.Is(err, os.ErrNotExist) {
		return hostFile{}, false, nil
	}
	if err != nil {
		return hostFile{}, false, fmt.Errorf("cannot look up host key %s: %w", public, err)
	}
	file, err := decodeHost(public, body)
	return file, err == nil, err
}

func decodeHost(public string, body []byte) (file hostFile, err error) {
	switch err := format.HostKey.Decode(body, &file); {
	case format.IsUnsupported(err):
		return hostFile{}, fmt.Errorf("cannot read host key %s: %w", public, err)
	case err != nil:
		return hostFile{}, fmt.Errorf("host key %s is damaged: %w; make a new key for the host", public, err)
	case file.Sum != file.sum(public) || file.Tenant == "" || !names.ValidHost(file.Host):
		return hostFile{}, fmt.Errorf("host key %s is damaged: make a new key for the host", public)
	}
	return file, nil
}
