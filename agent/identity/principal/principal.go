// Package principal keeps users, approles and tokens, and proves by them who sends a
// request to the REST API.
//
// It decides whether a proof is good. What may be done with it is decided by package
// access. Of each secret it keeps only a hash.
package principal

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Errors of a proof. Each says what to do.
var (
	ErrNoToken      = errors.New("the request has no token; send Authorization: Bearer TOKEN")
	ErrUnknownToken = errors.New("the token is unknown: this site has none like it, or it was withdrawn; log in again, or make one with osupgrade-agent credentials token")
	ErrDamagedToken = errors.New("cannot read a token's file: it is damaged; make a new token with osupgrade-agent credentials token, and withdraw this one")
	ErrExpiredToken = errors.New("the token has expired; log in again, or make a new one with osupgrade-agent credentials token")
	// ErrEndedLogin means that the user or approle of a token was removed, or has another
	// password or a further role.
	ErrEndedLogin = errors.New("the login of this token has ended: its user or approle was removed, or has another password or a further role; log in again")
	// ErrWrongLogin is one for all: it does not tell which of them is wrong.
	ErrWrongLogin = errors.New("the login is wrong: there is no such user with this password, or no such role-id with this secret-id, or the secret-id was used up or has expired; " +
		"if several tenants have a user of that name, name the tenant")
	// ErrNotRenewable means that a token is not that of a login.
	ErrNotRenewable = errors.New("the token is not that of a login, and its end is fixed; rotate it with osupgrade-agent credentials rotate")
)

// WrongError means that something cannot be as it is wanted: which field is wrong, and what
// would be right.
type WrongError struct{ Field, Text string }

// Error implements error.
func (e *WrongError) Error() string { return e.Field + ": " + e.Text }

func wrong(field, format string, args ...any) error {
	return &WrongError{Field: field, Text: fmt.Sprintf(format, args...)}
}

// maxName is the longest name of a token, in characters.
const maxName = 63

// validName reports whether a name can be printed unchanged in tables and logs.
func validName(name string) bool {
	return strings.TrimSpace(name) != "" && utf8.ValidString(name) && utf8.RuneCountInString(name) <= maxName &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

// secretBytes is the length of the random part of a secret. None of that length can be
// guessed, so a hash without salt hides it, and looking it up by the hash tells nothing
// by the time that it takes.
const secretBytes = 24

// newSecret returns a new secret.
func newSecret(prefix string) (string, error) {
	secret := make([]byte, secretBytes)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("cannot make a secret: %w", err)
	}
	return prefix + hex.EncodeToString(secret), nil
}

func hashOf(secret string) string {
	hash := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(hash[:])
}
