package join

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Keys are the keys of hosts.
type Keys interface {
	// Registrable returns why Register would refuse a key.
	Registrable(public string, t Token, host string) error
	// Register lets a host in with a key as a token says; it has no effect when the host has it.
	Register(public string, t Token, host string) error
	// Registered reports whether a host has a key.
	Registered(public, tenant, host string) (bool, error)
}

// tokenFile is what the file of a token holds. Sum ties it to the secret, so that a
// file that was damaged or edited lets nobody in.
type tokenFile struct {
	Token
	Uses []Use `json:"uses,omitempty"`
	// Ended says that somebody has asked to join with it after it had expired.
	Ended bool   `json:"ended,omitempty"`
	Sum   string `json:"sum"`
}

func (f tokenFile) sum(id string) string {
	f.Sum = ""
	text, err := json.Marshal(f) // In one form: the members are in order, the labels sorted.
	if err != nil {
		return "" // It cannot be: no member can fail.
	}
	sum := sha256.Sum256(append([]byte(id), text...))
	return hex.EncodeToString(sum[:])
}

// Tokens are the join tokens of a site: a credential for each, named by the SHA-256 of
// its secret. Adding or removing one takes effect at once, without a restart.
type Tokens struct {
	stored credential.Store
	// at is called with the label of each action (tests crash there).
	at func(label string)
	// mu is held while a token is used. One process at a time is the site.
	mu sync.Mutex
	// waiting says by the public keys of the hosts that wait for approval until when they do; nil
	// while they have to be listed.
	waiting map[string]time.Time
}

// NewTokens returns the tokens that a store has. at is called before and after each action
// with its label; nil means nobody.
func NewTokens(stored credential.Store, at func(label string)) *Tokens {
	if at == nil {
		at = func(string) {}
	}
	return &Tokens{stored: stored, at: at}
}

// maxTokens is how many tokens there may be, and keepExpired how long one is listed
// after its end.
const maxTokens, keepExpired = 10_000, 7 * 24 * time.Hour

// Add makes a token and returns its secret, which is not stored, and its id.
func (t *Tokens) Add(token Token, now time.Time) (secret, id string, err error) {
	token.Expires, token.MaxHosts = token.Expires.UTC().Truncate(time.Second), max(token.MaxHosts, 1)
	if !v1.ValidHostPattern(token.Host) || token.Tenant == "" || token.Application == "" {
		return "", "", fmt.Errorf("a join token needs a tenant, an application and a host; these are %q, %q and %q", token.Tenant, token.Application, token.Host)
	}
	if err := t.makeRoom(now); err != nil {
		return "", "", err
	}
	if secret, err = newSecret(); err != nil {
		return "", "", err
	}
	id = idOf(secret)
	body, err := encode(id, tokenFile{Token: token})
	if err != nil {
		return "", "", err
	}
	return secret, id, credential.Put(t.stored, id, body)
}

// makeRoom removes tokens that expired long ago.
func (t *Tokens) makeRoom(now time.Time) error {
	all, err := t.List()
	if err != nil {
		return err
	}
	left := len(all)
	for _, k := range all {
		if k.Damage == nil && now.Sub(k.Expires) > keepExpired {
			if err := t.Remove(k.ID); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("cannot remove an expired join token: %w", err)
			}
			left--
		}
	}
	if left >= maxTokens {
		return fmt.Errorf("there are %d join tokens, as many as there may be; remove some", left)
	}
	return nil
}

func idOf(secret string) string {
	hash := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(hash[:])
}

func encode(id string, file tokenFile) ([]byte, error) {
	file.Sum = file.sum(id)
	body, err := format.JoinToken.Encode(file)
	return append(body, '\n'), err
}

func decode(id string, body []byte) (file tokenFile, err error) {
	if err := format.JoinToken.Decode(body, &file); format.IsUnsupported(err) {
		return tokenFile{}, fmt.Errorf("cannot read a join token: %w", err)
	} else if err != nil || file.Sum != file.sum(id) {
		return tokenFile{}, ErrDamaged
	}
	return file, nil
}

func (t *Tokens) read(id string) (file tokenFile, err error) {
	body, err := t.stored.Get(id)
	if errors.Is(err, os.ErrNotExist) {
		return tokenFile{}, ErrUnknown
	}
	if err != nil {
		return tokenFile{}, fmt.Errorf("cannot look up a join token: %w", err)
	}
	return decode(id, body)
}

// update replaces the file of a token by what change makes of it.
func (t *Tokens) update(id string, change func(f *tokenFile) error) (changed tokenFile, err error) {
	err = credential.Update(t.stored, id, func(body []byte) ([]byte, error) {
		if changed, err = decode(id, body); err != nil {
			return nil, err
		}
		changed.Uses = slices.Clone(changed.Uses)
		if err := change(&changed); err != nil {
			return nil, err
		}
		return encode(id, changed)
	})
	t.waiting = nil
	if errors.Is(err, os.ErrNotExist) {
		return changed, ErrUnknown
	}
	return changed, err
}

