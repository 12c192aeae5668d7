package credential

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/durable"
)

// Box seals secrets that a site must be able to read again, such as those that sign
// webhooks, by a key in a file of its own. A copy of what is sealed, such as a backup, is no
// use without that file.
type Box struct{ aead cipher.AEAD }

// boxKeySize is the size of the key, in bytes.
const boxKeySize = 32

// OpenBox reads the key in a file, and makes one when there is none.
func OpenBox(path string) (*Box, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, boxKeySize)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
			err = durable.WriteFile(path, key, 0o600)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open the key that seals secrets: %w", err)
	}
	if len(key) != boxKeySize {
		return nil, fmt.Errorf("the key that seals secrets, %s, is damaged: it has %d bytes, not %d; remove it, and set the secrets of webhooks anew", path, len(key), boxKeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &Box{aead}, nil
}

// Seal returns a text from which Open gets the secret back, for the same purpose alone.
func (b *Box) Seal(secret []byte, purpose string) (string, error) {
	nonce := make([]byte, b.aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b.aead.Seal(nonce, nonce, secret, []byte(purpose))), nil
}

// ErrNotOurs means that a secret was sealed by another key, or for another purpose, or is
// damaged.
var ErrNotOurs = errors.New("it was not sealed by the key of this site")

// Open returns the secret in a text that Seal has returned.
func (b *Box) Open(sealed, purpose string) ([]byte, error) {
	text, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil || len(text) < b.aead.NonceSize() {
		return nil, ErrNotOurs
	}
	secret, err := b.aead.Open(nil, text[:b.aead.NonceSize()], text[b.aead.NonceSize():], []byte(purpose))
	if err != nil {
		return nil, ErrNotOurs
	}
	return secret, nil
}
