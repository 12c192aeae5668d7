// Package join lets a host join a site once: with a token that somebody has made
// for it, it brings the public part of a key that it made itself.
//
// It decides whether a token lets a host in. It knows no transport, and keeps of a
// token only the hash.
package join

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Token is what a join token allows.
type Token struct {
	Tenant string `json:"tenant"`
	// Host is the name of the host that may join, or a pattern with "*".
	Host        string    `json:"host"`
	Application string    `json:"application"`
	Expires     time.Time `json:"expires"`
	// Replace lets a host join that has a key already.
	Replace bool `json:"replace,omitempty"`
	// By is who made the token.
	By string `json:"by,omitempty"`
}

// About says what a token is for.
func (t Token) About() string {
	text := fmt.Sprintf("for host %s, application %s, until %s", t.Host, t.Application, t.Expires.UTC().Format(time.RFC3339))
	if t.Replace {
		text += ", may replace a key"
	}
	return text
}

// Use is how a token was used.
type Use struct {
	Host string    `json:"host"`
	Key  string    `json:"key"`
	At   time.Time `json:"at"`
	// Registered says that the key of the host was registered: to ask again does not
	// register it once more, as it may have been withdrawn since.
	Registered bool `json:"registered,omitempty"`
}

// Errors of a token. Each says what to do.
var (
	ErrUnknown   = errors.New("the join token is unknown: it was removed, mistyped, or is that of another site; make one with osupgrade-agent credentials join-token create")
	ErrExpired   = errors.New("the join token has expired; make a new one with osupgrade-agent credentials join-token create")
	ErrUsed      = errors.New("the join token was used already, by another key or host; make a new one with osupgrade-agent credentials join-token create")
	ErrWithdrawn = errors.New("the key of the host was withdrawn after it had joined with this token; make a new token, and remove the file of the key on the host")
	ErrHost      = errors.New("the join token is not for this host")
)

// next is what follows from a request to join.
type next int

const (
	// useIt: the token is used up, then the key is registered.
	useIt next = iota
	// register: the token was used up by this key, and the site ended before the key was
	// registered.
	register
	// tellAgain: the key was registered, and the host asks again.
	tellAgain
)

// decide returns what follows from a request of a host at a time. Who used the token
// can ask again with the same key until it expires, as the answer may have been
// lost; nobody else can.
func decide(t Token, used *Use, r v1.Join, now time.Time) (next, error) {
	switch {
	case !now.Before(t.Expires):
		return 0, ErrExpired
	case used != nil && (used.Key != r.PublicKey || used.Host != r.Host):
		return 0, ErrUsed
	case used != nil && used.Registered:
		return tellAgain, nil
	case used != nil:
		return register, nil
	case !matches(t.Host, r.Host):
		return 0, fmt.Errorf("%w: it is for %q, and this is %q; give the right one with --host, or make a token for it", ErrHost, t.Host, r.Host)
	}
	return useIt, nil
}

// matches reports whether a pattern matches the name of a host. A valid name has no
// character that means anything to path.Match, and no slash.
func matches(pattern, host string) bool {
	ok, err := path.Match(pattern, host)
	return err == nil && ok
}

// The text of a token is "osuj_", its secret, and if the site has an authority of its
// own "_" and the authority's fingerprint.
const prefix, secretBytes = "osuj_", 24

func newSecret() (string, error) {
	secret := make([]byte, secretBytes)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("cannot create a join token: %w", err)
	}
	return prefix + hex.EncodeToString(secret), nil
}

// Text returns a token as it is given to a person.
func Text(secret, fingerprint string) string {
	if fingerprint == "" {
		return secret
	}
	return secret + "_" + fingerprint
}

// ErrText means that a text is not a join token. It does not repeat the text, which may
// be most of one.
var ErrText = errors.New("this is not a join token: it begins with " + prefix + " and is one word; copy it whole, as osupgrade-agent credentials join-token create has printed it")

// Parse returns the secret that a host sends, and the fingerprint of the authority;
// empty if the site has a certificate that everybody trusts.
func Parse(text string) (secret, fingerprint string, err error) {
	rest, ours := strings.CutPrefix(strings.TrimSpace(text), prefix)
	random, fingerprint, pinned := strings.Cut(rest, "_")
	if !ours || !isHex(random, secretBytes) || pinned && !isHex(fingerprint, sha256.Size) {
		return "", "", ErrText
	}
	return prefix + random, fingerprint, nil
}

func isHex(text string, size int) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == size && text == strings.ToLower(text)
}