// take gives a host a place, unless the token was removed or its places were taken meanwhile.
func (t *Tokens) take(id string, r v1.Join, from string, now time.Time) (tokenFile, error) {
	return t.update(id, func(f *tokenFile) error {
		if do, err := decide(*f, r, now); err != nil || do != take {
			return cmp.Or(err, ErrUsed)
		}
		use := Use{Host: r.Host, Key: r.PublicKey, At: now.UTC().Truncate(time.Second), From: from}
		at := f.place(r.Host)
		if at < 0 && len(f.Uses) >= f.MaxHosts { // The oldest refusal is forgotten, so that the list stays short.
			at = slices.IndexFunc(f.Uses, func(u Use) bool { return u.Refused != "" })
		}
		if at >= 0 {
			f.Uses[at] = use
		} else {
			f.Uses = append(f.Uses, use)
		}
		return nil
	})
}

// note changes the place of a host that has it with a key. A token that is removed by now need not
// know any more.
func (t *Tokens) note(id, host, public string, change func(u *Use)) error {
	_, err := t.update(id, func(f *tokenFile) error {
		if at := f.place(host); at >= 0 && f.Uses[at].Key == public {
			change(&f.Uses[at])
		}
		return nil
	})
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	return err
}

// ErrDamaged means that the file of a token is not as it was written.
var ErrDamaged = errors.New("the file of the join token is damaged; remove the token, and make a new one with osupgrade-agent credentials join-token create")

// Kept is a token as it is kept: without its secret.
type Kept struct {
	// ID is the SHA-256 of the secret.
	ID   string
	Made time.Time
	Token
	// Uses are the places that hosts have taken.
	Uses []Use
	// Ended says that it was seen to have expired.
	Ended bool
	// Damage tells why it cannot be read.
	Damage error
}

// State returns open, used or expired. A token of which all places are taken is used for ever.
func (k Kept) State(now time.Time) string {
	switch {
	case k.MaxHosts == 1 && len(k.Uses) > 0, held(k.Uses) >= k.MaxHosts:
		return "used"
	case k.Ended || !now.Before(k.Expires):
		return "expired"
	}
	return "open"
}

// List returns all tokens.
func (t *Tokens) List() ([]Kept, error) {
	entries, err := t.stored.List()
	if err != nil {
		return nil, err
	}
	all := make([]Kept, 0, len(entries))
	for _, e := range entries {
		file, err := t.read(e.Name)
		if errors.Is(err, ErrUnknown) {
			continue // It was removed meanwhile.
		}
		all = append(all, Kept{ID: e.Name, Made: e.Made, Token: file.Token, Uses: file.Uses, Ended: file.Ended, Damage: err})
	}
	return all, nil
}

// Remove removes a token by its id. The hosts that wait for approval by it wait no longer.
func (t *Tokens) Remove(id string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = nil
	return credential.Remove(t.stored, id)
}

// Forget ends what tokens allow to a host of which a key is withdrawn: the key must not come back.
// A token for one host is removed. Of one for several, the host keeps its place and cannot use it
// again, also not with the key that replaced the one with which it joined.
func (t *Tokens) Forget(public, tenant, host string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	all, err := t.List()
	if err != nil {
		return err
	}
	for _, k := range all {
		at := slices.IndexFunc(k.Uses, func(u Use) bool {
			return u.Key == public || k.MaxHosts > 1 && k.Tenant == tenant && u.Host == host
		})
		switch {
		case at < 0:
			continue
		case k.MaxHosts == 1:
			t.waiting = nil
			err = credential.Remove(t.stored, k.ID)
		default:
			err = t.note(k.ID, k.Uses[at].Host, k.Uses[at].Key, func(u *Use) { u.Withdrawn = true })
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("cannot end the join token of a key: %w", err)
		}
	}
	return nil
}

// Joined is what became of a request to join.
type Joined struct {
	Token
	// ID is that of the token.
	ID string
	// Waiting says that the host waits for approval.
	Waiting bool
}

// Join lets a host in that has a token's secret and a key, and returns what the token
// says of it. It is on disk that a place of the token is taken before the key is registered,
// and that the key is registered before Join returns. A refusal takes no place.
func (t *Tokens) Join(secret string, r v1.Join, from string, now time.Time, keys Keys) (Joined, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := idOf(secret)
	file, err := t.read(id)
	if err != nil {
		return Joined{}, err
	}
	do, err := decide(file, r, now)
	if errors.Is(err, ErrExpired) && !file.Ended {
		if _, writing := t.update(id, func(f *tokenFile) error { f.Ended = true; return nil }); writing != nil {
			return Joined{}, writing
		}
	}
	if err != nil {
		return Joined{}, err
	}
	joined := Joined{Token: file.Token, ID: id}
	switch do {
	case wait:
		joined.Waiting = true
		return joined, nil
	case tellAgain:
		registered, err := keys.Registered(r.PublicKey, file.Tenant, r.Host)
		if err == nil && !registered {
			err = ErrWithdrawn
		}
		return joined, err
	}
	if err := keys.Registrable(r.PublicKey, file.Token, r.Host); err != nil {
		return Joined{}, err
	}
	if do == take {
		t.at("before use")
		if _, err = t.take(id, r, from, now); err != nil {
			return Joined{}, err
		}
		t.at("after use")
		if file.Approve {
			joined.Waiting = true
			return joined, nil
		}
	}
	return joined, t.register(id, file.Token, r.Host, r.PublicKey, keys)
}

// register registers the key of a host that has a place.
func (t *Tokens) register(id string, token Token, host, public string, keys Keys) error {
	if err := keys.Register(public, token, host); err != nil {
		return err
	}
	t.at("after register")
	if err := t.note(id, host, public, func(u *Use) { u.Registered = true }); err != nil {
		return err
	}
	t.at("after join")
	return nil
}
