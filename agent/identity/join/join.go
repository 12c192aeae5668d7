// Package join lets hosts join a site: with a token that somebody has made for one host or
// for several, each brings the public part of a key that it made itself.
//
// It decides whether a token lets a host in, and keeps which places of a token are taken and
// which hosts wait for approval. It knows no transport, and keeps of a token only the hash.
package join

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
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
	// MaxHosts is how many hosts may join: the places of the token.
	MaxHosts int `json:"max-hosts"`
	// Labels are given to each host that joins. They win over what the host says of itself.
	Labels map[string]string `json:"labels,omitempty"`
	// Approve keeps each host waiting until a person has approved it.
	Approve bool `json:"approve,omitempty"`
	// Replace lets a host join that has a key already.
	Replace bool `json:"replace,omitempty"`
	// By is who made the token.
	By string `json:"by,omitempty"`
}

// About says what a token is for.
func (t Token) About() string {
	text := "for host " + t.Host
	if t.MaxHosts > 1 {
		text = fmt.Sprintf("for up to %d hosts %s", t.MaxHosts, t.Host)
	}
	text += fmt.Sprintf(", application %s, until %s", t.Application, t.Expires.UTC().Format(time.RFC3339))
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		text += ", label " + key + "=" + t.Labels[key]
	}
	if t.Approve {
		text += ", each host waits for approval"
	}
	if t.Replace {
		text += ", may replace a key"
	}
	return text
}

// Use is a place of a token that a host has taken.
type Use struct {
	Host string    `json:"host"`
	Key  string    `json:"key"`
	At   time.Time `json:"at"`
	// From is the address from which the host has asked.
	From string `json:"from,omitempty"`
	// Approved and Refused say who has decided that a host may join that waited for approval,
	// or that it may not.
	Approved string `json:"approved,omitempty"`
	Refused  string `json:"refused,omitempty"`
	// Registered says that the key of the host was registered: to ask again does not
	// register it once more, as it may have been withdrawn since.
	Registered bool `json:"registered,omitempty"`
	// Withdrawn says that the key was withdrawn: the host does not come back with this token.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// Status returns waiting, refused, withdrawn or joined.
func (u Use) Status(t Token) string {
	switch {
	case u.Withdrawn:
		return v1.JoinWithdrawn
	case u.Refused != "":
		return v1.JoinRefused
	case t.Approve && !u.Registered:
		return v1.JoinWaiting
	}
	return v1.JoinJoined
}

// Errors of a token. Each says what to do.
var (
	ErrUnknown   = errors.New("the join token is unknown: it was removed, mistyped, or is that of another site; make one with osupgrade-agent credentials join-token create")
	ErrExpired   = errors.New("the join token has expired; make a new one with osupgrade-agent credentials join-token create")
	ErrUsed      = errors.New("the join token was used already, by another key or host; make a new one with osupgrade-agent credentials join-token create")
	ErrName      = errors.New("a host with another key has joined")
	ErrKey       = errors.New("the key of this host has joined")
	ErrFull      = errors.New("the join token has no place left")
	ErrWithdrawn = errors.New("the key of the host was withdrawn after it had joined with this token; make a new token, and remove the file of the key on the host")
	ErrRefused   = errors.New("a person has refused this host; if that was a mistake, make a new token with osupgrade-agent credentials join-token create")
	ErrHost      = errors.New("the join token is not for this host")
)

// next is what follows from a request to join.
type next int

const (
	// take: the host takes a place. Then its key is registered, or it waits for approval.
	take next = iota
	// wait: the host has a place and waits for approval.
	wait
	// register: the host has a place, and the site ended before its key was registered.
	register
	// tellAgain: the key was registered, and the host asks again.
	tellAgain
)

// decide returns what follows from a request of a host at a time. A host that has a place
// can ask again with the same key until the token expires, as the answer may have been lost.
// With another key it can only if it was refused, or if the token is for several hosts and may
// replace keys: a token for one host is used once.
func decide(f tokenFile, r v1.Join, now time.Time) (next, error) {
	if f.over(now) {
		return 0, ErrExpired
	}
	at := f.place(r.Host)
	if at < 0 {
		return take, f.admits(r)
	}
	switch u := f.Uses[at]; {
	case u.Withdrawn:
		return 0, ErrWithdrawn
	case u.Key != r.PublicKey && !f.hasKey(r.PublicKey) && (u.Refused != "" || f.MaxHosts > 1 && f.Replace):
		return take, nil
	case u.Key != r.PublicKey && f.MaxHosts > 1 && !f.hasKey(r.PublicKey):
		return 0, fmt.Errorf("%w as %s: give this host a name of its own with --host, or let it take that one's place by a token with --replace", ErrName, u.Host)
	case u.Key != r.PublicKey:
		return 0, f.used(r)
	case u.Refused != "":
		return 0, ErrRefused
	case u.Registered:
		return tellAgain, nil
	case f.Approve && u.Approved == "":
		return wait, nil
	}
	return register, nil
}

// used returns why a token that has let in this key, or that was for one host, lets in nobody
// else. Who has the key may know under which name it has joined.
func (f tokenFile) used(r v1.Join) error {
	if at := slices.IndexFunc(f.Uses, func(u Use) bool { return u.Key == r.PublicKey }); at >= 0 {
		return fmt.Errorf("%w as %s: give that name with --host, or remove the file of the key to join as another host", ErrKey, f.Uses[at].Host)
	}
	return ErrUsed
}

// admits returns why a host without a place gets none.
func (f tokenFile) admits(r v1.Join) error {
	switch {
	case f.MaxHosts == 1 && len(f.Uses) > 0, f.hasKey(r.PublicKey):
		return f.used(r)
	case !matches(f.Host, r.Host):
		return fmt.Errorf("%w: it is for %q, and this is %q; give the right one with --host, or make a token for it", ErrHost, f.Host, r.Host)
	case held(f.Uses) >= f.MaxHosts:
		return fmt.Errorf("%w: %d hosts have taken all of them; make a new one with osupgrade-agent credentials join-token create", ErrFull, held(f.Uses))
	}
	return nil
}

// held returns how many places are taken. A host that was refused takes none: whoever has the token
// could otherwise use it up with made-up names.
func held(uses []Use) (n int) {
	for _, u := range uses {
		if u.Refused == "" {
			n++
		}
	}
	return n
}

// over reports whether a token has expired. One that was once seen to have stays so, even if the
// clock is set back.
func (f tokenFile) over(now time.Time) bool { return f.Ended || !now.Before(f.Expires) }

// place returns the index of the place that a host has taken, or -1.
func (f tokenFile) place(host string) int {
	return slices.IndexFunc(f.Uses, func(u Use) bool { return u.Host == host })
}

func (f tokenFile) hasKey(public string) bool {
	return slices.ContainsFunc(f.Uses, func(u Use) bool { return u.Key == public })
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
