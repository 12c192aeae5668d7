// Package strongbox seals the secrets that a site must be able to read again: what signs
// webhooks, and the private key of its certificate authority.
//
// Data keys seal the secrets. A wrapping key seals the data keys, in one file; it comes
// from a key file, from a credential of systemd, or from a passphrase. To change where it
// comes from therefore changes one file, and no secret.
//
// The cryptography is AES-256-GCM, HKDF and argon2id, in some hundred lines. The age format
// (filippo.io/age) would do the same in fewer, and with less: it authenticates no sender, so
// whoever learns the public half of a data key could plant a secret; it has no place for the
// purpose; and a damaged header reads as a wrong key.
//
// It decides nothing about who may open it, and knows nothing of what it seals.
package strongbox

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/durable"
)

// Options say where a strongbox is.
type Options struct {
	// Dir is the folder of its files.
	Dir string
	// Credentials is the folder of systemd's credentials; empty when there is none.
	Credentials string
	// At is called with the label of each action before it and after it:
	// tests crash there. Nil is allowed.
	At func(label string)
	// Hash is the cost of a new passphrase, without the salt; zero is the usual one. Tests
	// have less time.
	Hash Hash
}

// Box is a strongbox. It is open, or sealed: then it neither seals nor opens a secret. One
// that has never sealed anything has no file, and is open.
type Box struct {
	o Options

	// unsealing is held while a secret is tried, which takes a while.
	unsealing sync.Mutex
	mu        sync.Mutex
	keys      ring
	// sealed is why it is sealed; nil if it is open.
	sealed *SealedError
	opened chan struct{}
}

// SealedError means that a strongbox is sealed.
type SealedError struct {
	// Why says what is missing, and what to do about it.
	Why string
}

// Error implements error.
func (e *SealedError) Error() string { return "strongbox sealed: " + e.Why }

// Open opens the strongbox of a folder by itself, if it can: by its key file or its
// credential. Otherwise it is sealed. The caller holds the lock of the site's folder: nobody
// else changes the files.
func Open(o Options) *Box {
	if o.At == nil {
		o.At = func(string) {}
	}
	if o.Hash.Memory == 0 {
		o.Hash = Hash{Memory: hashMemory, Time: hashTime, Threads: hashThreads}
	}
	b := &Box{o: o, opened: make(chan struct{})}
	_ = b.Retry() // Sealed says why.
	return b
}

// Sealed returns why the strongbox is sealed, a SealedError; nil if it is open.
func (b *Box) Sealed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed()
}

func (b *Box) closed() error {
	if b.sealed == nil {
		return nil // A typed nil would be an error.
	}
	return b.sealed
}

// Opened is closed once the strongbox is open.
func (b *Box) Opened() <-chan struct{} { return b.opened }

// Retry reads the files of a sealed strongbox again, and opens it if it can: a key file may
// have been put back. It returns why it is still sealed.
func (b *Box) Retry() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isOpen() {
		return nil
	}
	keys, err := b.load()
	return b.finish(keys, err)
}

func (b *Box) isOpen() bool {
	select {
	case <-b.opened:
		return true
	default:
		return false
	}
}

// finish takes up what an attempt to open the strongbox has brought.
func (b *Box) finish(keys ring, err error) error {
	if err != nil {
		b.sealed = &SealedError{Why: err.Error()}
		return b.sealed
	}
	b.keys, b.sealed = keys, nil
	if !b.isOpen() {
		close(b.opened)
	}
	b.tidy()
	return nil
}

// tidy removes the key files that a killed process has left, of a strongbox that is open: what
// opens it is known then. Without its file nothing is removed, which whoever puts that back
// needs. If it fails, the next change tries again.
func (b *Box) tidy() {
	if kept, err := b.read(); err == nil {
		_ = b.removeOld(kept)
	}
}

// load reads the data keys, with a wrapping key that is there without a person.
func (b *Box) load() (ring, error) {
	kept, err := b.read()
	if errors.Is(err, fs.ErrNotExist) {
		return ring{}, nil // Nothing was sealed yet.
	}
	if err != nil {
		return ring{}, err
	}
	secret, err := b.secretOf(kept)
	if err != nil {
		return ring{}, err
	}
	return b.unwrap(kept, secret)
}

// unwrap opens the data keys. Who has the wrong secret is told so, and not that the file is damaged.
func (b *Box) unwrap(kept content, secret []byte) (ring, error) {
	w, err := kept.wrapping(secret)
	if err != nil {
		return ring{}, fmt.Errorf("%s is damaged: %w; %s", b.file(), err, putBack)
	}
	if w.id != kept.ID {
		return ring{}, fmt.Errorf("%s: %w", kept.opener(b.o.Dir), ErrWrong)
	}
	keys, err := kept.open(w)
	if err != nil {
		return ring{}, fmt.Errorf("%s is damaged: %w; %s", b.file(), err, putBack)
	}
	return keys, nil
}

const putBack = "put it back from a backup, or give up what it seals with osupgrade-agent seal reset"

// Way returns how the wrapping key is kept; empty when nothing was sealed yet or the file
// cannot be read.
func (b *Box) Way() Way {
	kept, err := b.read()
	if err != nil {
		return ""
	}
	return kept.Way
}

// Opener says what opens the strongbox; empty when nothing was sealed yet or the file cannot
// be read.
func (b *Box) Opener() string {
	kept, err := b.read()
	if err != nil {
		return ""
	}
	return kept.opener(b.o.Dir)
}

// Missing returns the name of the key file of its own that opens the strongbox and is not in
// its folder, as in a backup; empty when there is none or it is there.
func (b *Box) Missing() string {
	kept, err := b.read()
	if err != nil || kept.Way != KeyFile || filepath.IsAbs(kept.File) {
		return ""
	}
	if _, err := os.Stat(kept.keyPath(b.o.Dir)); !errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return kept.File
}

