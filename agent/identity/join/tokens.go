package join

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	v1 "github.com/osupgrade/terraform-provider-osupgrade/agent/wire/v1"
)

// Keys are the keys of hosts.
type Keys interface {
	// Registrable returns why Register would refuse a key.
	Registrable(public, tenant, host string, replace bool) error
	// Register lets a host in with a key; it has no effect when the host has it.
	Register(public, tenant, host string, replace bool) error
	// Registered reports whether a host has a key.
	Registered(public, tenant, host string) (bool, error)
}

// tokenFile is what the file of a token holds. Sum ties it to the secret, so that a
// file that was damaged or edited lets nobody in.
type tokenFile struct {
	Token
	Used *Use   `json:"used,omitempty"`
	Sum  string `json:"sum"`
}

func (f tokenFile) sum(id string) string {
	text := fmt.Sprintf("%s\n%q\n%q\n%q\n%s\n%t\n%q", id, f.Tenant, f.Host, f.Application, f.Expires.UTC().Format(time.RFC3339Nano), f.Replace, f.By)
	if f.Used != nil {
		text += fmt.Sprintf("\n%q\n%q\n%s\n%t", f.Used.Host, f.Used.Key, f.Used.At.UTC().Format(time.RFC3339Nano), f.Used.Registered)
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Tokens are the join tokens of a site: a credential for each, named by the SHA-256 of
// its secret. Adding or removing one takes effect at once, without a restart.
type Tokens struct {
	stored credential.Store
	// at is called with the label of each step (tests crash there).
	at func(label string)
	// mu is held while a token is used. One process at a time is the site.
	mu sync.Mutex
}

// NewTokens returns the tokens that a store has. at is called before and after each step
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
	token.Expires = token.Expires.UTC().Truncate(time.Second)
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

// use keeps how a token was used, unless it was removed or another use was kept meanwhile.
func (t *Tokens) use(id string, use Use) error {
	err := credential.Update(t.stored, id, func(body []byte) ([]byte, error) {
		file, err := decode(id, body)
		if err == nil && file.Used != nil && (file.Used.Key != use.Key || file.Used.Host != use.Host) {
			err = ErrUsed
		}
		if err != nil {
			return nil, err
		}
		file.Used = &use
		return encode(id, file)
	})
	if errors.Is(err, os.ErrNotExist) {
		return ErrUnknown
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
	// Used is how it was used; nil means that it was not.
	Used *Use
	// Damage tells why it cannot be read.
	Damage error
}

// State returns open, used or expired. A token that is used is that for ever.
func (k Kept) State(now time.Time) string {
	switch {
	case k.Used != nil:
		return "used"
	case !now.Before(k.Expires):
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
		all = append(all, Kept{ID: e.Name, Made: e.Made, Token: file.Token, Used: file.Used, Damage: err})
	}
	return all, nil
}

// Remove removes a token by its id.
func (t *Tokens) Remove(id string) error { return credential.Remove(t.stored, id) }

// Forget removes the tokens by which a key has come: who has a withdrawn key must
// not bring it back.
func (t *Tokens) Forget(public string) error {
	all, err := t.List()
	if err != nil {
		return err
	}
	for _, k := range all {
		if k.Used != nil && k.Used.Key == public {
			if err := t.Remove(k.ID); err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("cannot remove the join token of a key: %w", err)
			}
		}
	}
	return nil
}

// Join lets a host in that has a token's secret and a key, and returns what the token
// says of it. It is on disk that the token is used up before the key is registered,
// and that the key is registered before Join returns. A refusal uses up nothing.
func (t *Tokens) Join(secret string, r v1.Join, now time.Time, keys Keys) (Token, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := idOf(secret)
	file, err := t.read(id)
	if err != nil {
		return Token{}, err
	}
	do, err := decide(file.Token, file.Used, r, now)
	if err != nil {
		return Token{}, err
	}
	if do == tellAgain {
		registered, err := keys.Registered(r.PublicKey, file.Tenant, r.Host)
		if err == nil && !registered {
			err = ErrWithdrawn
		}
		return file.Token, err
	}
	if err := keys.Registrable(r.PublicKey, file.Tenant, r.Host, file.Replace); err != nil {
		return Token{}, err
	}
	if do == useIt {
		t.at("before use")
		file.Used = &Use{Host: r.Host, Key: r.PublicKey, At: now.UTC().Truncate(time.Second)}
		if err := t.use(id, *file.Used); err != nil {
			return Token{}, err
		}
		t.at("after use")
	}
	if err := keys.Register(r.PublicKey, file.Tenant, r.Host, file.Replace); err != nil {
		return Token{}, err
	}
	t.at("after register")
	file.Used.Registered = true
	// A token that is removed by now has let the host in: it need not know any more.
	if err := t.use(id, *file.Used); err != nil && !errors.Is(err, ErrUnknown) {
		return Token{}, err
	}
	t.at("after join")
	return file.Token, nil
}
