package principal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/base/wait"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/identity/access"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Token is the name, tenant and roles of a token. The secret text is not stored, only its
// SHA-256.
type Token struct {
	Name   string        `json:"name"`
	Tenant string        `json:"tenant"`
	Allow  []access.Role `json:"allow"`
	// Expires is the end of its validity; nil means never.
	Expires *time.Time `json:"expires,omitempty"`
	// Made is when it was made; nil in the file of an old one, which is as old as its file.
	Made *time.Time `json:"made,omitempty"`
	// Login is set for the token of a login.
	Login *Login `json:"login,omitempty"`
	// Used is when it was last used, to the minute, if it is one of a list; zero means never.
	Used time.Time `json:"-"`
}

// Login says for whom and how long the token of a login is good.
type Login struct {
	// Of is OfUser or OfApprole; its name is that of the token.
	Of string `json:"of"`
	// Proof is what the proof was of: the time at which the password was set, or the
	// role-id. With another one the login has ended.
	Proof string `json:"proof"`
	// Renewed is when the life of the token was last extended, by Seconds and until Until at
	// the latest.
	Renewed time.Time `json:"renewed"`
	Seconds int       `json:"seconds"`
	Until   time.Time `json:"until"`
}

// The values of Login.Of.
const (
	OfUser    = "user"
	OfApprole = "approle"
)

// tokenFile is what the file of a token holds. Sum ties the token's properties to its
// text, so that a file that was damaged or edited does not make it another's token.
type tokenFile struct {
	Token
	Sum string `json:"sum"`
}

// sum returns the sum for the token of an id.
func (t Token) sum(id string) string {
	var expires string
	if t.Expires != nil {
		expires = t.Expires.UTC().Format(time.RFC3339Nano)
	}
	text := fmt.Sprintf("%s\n%q\n%q\n%q\n%s", id, t.Name, t.Tenant, t.Allow, expires)
	if t.Made != nil {
		text += "\n" + t.Made.UTC().Format(time.RFC3339Nano)
	}
	if l := t.Login; l != nil {
		text += fmt.Sprintf("\n%q\n%q\n%s\n%d\n%s", l.Of, l.Proof, l.Renewed.UTC().Format(time.RFC3339Nano), l.Seconds, l.Until.UTC().Format(time.RFC3339Nano))
	}
	return hashOf(text)
}

// Check returns an error if a token with these properties cannot be made. Whether there
// are the policies that it names is not known here.
func (t Token) Check() error {
	if !validName(t.Name) {
		return wrong("name", "%q is invalid; use 1 to %d printable characters", t.Name, maxName)
	}
	for _, role := range t.Allow {
		if !access.IsRole(role) && !names.Valid(role) {
			return wrong("allow", "%.100q is the name of neither a role nor a policy; use %s", role, strings.Join(access.Roles(), ", "))
		}
	}
	return nil
}

// About says what the token is, for people.
func (t Token) About() string {
	text := fmt.Sprintf("name %s, allows %s", t.Name, strings.Join(t.Allow, " "))
	if t.Tenant == access.AnyTenant {
		text += ", for all tenants"
	}
	if t.Expires != nil {
		text += ", until " + t.Expires.UTC().Format(time.RFC3339)
	}
	return text
}

// Principal returns who has the token.
func (t Token) Principal() access.Principal {
	return access.Principal{Name: t.Name, Tenant: t.Tenant, Roles: t.Allow}
}

// IsOnly reports whether a role is the only one of the token. Only a token that can do little may be
// where programs and proxies log it, or hosts keep it.
func (t Token) IsOnly(role access.Role) bool { return slices.Equal(t.Allow, []access.Role{role}) }

// Tokens are the tokens that the API takes: a credential for each, named by its SHA-256.
// Adding or removing one takes effect at once, without a restart.
type Tokens struct {
	stored credential.Store
	// read returns the token of an id.
	read *credential.Decoded[Token]
	uses *uses
	// changes are told that a token was changed, added or removed.
	changes wait.Watchers
}

// NewTokens returns the tokens that a store has. beside has the entry that says when each
// was last used.
func NewTokens(stored, beside credential.Store) *Tokens {
	return &Tokens{stored: stored, read: credential.NewDecoded(stored, "a token", decodeToken), uses: &uses{stored: beside}}
}

// Run reports changes of the tokens to who watches them, and keeps when they were used,
// until ctx ends.
func (t *Tokens) Run(ctx context.Context, log *slog.Logger) {
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		t.uses.keep(ctx, log, func(id string) bool {
			_, err := t.stored.Get(id)
			return !errors.Is(err, os.ErrNotExist)
		})
	}()
	t.stored.Watch(ctx, t.changes.Notify)
	<-kept
}

