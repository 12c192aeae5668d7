package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/credential"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/format"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wait"
)

// Right is a right of a token.
type Right string

// The rights of a token.
const (
	// Public is what an operation needs that needs no token.
	Public Right = ""
	Read   Right = "read"
	Write  Right = "write"
	Start  Right = "start"
	// Join is the right to make, list and remove join tokens: to say which hosts are
	// let in.
	Join Right = "join"
)

// Rights lists all rights.
func Rights() []Right { return []Right{Read, Write, Start, Join} }

// AnyTenant is the tenant of a token that is valid for all tenants.
const AnyTenant = "*"

// Token is the name, tenant and rights of a token. The secret text is not stored,
// only its SHA-256.
type Token struct {
	Name   string  `json:"name"`
	Tenant string  `json:"tenant"`
	Allow  []Right `json:"allow"`
	// Expires is the end of its validity; nil means never.
	Expires *time.Time `json:"expires,omitempty"`
}

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
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q\n%q\n%q\n%s", id, t.Name, t.Tenant, t.Allow, expires))
	return hex.EncodeToString(sum[:])
}

// errDamagedToken means that the file of a token is not as it was written.
var errDamagedToken = errors.New("cannot read a token's file: it is damaged; make a new token with osupgrade-agent credentials token, and withdraw this one")

// Tokens are the tokens that the API takes: a credential for each, named by its
// SHA-256. Adding or removing one takes effect at once, without a restart.
type Tokens struct {
	stored credential.Store
	// streams are told that a token was changed, added or removed.
	streams wait.Watchers
}

// OpenTokens opens the tokens in a folder, which it creates if it does not exist.
func OpenTokens(dir string) (*Tokens, error) {
	stored, err := credential.OpenFolder(dir)
	if err != nil {
		return nil, err
	}
	return &Tokens{stored: stored}, nil
}

// Watch has the streams of events end with their tokens, until ctx ends.
func (t *Tokens) Watch(ctx context.Context, log *slog.Logger) {
	credential.Follow(ctx, t.stored, "the tokens", log, t.streams.Notify)
}

// secretBytes is the length of a token's random part.
const secretBytes = 24

// maxName is the longest name of a token, in characters.
const maxName = 63

// validName reports whether a name can be printed unchanged in tables and logs.
func validName(name string) bool {
	return strings.TrimSpace(name) != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxName &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Check returns an error if a token with these properties cannot be created.
func (t Token) Check() error {
	if !validName(t.Name) {
		return fmt.Errorf("name: %q is invalid; use 1 to %d printable characters", t.Name, maxName)
	}
	return nil
}

// Add creates a token and returns its text, which is not stored. It refuses an
// empty, too long or unprintable name.
func (t *Tokens) Add(token Token) (string, error) {
	if err := token.Check(); err != nil {
		return "", err
	}
	secret := make([]byte, secretBytes)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("cannot create a token: %w", err)
	}
	text := "osu_" + hex.EncodeToString(secret)
	id := nameOf(text)
	body, err := format.Token.Encode(tokenFile{Token: token, Sum: token.sum(id)})
	if err != nil {
		return "", err
	}
	return text, t.stored.Put(id, append(body, '\n'))
}

func nameOf(text string) string {
	hash := sha256.Sum256([]byte(text))
	return hex.EncodeToString(hash[:])
}

// read returns the token of an id; os.ErrNotExist when there is none.
func (t *Tokens) read(id string) (token Token, err error) {
	body, err := t.stored.Get(id)
	if err != nil {
		return Token{}, fmt.Errorf("cannot look up a token: %w", err)
	}
	var file tokenFile
	switch err := format.Token.Decode(body, &file); {
	case format.IsUnsupported(err):
		return Token{}, fmt.Errorf("cannot read a token's file: %w", err)
	case err != nil:
		return Token{}, fmt.Errorf("%w: %w", errDamagedToken, err)
	case file.Sum != file.sum(id):
		return Token{}, fmt.Errorf("%w: its sum is wrong", errDamagedToken)
	}
	return file.Token, nil
}

// StoredToken is a token as it is stored: without its secret text.
type StoredToken struct {
	// ID is the SHA-256 of the text.
	ID   string
	Made time.Time
	// Token is empty if its file is damaged, and Damage tells how.
	Token
	Damage error
}

// List returns all tokens.
func (t *Tokens) List() ([]StoredToken, error) {
	entries, err := t.stored.List()
	if err != nil {
		return nil, err
	}
	all := make([]StoredToken, 0, len(entries))
	for _, e := range entries {
		token, err := t.read(e.Name)
		all = append(all, StoredToken{ID: e.Name, Made: e.Made, Token: token, Damage: err})
	}
	return all, nil
}

// Remove removes a token: the next request with it is refused.
func (t *Tokens) Remove(id string) error { return t.stored.Remove(id) }

// Bearer returns the token of a request (RFC 6750 2.1).
func (t *Tokens) Bearer(r *http.Request) (Token, error) {
	scheme, text, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return Token{}, problem(http.StatusUnauthorized, "", "", "the request has no token; send Authorization: Bearer TOKEN")
	}
	token, err := t.read(nameOf(strings.TrimSpace(text)))
	if errors.Is(err, os.ErrNotExist) {
		return Token{}, problem(http.StatusUnauthorized, "", "", "the token is unknown: this site has none like it; make one with osupgrade-agent credentials token")
	}
	if errors.Is(err, errDamagedToken) {
		return Token{}, problem(http.StatusUnauthorized, "", "", "%s", errDamagedToken)
	}
	if err != nil {
		return Token{}, err
	}
	if token.Expires != nil && time.Now().After(*token.Expires) {
		return Token{}, problem(http.StatusUnauthorized, "", "", "the token has expired; make a new one with osupgrade-agent credentials token")
	}
	return token, nil
}

// allows returns an error if the token does not permit a request.
func (t Token) allows(tenant string, needs Right) error {
	switch {
	case tenant == AnyTenant:
		return badRequest("tenant", "", "the token is valid for all tenants, so the path must name one: use /v1/…/tenants/NAME/os-upgrade")
	case t.Tenant != AnyTenant && t.Tenant != tenant:
		return problem(http.StatusForbidden, "tenant", tenant, "token %q is not valid for tenant %q", t.Name, tenant)
	case !slices.Contains(t.Allow, needs):
		return problem(http.StatusForbidden, "", "", "token %q does not have the right %q", t.Name, needs)
	}
	return nil
}