// PutBack puts the key file of its own in its place, which is missing.
func (b *Box) PutBack(secret []byte) error {
	kept, err := b.read()
	if err != nil {
		return err
	}
	if _, err := b.unwrap(kept, secret); err != nil {
		return err
	}
	if err := durable.WriteFile(kept.keyPath(b.o.Dir), secret, 0o600); err != nil {
		return err
	}
	return b.Retry()
}

// ErrWrong means that a secret does not open the strongbox.
var ErrWrong = errors.New("this is not the one that opens the strongbox; put the right one back")

// Unaided returns why the strongbox would not open by itself at the next start, a SealedError;
// nil if it would, or if nothing was sealed yet.
func (b *Box) Unaided() error {
	if _, err := b.load(); err != nil {
		return &SealedError{Why: err.Error()}
	}
	return nil
}

// Prove returns why a secret does not open the strongbox, such as ErrWrong. It opens nothing.
func (b *Box) Prove(secret []byte) error {
	kept, err := b.read()
	if err == nil {
		_, err = b.unwrap(kept, secret)
	}
	return err
}

// Unseal opens the strongbox with the passphrase, or the content of the key file or
// credential, that a person has given. Nothing happens to one that is open.
func (b *Box) Unseal(secret []byte) error {
	b.unsealing.Lock()
	defer b.unsealing.Unlock()
	if b.isOpen() {
		return nil
	}
	kept, err := b.read()
	var keys ring
	if err == nil {
		keys, err = b.unwrap(kept, secret)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.isOpen():
		return nil
	case errors.Is(err, ErrWrong):
		return err
	}
	return b.finish(keys, err)
}

// Seal returns a text from which Open gets the secret back, for the same purpose alone.
func (b *Box) Seal(secret []byte, purpose string) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.closed(); err != nil {
		return "", err
	}
	if len(b.keys.Keys) == 0 {
		if err := b.make(); err != nil {
			return "", fmt.Errorf("cannot make a strongbox: %w", err)
		}
	}
	key := b.keys.newest()
	text, err := seal(key.Key, secret, purpose)
	if err != nil {
		return "", err
	}
	return key.prefix() + base64.StdEncoding.EncodeToString(text), nil
}

// ErrNotOurs means that a secret was sealed by another strongbox, or for another purpose, or
// is damaged.
var ErrNotOurs = errors.New("it was not sealed by the strongbox of this site")

// Open returns the secret in a text that Seal has returned.
func (b *Box) Open(sealed, purpose string) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.closed(); err != nil {
		return nil, err
	}
	key, found := b.keys.of(sealed)
	if !found {
		return nil, ErrNotOurs
	}
	text, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(sealed, key.prefix()))
	if err != nil {
		return nil, ErrNotOurs
	}
	secret, err := open(key.Key, text, purpose)
	if err != nil {
		return nil, ErrNotOurs
	}
	return secret, nil
}

// Stale reports whether a text was sealed by an older data key than the newest: who has the
// secret should seal it again.
func (b *Box) Stale(sealed string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, found := b.keys.of(sealed)
	return found && key.ID != b.keys.newest().ID
}

// ring are the data keys, the newest last. None is ever removed: what an older one has
// sealed, such as in a backup, stays readable with this strongbox.
type ring struct {
	Keys []dataKey `json:"keys"`
}

type dataKey struct {
	// ID is how a sealed text names it.
	ID  string `json:"id"`
	Key []byte `json:"key"`
}

func (r ring) newest() dataKey { return r.Keys[len(r.Keys)-1] }

// with returns the ring with another key, which is the newest.
func (r ring) with() (ring, error) {
	random := make([]byte, idBytes+keyBytes)
	if _, err := rand.Read(random); err != nil {
		return ring{}, err
	}
	next := dataKey{ID: hex.EncodeToString(random[:idBytes]), Key: random[idBytes:]}
	return ring{Keys: append(append([]dataKey{}, r.Keys...), next)}, nil
}

func (r ring) check() error {
	if len(r.Keys) == 0 {
		return errors.New("it has no keys")
	}
	for _, k := range r.Keys {
		if len(k.Key) != keyBytes {
			return fmt.Errorf("a key has %d bytes, not %d", len(k.Key), keyBytes)
		}
	}
	return nil
}

// of returns the key that a text was sealed with.
func (r ring) of(sealed string) (dataKey, bool) {
	id, _, named := strings.Cut(sealed, idEnd)
	for _, k := range r.Keys {
		if named && k.ID == id {
			return k, true
		}
	}
	return dataKey{}, false
}

// idEnd ends the id of the key in a sealed text; it is in no base64.
const idEnd = ":"

func (k dataKey) prefix() string { return k.ID + idEnd }

// keyBytes is the size of each key, idBytes that of its id.
const keyBytes, idBytes = 32, 8

func seal(key, secret []byte, purpose string) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, err
	}
	return aead.Seal(nonce, nonce, secret, []byte(purpose)), nil
}

func open(key, text []byte, purpose string) ([]byte, error) {
	aead, err := newAEAD(key)
	if err != nil {
		return nil, err
	}
	if len(text) < aead.NonceSize() {
		return nil, errors.New("it is cut short")
	}
	return aead.Open(nil, text[:aead.NonceSize()], text[aead.NonceSize():], []byte(purpose))
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// make makes the strongbox at its first use.
func (b *Box) make() error {
	keys, err := ring{}.with()
	if err != nil {
		return err
	}
	if err := b.keep(keys, Target{Way: KeyFile}); err != nil {
		return err
	}
	b.keys = keys
	return nil
}