// Watch returns a channel that is signalled after tokens have changed, until stop.
func (t *Tokens) Watch() (changed <-chan struct{}, stop func()) { return t.changes.Add() }

// Add makes a token and returns its text, which is not stored.
func (t *Tokens) Add(token Token) (string, error) {
	return t.add(token, time.Now())
}

func (t *Tokens) add(token Token, now time.Time) (text string, err error) {
	if err := token.Check(); err != nil {
		return "", err
	}
	if text, err = newSecret("osu_"); err != nil {
		return "", err
	}
	id := ID(text)
	now = now.UTC().Truncate(time.Microsecond)
	token.Made = &now
	body, err := encodeToken(id, token)
	if err != nil {
		return "", err
	}
	return text, credential.Put(t.stored, id, body)
}

func encodeToken(id string, token Token) ([]byte, error) {
	body, err := format.Token.Encode(tokenFile{Token: token, Sum: token.sum(id)})
	return append(body, '\n'), err
}

func decodeToken(id string, body []byte) (Token, error) {
	var file tokenFile
	switch err := format.Token.Decode(body, &file); {
	case format.IsUnsupported(err):
		return Token{}, fmt.Errorf("cannot read a token's file: %w", err)
	case err != nil:
		return Token{}, fmt.Errorf("%w: %w", ErrDamagedToken, err)
	case file.Sum != file.sum(id):
		return Token{}, fmt.Errorf("%w: its sum is wrong", ErrDamagedToken)
	}
	return file.Token, nil
}

// List returns all tokens, by their ids.
func (t *Tokens) List() ([]credential.Stored[Token], error) {
	all, err := t.read.List("")
	if err != nil {
		return nil, err
	}
	used, err := t.uses.all()
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Value.Used = used[all[i].Key]
		if made := all[i].Value.Made; made != nil {
			all[i].Made = *made
		}
	}
	return all, nil
}

// Get returns the token of an id, and os.ErrNotExist if there is none.
func (t *Tokens) Get(id string) (Token, error) { return t.read.Get(id) }

// ID returns the id of the token with a text.
func ID(text string) string { return hashOf(text) }

// Remove removes a token: the next request with it is refused.
func (t *Tokens) Remove(id string) error { return credential.Remove(t.stored, id) }

// ErrLoginToken means that a token cannot be rotated.
var ErrLoginToken = errors.New("the token is that of a login; whoever has it logs in again, or withdraw it")

// Rotate makes another token with the properties of one, and returns its text. The old one is good until overlap has passed, so that who has it can change it in peace. It
// returns os.ErrNotExist if there is no such token, also if it was removed meanwhile.
func (t *Tokens) Rotate(id string, overlap time.Duration, now time.Time) (text string, err error) {
	old, err := t.read.Get(id)
	if err != nil {
		return "", err
	}
	if old.expired(now) {
		return "", ErrExpiredToken
	}
	if old.Login != nil {
		return "", ErrLoginToken
	}
	if text, err = t.add(old, now); err != nil {
		return "", err
	}
	if overlap > 0 {
		err = t.endBy(id, now.Add(overlap))
	} else {
		err = t.Remove(id)
	}
	if err != nil { // It was withdrawn meanwhile: its successor must not outlive it.
		return "", errors.Join(err, t.Remove(ID(text)))
	}
	return text, nil
}

// endBy has a token expire at a time, if it would be good for longer.
func (t *Tokens) endBy(id string, end time.Time) error {
	return credential.Update(t.stored, id, func(body []byte) ([]byte, error) {
		token, err := decodeToken(id, body)
		if err != nil {
			return nil, err
		}
		if end = end.UTC().Truncate(time.Second); token.Expires == nil || end.Before(*token.Expires) {
			token.Expires = &end
		}
		return encodeToken(id, token)
	})
}

func (t Token) expired(now time.Time) bool { return t.Expires != nil && !now.Before(*t.Expires) }

// Find returns the token of a text, if it is good.
func (t *Tokens) Find(text string, now time.Time) (Token, error) {
	id := ID(strings.TrimSpace(text))
	token, err := t.read.Get(id)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Token{}, ErrUnknownToken
	case errors.Is(err, ErrDamagedToken):
		return Token{}, ErrDamagedToken
	case err != nil:
		return Token{}, err
	case token.expired(now):
		return Token{}, ErrExpiredToken
	}
	t.uses.note(id, now)
	return token, nil
}
