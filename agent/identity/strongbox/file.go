package strongbox

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/argon2"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
)

// Way is where the wrapping key comes from.
type Way string

// The ways.
const (
	// KeyFile is a file with random bytes.
	KeyFile Way = "key-file"
	// Credential is a credential of systemd, which that may have sealed by the TPM of the
	// machine.
	Credential Way = "credential"
	// Passphrase is typed by a person at each start.
	Passphrase Way = "passphrase"
)

// FileName is the name of the file of a strongbox.
const FileName = "strongbox.json"

// Exists reports whether a folder has a strongbox.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FileName))
	return err == nil
}

func (b *Box) file() string { return filepath.Join(b.o.Dir, FileName) }

// content is that of this file.
type content struct {
	Way Way `json:"way"`
	// File is the key file: a name in the folder of the strongbox, or a path.
	File string `json:"file,omitempty"`
	// Name is that of the credential.
	Name string `json:"name,omitempty"`
	// Hash is how the passphrase becomes a key.
	Hash *Hash `json:"hash,omitempty"`
	// ID tells the wrapping key from others.
	ID string `json:"id"`
	// Keys are the data keys, sealed by the wrapping key.
	Keys []byte `json:"keys"`
}

// Hash is the cost of argon2id (RFC 9106).
type Hash struct {
	Salt    []byte `json:"salt"`
	Memory  uint32 `json:"memory"` // KiB
	Time    uint32 `json:"time"`
	Threads uint8  `json:"threads"`
}

// The cost of a passphrase: the second recommendation of RFC 9106, for a machine with little
// memory.
const hashMemory, hashTime, hashThreads, saltBytes = 64 * 1024, 3, 4, 16

// The bounds of what is read from a file.
const maxHashMemory, maxHashTime, maxHashThreads, minSalt = 1024 * 1024, 64, 64, 8

func (h *Hash) check() error {
	switch {
	case h == nil:
		return errors.New("hash is missing")
	case len(h.Salt) < minSalt || h.Memory < 8 || h.Memory > maxHashMemory || h.Time < 1 || h.Time > maxHashTime || h.Threads < 1 || h.Threads > maxHashThreads:
		return errors.New("hash is out of bounds")
	}
	return nil
}

// read reads the file.
func (b *Box) read() (content, error) {
	var kept content
	body, err := os.ReadFile(b.file())
	if err != nil {
		return kept, err
	}
	switch err := format.Strongbox.Decode(body, &kept); {
	case format.IsUnsupported(err):
		return kept, fmt.Errorf("%s was %w; start a version that reads it", b.file(), err)
	case err != nil:
		return kept, fmt.Errorf("%s is damaged: %w; %s", b.file(), err, putBack)
	}
	if err := kept.check(); err != nil {
		return kept, fmt.Errorf("%s is damaged: %w; %s", b.file(), err, putBack)
	}
	return kept, nil
}

func (s content) check() error {
	switch {
	case s.Way == KeyFile && s.File == "":
		return errors.New("file is missing")
	case s.Way == Credential && !ValidCredential(s.Name):
		return fmt.Errorf("name %.80q is not that of a credential", s.Name)
	case s.Way == Passphrase:
		return s.Hash.check()
	case s.Way != KeyFile && s.Way != Credential:
		return fmt.Errorf("way %.80q is not known", s.Way)
	}
	return nil
}

// ValidCredential reports whether a text can be the name of a credential: it is a file in
// the folder of the credentials.
func ValidCredential(name string) bool {
	return name != "" && len(name) <= 255 && name != "." && name != ".." && filepath.Base(name) == name
}

// keyPath returns the path of the key file.
func (s content) keyPath(dir string) string {
	if filepath.IsAbs(s.File) {
		return s.File
	}
	return filepath.Join(dir, s.File)
}

// secretOf returns the secret that opens the strongbox without a person.
func (b *Box) secretOf(kept content) ([]byte, error) {
	switch kept.Way {
	case KeyFile:
		path := kept.keyPath(b.o.Dir)
		secret, err := ReadKey(path)
		if err != nil {
			return nil, fmt.Errorf("its key file cannot be read (%w); put %s back, which is taken up by itself, or give up what it seals with osupgrade-agent seal reset", err, path)
		}
		return secret, nil
	case Credential:
		if b.o.Credentials == "" {
			return nil, fmt.Errorf("it is opened by the credential %s of systemd, and there are none; start the site by its unit, with LoadCredentialEncrypted=%s", kept.Name, kept.Name)
		}
		secret, err := ReadKey(filepath.Join(b.o.Credentials, kept.Name))
		if err != nil {
			return nil, fmt.Errorf("the credential %s of systemd cannot be read (%w); have the unit of the site load it, with LoadCredentialEncrypted=%s", kept.Name, err, kept.Name)
		}
		return secret, nil
	}
	return nil, errors.New("it is opened by a passphrase; run osupgrade-agent unseal")
}

// opener names what opens the strongbox.
func (s content) opener(dir string) string {
	switch s.Way {
	case KeyFile:
		return "the key file " + s.keyPath(dir)
	case Credential:
		return "the credential " + s.Name + " of systemd"
	}
	return "the passphrase"
}

// The bounds of the content of a key file.
const minKey, maxKey = 32, 4096

// ReadKey reads a key file.
func ReadKey(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	secret, err := io.ReadAll(io.LimitReader(file, maxKey+1))
	if err != nil {
		return nil, err
	}
	return secret, CheckKey(path, secret)
}

// CheckKey returns why the content of a file is no key.
func CheckKey(path string, secret []byte) error {
	if n := len(secret); n < minKey || n > maxKey {
		return fmt.Errorf("%s is no key file: it must have %d to %d bytes", path, minKey, maxKey)
	}
	return nil
}

// wrappingKey seals the data keys.
type wrappingKey struct {
	key []byte
	id  string
}

// wrapping makes the wrapping key of a secret.
func (s content) wrapping(secret []byte) (wrappingKey, error) {
	if s.Way == Passphrase {
		if err := s.Hash.check(); err != nil {
			return wrappingKey{}, err
		}
		secret = argon2.IDKey(secret, s.Hash.Salt, s.Hash.Time, s.Hash.Memory, s.Hash.Threads, keyBytes)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "osupgrade strongbox key", keyBytes)
	if err != nil {
		return wrappingKey{}, err
	}
	id, err := hkdf.Key(sha256.New, secret, nil, "osupgrade strongbox id", idBytes)
	return wrappingKey{key: key, id: hex.EncodeToString(id)}, err
}

// purpose is what the data keys are sealed for.
const purpose = "data keys of a strongbox"

func (s content) open(w wrappingKey) (ring, error) {
	var keys ring
	text, err := open(w.key, s.Keys, purpose)
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err == nil {
		err = keys.check()
	}
	if err != nil {
		return ring{}, errors.New("its keys cannot be read")
	}
	return keys, nil
}

// ownKey returns the name of the key file that a strongbox makes itself, by the id of the
// wrapping key.
func ownKey(id string) string { return "strongbox-" + id + ".key" }

// isOwnKey reports whether a name is that of a key file that a strongbox has made itself.
func isOwnKey(name string) bool {
	own, err := filepath.Match(ownKeys, name)
	return err == nil && own
}

// ownKeys are the names of these files: each has a name of its own, so that the old one is
// there until the new one counts.
const ownKeys = "strongbox-*.key"

// removeIgnoring removes a file that may be missing.
func removeIgnoring(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
