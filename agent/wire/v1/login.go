package v1

import (
	"bytes"
	"time"

	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/document"
	"github.com/osupgrade/terraform-provider-osupgrade/agent/wire/names"
)

// Login is the body of POST /v1/login, as Avassa's clients send it.
type Login struct {
	Username string `json:"username"`
	Password string `json:"password"`
	// Tenant may be left out if no two tenants have a user of that name.
	Tenant string `json:"tenant,omitempty"`
	// OTP and Cookie exist for Avassa's clients and have no effect.
	OTP    string `json:"otp,omitempty"`
	Cookie bool   `json:"cookie,omitempty"`
}

// maxSecret bounds a password or a secret-id, in bytes.
const maxSecret = 1024

// DecodeLogin reads the body of a login and validates it, as DecodeOSUpgrade does. No
// problem repeats the password.
func DecodeLogin(contentType string, body []byte) (Login, error) {
	return decode(contentType, body, Login{}, Login.Validate)
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (l Login) Validate() Problems {
	var found Problems
	if l.Username == "" {
		found = append(found, document.Wrong("username", "", "is missing"))
	}
	if l.Password == "" || len(l.Password) > maxSecret {
		found = append(found, document.Wrong("password", "", "is missing or too long"))
	}
	if l.Tenant != "" && l.Tenant != "*" && !names.Valid(l.Tenant) {
		found = append(found, document.Wrong("tenant", l.Tenant, "is not the name of a tenant; "+names.Form))
	}
	return found
}

// PasswordChange is the body of POST /v1/state/strongbox/password.
type PasswordChange struct {
	// Current is the password that the user has.
	Current string `json:"current-password" minLength:"1" maxLength:"1024"`
	// Password is the new one.
	Password string `json:"password" minLength:"8" maxLength:"1024"`
}

// DecodePasswordChange reads the body of a change of a password and validates it. No problem
// repeats a password. Whether the new one is good enough is not known here.
func DecodePasswordChange(contentType string, body []byte) (PasswordChange, error) {
	return decode(contentType, body, PasswordChange{}, PasswordChange.Validate)
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (p PasswordChange) Validate() Problems {
	var found Problems
	if p.Current == "" || len(p.Current) > maxSecret {
		found = append(found, document.Wrong("current-password", "", "is missing or too long"))
	}
	if p.Password == "" || len(p.Password) > maxSecret {
		found = append(found, document.Wrong("password", "", "is missing or too long"))
	}
	return found
}

// PasswordChanged is the answer to a change of a password.
type PasswordChanged struct {
	// Name is the name of the user.
	Name        string    `json:"name"`
	PasswordSet time.Time `json:"password-set"`
	// Withdrawn lists the tokens of the user's other logins, which are revoked. The token
	// of the request stays valid.
	Withdrawn []Token `json:"withdrawn"`
}

// StrongboxSealed is how the message of a 503 begins when the strongbox of the site is
// sealed, here and at Avassa.
const StrongboxSealed = "strongbox sealed"

// Unseal is the body of POST /v1/state/strongbox/system/unseal.
type Unseal struct {
	// Passphrase opens the strongbox of the site.
	Passphrase string `json:"passphrase" minLength:"1" maxLength:"1000"`
}

// DecodeUnseal reads the body of an unseal and validates it. No problem repeats the
// passphrase.
func DecodeUnseal(contentType string, body []byte) (Unseal, error) {
	return decode(contentType, body, Unseal{}, Unseal.Validate)
}

// Validate returns what is wrong with the value, and nothing when it is right.
func (u Unseal) Validate() Problems {
	if u.Passphrase == "" || len(u.Passphrase) > maxSecret {
		return Problems{document.Wrong("passphrase", "", "is missing or too long")}
	}
	return nil
}

// ApproleLogin is the body of POST /v1/approle-login. Clients without a role-id send the
// secret-id in its place.
type ApproleLogin struct {
	RoleID   string `json:"role-id,omitempty"`
	SecretID string `json:"secret-id,omitempty"`
}

// DecodeApproleLogin reads the body of a login and validates it, as DecodeOSUpgrade does.
func DecodeApproleLogin(contentType string, body []byte) (ApproleLogin, error) {
	l, err := decode(contentType, body, ApproleLogin{}, ApproleLogin.Validate)
	if l.RoleID == "" {
		l.RoleID = l.SecretID
	}
	return l, err
}

// Validate returns what is wrong with the values, and nothing when all is right.
func (l ApproleLogin) Validate() Problems {
	if l.SecretID == "" || len(l.SecretID) > maxSecret || len(l.RoleID) > maxSecret {
		return Problems{document.Wrong("secret-id", "", "is missing or too long")}
	}
	return nil
}

// Microseconds is a time with six digits of a second: Avassa's client for Python reads
// neither more nor fewer, unless there are three or none.
type Microseconds time.Time

// MarshalJSON implements json.Marshaler.
func (m Microseconds) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(m).UTC().Format(`"2006-01-02T15:04:05.000000Z"`)), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Microseconds) UnmarshalJSON(text []byte) error {
	return (*time.Time)(m).UnmarshalJSON(bytes.TrimSpace(text))
}

// LoggedIn is the answer to a login and to a refresh, as Avassa's clients read it.
type LoggedIn struct {
	Token string `json:"token"`
	// ExpiresIn is in seconds.
	ExpiresIn int          `json:"expires-in"`
	Expires   Microseconds `json:"expires"`
	// Accessor is the beginning of the token's id, in the form of a UUID.
	Accessor     string       `json:"accessor"`
	CreationTime Microseconds `json:"creation-time"`
	// RenewalTime is when the life of the token was last extended.
	RenewalTime Microseconds `json:"renewal-time"`
	// There is no second factor.
	TOTPRequired    bool `json:"totp-required"`
	TOTPEnabled     bool `json:"totp-enabled"`
	PasskeyRequired bool `json:"passkey-required"`
	PasskeyEnabled  bool `json:"passkey-enabled"`
}
